//! What users of devices use and spend, on the page, reading after reading.
#![expect(clippy::needless_raw_string_hashes, reason = "expect-test writes strings so")]

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use expect_test::expect;
use nvml_exporter::attribution::{Attribution, PodFacts, PodTable, Target};
use nvml_exporter::catalogue::{Meter, Value};
use nvml_exporter::exposition::{Encoding, Renderer, Settings};
use nvml_exporter::sampler::owners::Owner;
use nvml_exporter::sampler::snapshot::{
    Gpu, GpuReading, InstanceIdentity, InstanceReading, ProcessMemory, ProcessUtilization,
    Processes, Sample,
};
use nvml_exporter::usage::By;

use crate::attribution::{gpu, held, holding, pods};
use crate::support::{
    TEMP, at, identity, now, reading, selection, settings, snapshot, telemetry, up,
};

/// A sample that is read for accounts, of a selection with one row.
pub(crate) fn meter(meter: Meter, value: f64) -> Sample {
    let place = Meter::ALL.iter().position(|one| *one == meter).unwrap();
    at(1 + u16::try_from(place).unwrap(), Value::Float(value))
}

fn joules(joules: f64) -> Sample {
    meter(Meter::Energy, joules * 1e3)
}

/// A page after another, `seconds` after the first reading.
pub(crate) struct Pages {
    renderer: Renderer,
    settings: Settings,
}

impl Pages {
    pub(crate) fn by(usage: &[By]) -> Self {
        let settings = Settings { attribution: pods(), usage: usage.to_vec(), ..settings() };
        Self { renderer: Renderer::default(), settings }
    }

    pub(crate) fn page(
        &mut self,
        seconds: u64,
        gpus: Vec<GpuReading>,
        attribution: &Attribution,
    ) -> String {
        let at = now() + Duration::from_secs(seconds);
        let gpus: Vec<Gpu> = (0..)
            .zip(gpus)
            .map(|(index, reading)| up(identity(index), GpuReading { read_at: at, ..reading }))
            .collect();
        let selection = Arc::new((*selection(&[&TEMP], &[])).clone().with_meters());
        let snapshot = snapshot(selection, gpus);
        let page = self.renderer.render((&snapshot, attribution), &self.settings, &telemetry(), at);
        lines(std::str::from_utf8(&page.text.encoded(Encoding::Identity)).unwrap())
    }
}

/// Name, what tells series apart, and value, of the families that are about usage.
fn lines(text: &str) -> String {
    let told = ["gpu=", "GPU_I_ID", "by=", "reason=", "pod=", "pid=", "user=", "unit=", "family="];
    let is_about = |line: &&str| {
        ["nvml_pod_", "nvml_unit_", "nvml_process_", "nvml_device_una", "nvml_exporter_process_s"]
            .iter()
            .any(|start| line.starts_with(start))
    };
    let mut out = String::new();
    for line in text.lines().filter(is_about) {
        let (name, rest) = line.split_once('{').unwrap();
        let (labels, value) = rest.rsplit_once("} ").unwrap();
        let labels =
            labels.split(',').filter(|label| told.iter().any(|name| label.starts_with(name)));
        let value: f64 = value.parse().unwrap();
        let short = labels.map(|label| label.replace('"', "")).collect::<Vec<_>>().join(" ");
        // So many digits are what binary fractions keep.
        let _ = writeln!(out, "{name} {short}: {}", (value * 1e6).round() / 1e6);
    }
    out
}

pub(crate) fn only(lines: &str, families: &[&str]) -> String {
    let kept = lines.lines().filter(|line| families.iter().any(|name| line.starts_with(name)));
    kept.flat_map(|line| [line, "\n"]).collect()
}

fn owner(uid: &str) -> Arc<Owner> {
    Arc::new(Owner { pod_uid: Some(uid.into()), ..Owner::default() })
}

fn process(pid: u32, uid: &str, mib: u64, sm_percent: u32) -> (ProcessMemory, ProcessUtilization) {
    let memory = ProcessMemory {
        pid,
        owner: Some(owner(uid)),
        used_bytes: Some(mib << 20),
        gpu_instance: None,
    };
    let percent = ProcessUtilization {
        pid,
        owner: Some(owner(uid)),
        sm_percent,
        memory_percent: sm_percent / 2,
        encoder_percent: 0,
        decoder_percent: 3,
    };
    (memory, percent)
}

