//! Who uses a GPU where there is no Kubernetes: users, units of systemd, jobs of Slurm, containers
//! and processes, in real cgroups.

use crate::support::cgroups::Cgroup;
use crate::support::{Exporter, Setup};

const MEMORY: &str = "memory_used_bytes";
const GIB: f64 = 1_073_741_824.0;

fn bytes(exporter: &Exporter, family: &str, labels: &[(&str, &str)]) {
    let name = format!("nvml_{family}_{MEMORY}");
    exporter.until(&format!("{name} {labels:?}"), |page| {
        let labels: Vec<_> = labels.iter().copied().chain([("gpu", "0")]).collect();
        page.value(&name, &labels) == Some(4.0 * GIB)
    });
}

#[test]
fn each_kind_is_found_by_its_cgroup_and_has_its_own_families() {
    let salt = std::process::id();
    let container = format!("{salt:064x}");
    let mut unit = Cgroup::make(&format!("system.slice/train-{salt}.service"));
    let mut job =
        Cgroup::make(&format!("system.slice/slurmstepd.scope/job_{salt}/step_0/user/task_0"));
    let mut docker = Cgroup::make(&format!("system.slice/docker-{container}.scope"));
    let pids = [unit.run(), job.run(), docker.run()];
    let processes = pids.map(|pid| format!("{pid}:4GiB:20")).join(",");
    let exporter = Setup::simulate("dgx-h100")
        .control(&[&format!("gpu 0 processes {processes}")])
        .args(["--usage-by=unit,slurm-job,container,process,user"])
        .ready();
    bytes(&exporter, "unit", &[("unit", &format!("train-{salt}.service"))]);
    bytes(&exporter, "slurm_job", &[("hpc_job", &salt.to_string())]);
    bytes(&exporter, "container", &[("container_id", &container)]);
    bytes(&exporter, "process", &[("pid", &pids[2].to_string()), ("command", "sleep")]);
    let page = exporter.until_passes(2);
    let user = [("gpu", "0"), ("user_id", "0"), ("user", "root")];
    assert_eq!(page.value("nvml_user_memory_used_bytes", &user), Some(12.0 * GIB));
    assert_eq!(page.value("nvml_user_processes", &user), Some(3.0));
    assert!(page.value("nvml_user_energy_joules_total", &user) > Some(0.0));
    assert!(page.family("nvml_pod_memory_used_bytes").is_none());
    assert!(page.family("nvml_process_processes").is_none(), "it would always be 1");
}

#[test]
fn nothing_is_asked_unless_it_is_wanted() {
    let plain = Setup::simulate("dgx-h100").ready();
    let page = plain.until_passes(2);
    assert!(!page.names().iter().any(|name| name.starts_with("nvml_user_")));
    let asked = |exporter: &Exporter| {
        exporter.trace().iter().any(|call| call.function == "nvmlDeviceGetProcessUtilization")
    };
    assert!(!asked(&plain));
    let wanted = Setup::simulate("dgx-h100").args(["--usage-by=user"]).ready();
    wanted.until_passes(2);
    assert!(asked(&wanted));
}

#[test]
fn a_kind_that_is_not_known_or_cannot_be_is_an_error() {
    let run = |kinds: &str| Setup::simulate("dgx-h100").args([kinds]).run();
    let (code, _, log) = run("--usage-by=user,group");
    assert_eq!(code, 1, "{log}");
    assert!(log.contains("--usage-by=user,group: group is unknown; allowed: none, or any of pod"));
    for (kinds, why) in [("none,user", "none stands alone"), (",", "names no kind")] {
        let (code, _, log) = run(&format!("--usage-by={kinds}"));
        assert_eq!(code, 1, "{log}");
        assert!(log.contains(&format!("--usage-by={kinds}: {why}")), "{log}");
    }
    let (code, _, log) = run("--usage-by=pod");
    assert_eq!(code, 1, "{log}");
    assert!(log.contains("--usage-by=pod: pod needs --kubernetes"), "{log}");
}

#[test]
fn check_says_whether_processes_are_visible() {
    let seen = |process: u32| {
        let command = format!("gpu 0 processes {process}:1GiB:5");
        let others: Vec<String> = (1..8).map(|gpu| format!("gpu {gpu} processes none")).collect();
        let others = others.iter().map(String::as_str);
        let commands: Vec<&str> = others.chain([command.as_str()]).collect();
        let setup = Setup::simulate("dgx-h100").control(&commands);
        let (code, out, log) = setup.args(["check", "--usage-by=user"]).run();
        assert_eq!(code, 0, "{out}\n{log}");
        out
    };
    let out = seen(std::process::id());
    assert!(out.contains("processes: NVML lists 1, 1 of them are visible here\n"), "{out}");
    assert!(!out.contains("hostPID"), "{out}");
    let out = seen(4_194_999);
    assert!(out.contains("processes: NVML lists 1, 0 of them are visible here\n"), "{out}");
    assert!(out.contains("hostPID: true"), "{out}");
}

#[test]
fn too_many_processes_are_bounded_and_counted() {
    let processes: Vec<String> =
        (0..200).map(|n| format!("{}:{}MiB:0", 4_195_000 + n, 100 + n)).collect();
    let exporter = Setup::simulate("dgx-h100")
        .control(&[&format!("gpu 0 processes {}", processes.join(","))])
        .args(["--usage-by=process"])
        .ready();
    let left_out = [("gpu", "0"), ("by", "process")];
    let page = exporter.until("the bound", |page| {
        page.value("nvml_exporter_usage_left_out", &left_out) == Some(72.0)
    });
    // None of them is in this process namespace, but a number alone is told.
    assert!(page.samples("nvml_process_gpu_seconds_total").count() >= 128);
}