fn processes(all: Vec<(ProcessMemory, ProcessUtilization)>) -> Processes {
    let visible = all.len();
    let (running, utilization) = all.into_iter().unzip();
    Processes { running: Ok(running), utilization: Ok(utilization), visible }
}

pub(crate) fn shared(energy: f64, all: Vec<(ProcessMemory, ProcessUtilization)>) -> GpuReading {
    GpuReading {
        processes: Some(processes(all)),
        ..reading(vec![joules(energy), meter(Meter::Utilization, 90.0)])
    }
}

fn instance(id: u32, profile: &str, activity: f64) -> InstanceReading {
    InstanceReading {
        identity: Arc::new(InstanceIdentity {
            gpu_instance: id,
            profile: profile.to_owned(),
            uuids: vec![(0, format!("MIG-{id}"))],
            placement: None,
        }),
        samples: vec![meter(Meter::Engine, activity)],
    }
}

fn known(mut attribution: Attribution, pods: &[&str]) -> Attribution {
    let mut table = PodTable::default();
    for pod in pods {
        let facts = PodFacts { uid: format!("uid-{pod}"), ..PodFacts::default() };
        table.insert("ml", pod, facts);
    }
    attribution.pods = Arc::new(table);
    attribution
}

/// GPU 0 by two pods; GPU 1 by one; of GPU 2, cut in instances of 3 and 2 of 7 slices, the first.
fn holders() -> Attribution {
    let instance = |pod, id| holding(pod, "main", Target::Mig(format!("MIG-{id}")), None);
    let all = vec![
        holding("a", "main", gpu(0), Some("0")),
        holding("b", "main", gpu(0), Some("1")),
        holding("c", "main", gpu(1), None),
        instance("d", 1),
    ];
    known(held(all), &["a", "b", "c", "d"])
}

fn machine(energy: f64) -> Vec<GpuReading> {
    let mig = GpuReading {
        whole: false,
        instances: vec![instance(1, "3g.71gb", 0.5), instance(2, "2g.35gb", 0.0)],
        mig_slices: Some(7),
        processes: Some(Processes { utilization: Err("NOT_SUPPORTED"), ..processes(vec![]) }),
        ..reading(vec![joules(energy)])
    };
    // One of no pod that is known uses some, too.
    let all =
        vec![process(1, "uid-a", 300, 60), process(2, "uid-b", 200, 20), process(3, "x", 9, 10)];
    vec![shared(energy, all), shared(energy, vec![]), mig]
}

#[test]
fn a_page_tells_who_uses_and_spends_how_much() {
    let mut pages = Pages::by(&[By::Pod]);
    pages.page(0, machine(1000.0), &holders());
    expect![[r#"
        nvml_exporter_process_split_missing gpu=2 family=nvml_pod_sm_utilization_ratio reason=NOT_SUPPORTED: 1
        nvml_pod_processes gpu=0 pod=a: 1
        nvml_pod_processes gpu=0 pod=b: 1
        nvml_pod_processes gpu=1 pod=c: 0
        nvml_pod_processes gpu=2 GPU_I_ID=1 pod=d: 0
        nvml_pod_memory_used_bytes gpu=0 pod=a: 314572800
        nvml_pod_memory_used_bytes gpu=0 pod=b: 209715200
        nvml_pod_memory_used_bytes gpu=1 pod=c: 0
        nvml_pod_memory_used_bytes gpu=2 GPU_I_ID=1 pod=d: 0
        nvml_pod_sm_utilization_ratio gpu=0 pod=a: 0.6
        nvml_pod_sm_utilization_ratio gpu=0 pod=b: 0.2
        nvml_pod_sm_utilization_ratio gpu=1 pod=c: 0
        nvml_pod_memory_copy_utilization_ratio gpu=0 pod=a: 0.3
        nvml_pod_memory_copy_utilization_ratio gpu=0 pod=b: 0.1
        nvml_pod_memory_copy_utilization_ratio gpu=1 pod=c: 0
        nvml_pod_encoder_utilization_ratio gpu=0 pod=a: 0
        nvml_pod_encoder_utilization_ratio gpu=0 pod=b: 0
        nvml_pod_encoder_utilization_ratio gpu=1 pod=c: 0
        nvml_pod_decoder_utilization_ratio gpu=0 pod=a: 0.03
        nvml_pod_decoder_utilization_ratio gpu=0 pod=b: 0.03
        nvml_pod_decoder_utilization_ratio gpu=1 pod=c: 0
        nvml_pod_energy_joules_total gpu=0 pod=a: 650
        nvml_pod_energy_joules_total gpu=0 pod=b: 250
        nvml_pod_energy_joules_total gpu=1 pod=c: 1000
        nvml_pod_energy_joules_total gpu=2 GPU_I_ID=1 pod=d: 551.020408
        nvml_pod_gpu_seconds_total gpu=0 pod=a: 5
        nvml_pod_gpu_seconds_total gpu=0 pod=b: 5
        nvml_pod_gpu_seconds_total gpu=1 pod=c: 10
        nvml_pod_gpu_seconds_total gpu=2 GPU_I_ID=1 pod=d: 4.285714
        nvml_pod_gpu_busy_seconds_total gpu=0 pod=a: 6
        nvml_pod_gpu_busy_seconds_total gpu=0 pod=b: 2
        nvml_pod_gpu_busy_seconds_total gpu=1 pod=c: 9
        nvml_pod_gpu_busy_seconds_total gpu=2 GPU_I_ID=1 pod=d: 2.142857
        nvml_device_unattributed_energy_joules_total gpu=0 by=pod reason=idle: 0
        nvml_device_unattributed_energy_joules_total gpu=0 by=pod reason=not_divisible: 0
        nvml_device_unattributed_energy_joules_total gpu=0 by=pod reason=other_processes: 100
        nvml_device_unattributed_energy_joules_total gpu=0 by=pod reason=holders_unknown: 0
        nvml_device_unattributed_energy_joules_total gpu=0 by=pod reason=unread: 0
        nvml_device_unattributed_energy_joules_total gpu=1 by=pod reason=idle: 0
        nvml_device_unattributed_energy_joules_total gpu=1 by=pod reason=not_divisible: 0
        nvml_device_unattributed_energy_joules_total gpu=1 by=pod reason=other_processes: 0
        nvml_device_unattributed_energy_joules_total gpu=1 by=pod reason=holders_unknown: 0
        nvml_device_unattributed_energy_joules_total gpu=1 by=pod reason=unread: 0
        nvml_device_unattributed_energy_joules_total gpu=2 by=pod reason=idle: 448.979592
        nvml_device_unattributed_energy_joules_total gpu=2 by=pod reason=not_divisible: 0
        nvml_device_unattributed_energy_joules_total gpu=2 by=pod reason=other_processes: 0
        nvml_device_unattributed_energy_joules_total gpu=2 by=pod reason=holders_unknown: 0
        nvml_device_unattributed_energy_joules_total gpu=2 by=pod reason=unread: 0
    "#]].assert_eq(&pages.page(10, machine(2000.0), &holders()));
}

#[test]
fn a_gpu_that_is_no_row_has_no_users() {
    let mut pages = Pages::by(&[By::Pod]);
    let left_out = || vec![GpuReading { whole: false, ..shared(0.0, vec![]) }];
    pages.page(0, left_out(), &holders());
    assert_eq!(pages.page(10, left_out(), &holders()), "");
}

#[test]
fn samples_that_add_up_to_more_than_there_is_are_scaled() {
    let mut pages = Pages::by(&[By::Pod]);
    let all = vec![process(1, "uid-a", 1, 90), process(2, "uid-b", 1, 60)];
    let page = pages.page(0, vec![shared(0.0, all)], &holders());
    expect![[r#"
        nvml_pod_sm_utilization_ratio gpu=0 pod=a: 0.6
        nvml_pod_sm_utilization_ratio gpu=0 pod=b: 0.4
        nvml_pod_memory_copy_utilization_ratio gpu=0 pod=a: 0.45
        nvml_pod_memory_copy_utilization_ratio gpu=0 pod=b: 0.3
    "#]]
    .assert_eq(&only(&page, &["nvml_pod_sm", "nvml_pod_memory_copy"]));
}

/// Whoever is there by its processes alone does not pay for those of others.
#[test]
fn a_unit_alone_of_its_kind_pays_for_its_own_and_for_what_nobody_uses() {
    let (mut memory, mut percent) = process(1, "", 1, 30);
    let of = Owner { unit: Some("x.service".into()), ..Owner::default() };
    memory.owner = Some(Arc::new(of));
    percent.owner.clone_from(&memory.owner);
    let all = || vec![(memory.clone(), percent.clone()), process(2, "", 1, 50)];
    let mut pages = Pages::by(&[By::Unit]);
    pages.page(0, vec![shared(0.0, all())], &Attribution::default());
    let page = pages.page(10, vec![shared(1000.0, all())], &Attribution::default());
    assert!(page.contains("nvml_unit_energy_joules_total gpu=0 unit=x.service: 500\n"), "{page}");
    assert!(page.contains("by=unit reason=other_processes: 500\n"), "{page}");
    assert!(page.contains("nvml_unit_gpu_busy_seconds_total gpu=0 unit=x.service: 3\n"), "{page}");
}

#[test]
fn a_pod_does_not_pay_for_processes_of_others_on_its_gpu() {
    let mut pages = Pages::by(&[By::Pod]);
    let one = known(held(vec![holding("a", "main", gpu(0), None)]), &["a"]);
    let all = || vec![process(1, "uid-a", 1, 10), process(2, "", 1, 70)];
    pages.page(0, vec![shared(0.0, all())], &one);
    let page = pages.page(10, vec![shared(1000.0, all())], &one);
    assert!(page.contains("nvml_pod_energy_joules_total gpu=0 pod=a: 300\n"), "{page}");
    assert!(page.contains("by=pod reason=other_processes: 700\n"), "{page}");
    assert!(page.contains("nvml_pod_gpu_busy_seconds_total gpu=0 pod=a: 1\n"), "{page}");
}

#[test]
fn what_cannot_be_divided_has_no_counter() {
    let mut pages = Pages::by(&[By::Pod]);
    let two = ["0", "1"].map(|share| holding(share, "main", gpu(0), Some(share)));
    let two = held(two.to_vec());
    let all = || vec![process(1, "uid-a", 1, 60), process(2, "uid-b", 1, 20)];
    pages.page(0, vec![shared(0.0, all())], &two);
    let page = pages.page(10, vec![shared(1000.0, all())], &two);
    assert_eq!(only(&page, &["nvml_pod_energy", "nvml_pod_gpu_busy"]), "");
    assert!(page.contains("nvml_pod_gpu_seconds_total gpu=0 pod=0: 5\n"), "{page}");
    assert!(page.contains("by=pod reason=not_divisible: 1000\n"), "{page}");
}

#[test]
fn who_holds_a_whole_gpu_holds_its_instances() {
    let mut pages = Pages::by(&[By::Pod]);
    let whole = held(vec![holding("w", "main", gpu(2), None)]);
    pages.page(0, machine(0.0), &whole);
    let page = pages.page(10, machine(700.0), &whole);
    let of_instance = |id| format!("nvml_pod_gpu_seconds_total gpu=2 GPU_I_ID={id} pod=w:");
    assert!(page.contains(&of_instance(1)) && page.contains(&of_instance(2)), "{page}");
    // Two of seven slices are not cut: 700 J times 2/7 times the 11/14 in which the board idled.
    assert!(page.contains("gpu=2 by=pod reason=idle: 157.142857\n"), "{page}");
}

/// The page would have a series twice.
#[test]
fn a_process_number_given_again_is_one_series_that_begins_anew() {
    let mut pages = Pages::by(&[By::Process]);
    let mut page = |seconds, joules, start| {
        let (mut memory, mut percent) = process(7, "", 1, 50);
        let of = Owner { command: Some("train".into()), start: Some(start), ..Owner::default() };
        memory.owner = Some(Arc::new(of));
        percent.owner.clone_from(&memory.owner);
        let reading = vec![shared(joules, vec![(memory, percent)])];
        only(&pages.page(seconds, reading, &Attribution::default()), &["nvml_process_energy"])
    };
    page(0, 0.0, 1);
    assert_eq!(page(10, 100.0, 1), "nvml_process_energy_joules_total gpu=0 pid=7: 100\n");
    assert_eq!(page(20, 130.0, 2), "nvml_process_energy_joules_total gpu=0 pid=7: 30\n");
}

#[test]
fn units_and_processes_are_told_by_what_runs() {
    let unit = |pid, unit: &str| {
        let (mut memory, mut percent) = process(pid, "", 100, 30);
        let of = Owner {
            unit: Some(unit.into()),
            command: Some("train \"1\"".into()),
            start: Some(u64::from(pid)),
            ..Owner::default()
        };
        memory.owner = Some(Arc::new(of));
        percent.owner.clone_from(&memory.owner);
        (memory, percent)
    };
    let all = || vec![unit(1, "x.service"), unit(2, "x.service"), unit(3, "y.service")];
    let mut pages = Pages::by(&[By::Unit, By::Process]);
    pages.page(0, vec![shared(0.0, all())], &Attribution::default());
    let page = pages.page(10, vec![shared(1000.0, all())], &Attribution::default());
    let families = ["nvml_unit", "nvml_process_energy", "nvml_device"];
    expect![[r#"
        nvml_unit_processes gpu=0 unit=x.service: 2
        nvml_unit_processes gpu=0 unit=y.service: 1
        nvml_unit_memory_used_bytes gpu=0 unit=x.service: 209715200
        nvml_unit_memory_used_bytes gpu=0 unit=y.service: 104857600
        nvml_unit_sm_utilization_ratio gpu=0 unit=x.service: 0.6
        nvml_unit_sm_utilization_ratio gpu=0 unit=y.service: 0.3
        nvml_unit_memory_copy_utilization_ratio gpu=0 unit=x.service: 0.3
        nvml_unit_memory_copy_utilization_ratio gpu=0 unit=y.service: 0.15
        nvml_unit_encoder_utilization_ratio gpu=0 unit=x.service: 0
        nvml_unit_encoder_utilization_ratio gpu=0 unit=y.service: 0
        nvml_unit_decoder_utilization_ratio gpu=0 unit=x.service: 0.06
        nvml_unit_decoder_utilization_ratio gpu=0 unit=y.service: 0.03
        nvml_unit_energy_joules_total gpu=0 unit=x.service: 650
        nvml_unit_energy_joules_total gpu=0 unit=y.service: 350
        nvml_unit_gpu_seconds_total gpu=0 unit=x.service: 5
        nvml_unit_gpu_seconds_total gpu=0 unit=y.service: 5
        nvml_unit_gpu_busy_seconds_total gpu=0 unit=x.service: 6
        nvml_unit_gpu_busy_seconds_total gpu=0 unit=y.service: 3
        nvml_process_energy_joules_total gpu=0 pid=1: 333.333333
        nvml_process_energy_joules_total gpu=0 pid=2: 333.333333
        nvml_process_energy_joules_total gpu=0 pid=3: 333.333333
        nvml_device_unattributed_energy_joules_total gpu=0 by=unit reason=idle: 0
        nvml_device_unattributed_energy_joules_total gpu=0 by=unit reason=not_divisible: 0
        nvml_device_unattributed_energy_joules_total gpu=0 by=unit reason=other_processes: 0
        nvml_device_unattributed_energy_joules_total gpu=0 by=unit reason=holders_unknown: 0
        nvml_device_unattributed_energy_joules_total gpu=0 by=unit reason=unread: 0
        nvml_device_unattributed_energy_joules_total gpu=0 by=process reason=idle: 0
        nvml_device_unattributed_energy_joules_total gpu=0 by=process reason=not_divisible: 0
        nvml_device_unattributed_energy_joules_total gpu=0 by=process reason=other_processes: 0
        nvml_device_unattributed_energy_joules_total gpu=0 by=process reason=holders_unknown: 0
        nvml_device_unattributed_energy_joules_total gpu=0 by=process reason=unread: 0
    "#]]
    .assert_eq(&only(&page, &families));
}
