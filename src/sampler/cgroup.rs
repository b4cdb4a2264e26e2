//! Whose a process is, by the names that the kubelet, container runtimes, systemd and Slurm give
//! cgroups. Pure.

/// Pod UIDs are at least so long: 36 characters, or 32 for a static pod, whose UID is a hash.
const UID_MIN: usize = 32;

/// Longer names are nobody's UID.
const UID_MAX: usize = 128;

/// Container ids are SHA-256 sums.
const CONTAINER_ID: usize = 64;

/// The pod UID in the text of `/proc/<pid>/cgroup` (`cgroups(7)`), in the form that the API server
/// writes it; `None` for a process of no pod.
///
/// Cgroup v2 has one line, v1 one a hierarchy. The kubelet
/// names a pod's cgroup `pod<uid>` (driver `cgroupfs`) or `kubepods-…-pod<uid>.slice` (driver
/// `systemd`, which has `_` for `-`). The outermost pod counts: it is the node's kubelet that hands
/// out devices.
#[must_use]
pub fn pod_uid(cgroup: &str) -> Option<String> {
    // A runtime that takes systemd's form for a path leaves `:` between its parts.
    paths(cgroup).flat_map(|path| path.split(['/', ':'])).find_map(uid_of_segment)
}

fn uid_of_segment(segment: &str) -> Option<String> {
    let name = segment.strip_suffix(".slice").unwrap_or(segment);
    let uid = name.strip_prefix("pod").or_else(|| name.rsplit_once("-pod").map(|(_, uid)| uid))?;
    let uid = uid.replace('_', "-");
    let is_uid = (UID_MIN..=UID_MAX).contains(&uid.len())
        && uid.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    is_uid.then_some(uid)
}

/// The id of the innermost container in the text of `/proc/<pid>/cgroup`: 64 hexadecimal digits,
/// with the runtime's word before them (`docker-`, `cri-containerd-`, `crio-`, `libpod-`) or none;
/// `None` for a process of no container.
#[must_use]
pub fn container_id(cgroup: &str) -> Option<String> {
    paths(cgroup).find_map(|path| path.rsplit(['/', ':']).find_map(id_of_segment))
}

fn id_of_segment(segment: &str) -> Option<String> {
    let name = segment.strip_suffix(".scope").unwrap_or(segment);
    // Podman's and CRI-O's monitors are in a cgroup beside the container's.
    let id = name.rsplit_once('-').map_or(name, |(_, id)| id);
    let is_id = id.len() == CONTAINER_ID
        && id.bytes().all(|byte| byte.is_ascii_hexdigit())
        && !name.contains("conmon");
    is_id.then(|| id.to_owned())
}

/// The systemd unit in the text of `/proc/<pid>/cgroup`, as `systemctl status <pid>` names it: the
/// innermost service, or scope where there is none. One of a user's manager has that one's name
/// before its own, `user@1000.service/train.service`, since every user can have one of that name.
#[must_use]
pub fn unit(cgroup: &str) -> Option<String> {
    paths(cgroup)
        .find_map(|path| unit_of(path, ".service"))
        .or_else(|| paths(cgroup).find_map(|path| unit_of(path, ".scope")))
}

fn unit_of(path: &str, kind: &str) -> Option<String> {
    let is_unit = |name: &&str| name.len() > kind.len() && name.ends_with(kind);
    let unit = path.rsplit('/').find(is_unit)?;
    let is_manager = |name: &&str| name.starts_with("user@") && name.ends_with(".service");
    Some(match path.split('/').find(is_manager).filter(|manager| *manager != unit) {
        Some(manager) => format!("{manager}/{unit}"),
        None => unit.to_owned(),
    })
}

/// The Slurm job in the text of `/proc/<pid>/cgroup`: `job_<id>` below `slurm…`, with cgroup v1
/// (`/slurm/uid_1000/job_42/step_0`) and v2 (`…/slurmstepd.scope/job_42/step_0`).
#[must_use]
pub fn slurm_job(cgroup: &str) -> Option<String> {
    paths(cgroup).find_map(|path| {
        let mut segments = path.split('/').skip_while(|segment| !is_slurm(segment));
        segments.find_map(|segment| {
            let id = segment.strip_prefix("job_")?;
            let is_id = !id.is_empty() && id.len() < 20 && id.bytes().all(|b| b.is_ascii_digit());
            is_id.then(|| id.to_owned())
        })
    })
}

fn is_slurm(segment: &str) -> bool {
    segment == "slurm" || segment.starts_with("slurm_") || segment.ends_with("slurmstepd.scope")
}

/// A line is `<hierarchy>:<controllers>:<path>`.
fn paths(cgroup: &str) -> impl Iterator<Item = &str> {
    cgroup.lines().filter_map(|line| line.splitn(3, ':').nth(2))
}

/// The real user id in the text of `/proc/<pid>/status`.
#[must_use]
pub fn user_id(status: &str) -> Option<u32> {
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// The command's name in the text of `/proc/<pid>/stat`: what the kernel keeps of it, 15 bytes.
#[must_use]
pub fn command(stat: &str) -> Option<&str> {
    let (before, _) = stat.rsplit_once(')')?;
    before.split_once('(').map(|(_, command)| command)
}

/// When a process started, in clock ticks after boot, from the text of `/proc/<pid>/stat`
/// (`proc_pid_stat(5)`, field 22). With its number it names a process for good.
#[must_use]
pub fn start_time(stat: &str) -> Option<u64> {
    // Field 2 is the command in parentheses, and may hold blanks and parentheses itself.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_ascii_whitespace().nth(22 - 3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{command, container_id, pod_uid, slurm_job, start_time, unit, user_id};

    const UID: &str = "12345678-9abc-def0-1234-56789abcdef0";
    const SYSTEMD: &str = "12345678_9abc_def0_1234_56789abcdef0";
    const STATIC: &str = "0f1e2d3c4b5a69788796a5b4c3d2e1f0";
    const CONTAINER: &str = "3f4e5d6c7b8a99887766554433221100ffeeddccbbaa99887766554433221100";

    #[test]
    fn case_79_a_pod_is_found_under_every_cgroup_version_driver_and_class() {
        let paths = [
            format!("0::/kubepods/burstable/pod{UID}/{CONTAINER}"),
            format!("0::/kubepods/besteffort/pod{UID}/crio-{CONTAINER}"),
            format!("0::/kubepods/pod{UID}/{CONTAINER}"),
            format!(
                "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{SYSTEMD}.slice/\
                 cri-containerd-{CONTAINER}.scope"
            ),
            format!("0::/kubepods.slice/kubepods-pod{SYSTEMD}.slice/docker-{CONTAINER}.scope"),
            format!(
                "0::/kubepods.slice/kubepods-besteffort.slice/\
                 kubepods-besteffort-pod{SYSTEMD}.slice/crio-{CONTAINER}.scope/container"
            ),
            format!("11:memory:/kubepods/burstable/pod{UID}/{CONTAINER}"),
            format!("4:cpu,cpuacct:/kubepods.slice/kubepods-pod{SYSTEMD}.slice/x.scope"),
            // The kubelet in a slice of its own, and a node that is a container.
            format!(
                "0::/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/\
                 kubelet-kubepods-burstable-pod{SYSTEMD}.slice/cri-containerd-{CONTAINER}.scope"
            ),
            format!("0::/docker/{CONTAINER}/kubelet/kubepods/besteffort/pod{UID}/{CONTAINER}"),
            // Seen from a cgroup namespace of one's own.
            format!("0::/../../kubepods-burstable-pod{SYSTEMD}.slice/cri-containerd-x.scope"),
            // A runtime that was told the wrong driver.
            format!(
                "1:name=systemd:/system.slice/containerd.service/\
                 kubepods-burstable-pod{SYSTEMD}.slice:cri-containerd:{CONTAINER}"
            ),
        ];
        for path in paths {
            assert_eq!(pod_uid(&path).as_deref(), Some(UID), "{path}");
        }
    }

    #[test]
    fn a_static_pods_uid_has_no_dashes_and_gets_none() {
        for path in [
            format!("0::/kubepods/burstable/pod{STATIC}/{CONTAINER}"),
            format!("0::/kubepods.slice/kubepods-burstable-pod{STATIC}.slice/x.scope"),
        ] {
            assert_eq!(pod_uid(&path).as_deref(), Some(STATIC), "{path}");
        }
    }

    /// Conformance case 79: short UID, no UID, empty path.
    #[test]
    fn what_is_no_pod_has_no_uid() {
        for text in [
            "",
            "\n",
            "0::/",
            "0::",
            "nonsense",
            "0::/user.slice/user-1000.slice/session-3.scope",
            "0::/system.slice/kubelet.service",
            "0::/kubepods/burstable/pod1234/abc",
            "0::/kubepods.slice/kubepods-pod1234_5678.slice/x.scope",
            "0::/machine.slice/libpod-3f4e5d6c7b8a99887766554433221100ffeeddccbbaa9988.scope",
            "0::/kubepods.slice/kubepods-burstable.slice",
        ] {
            assert_eq!(pod_uid(text), None, "{text}");
        }
    }

    #[test]
    fn a_container_is_found_whoever_runs_it() {
        for path in [
            format!("0::/system.slice/docker-{CONTAINER}.scope"),
            format!("0::/docker/{CONTAINER}"),
            format!("0::/docker/{CONTAINER}/init"),
            format!(
                "0::/kubepods.slice/kubepods-pod{SYSTEMD}.slice/cri-containerd-{CONTAINER}.scope"
            ),
            format!("0::/kubepods/pod{UID}/{CONTAINER}"),
            format!("0::/machine.slice/libpod-{CONTAINER}.scope/container"),
            format!("11:memory:/docker/{CONTAINER}\n0::/\n"),
            format!(
                "1:name=systemd:/system.slice/containerd.service/x.slice:cri-containerd:{CONTAINER}"
            ),
        ] {
            assert_eq!(container_id(&path).as_deref(), Some(CONTAINER), "{path}");
        }
        for path in [
            "0::/".to_owned(),
            "0::/system.slice/docker.service".to_owned(),
            format!("0::/machine.slice/libpod-conmon-{CONTAINER}.scope"),
            format!("0::/docker/{}", &CONTAINER[..40]),
        ] {
            assert_eq!(container_id(&path), None, "{path}");
        }
    }

    #[test]
    fn a_unit_is_the_innermost_service_or_else_scope() {
        for (path, expected) in [
            ("0::/system.slice/train.service", Some("train.service")),
            ("0::/system.slice/system-train.slice/train@7.service/worker", Some("train@7.service")),
            (
                "0::/user.slice/user-1000.slice/user@1000.service/app.slice/jupyter.service",
                Some("user@1000.service/jupyter.service"),
            ),
            (
                "0::/user.slice/user-1000.slice/user@1000.service/init.scope",
                Some("user@1000.service"),
            ),
            ("0::/user.slice/user-1000.slice/session-3.scope", Some("session-3.scope")),
            ("0::/system.slice/my\\x2dtrain.service", Some("my\\x2dtrain.service")),
            ("9:name=systemd:/system.slice/x.service\n8:pids:/\n", Some("x.service")),
            ("0::/", None),
            ("0::/.service", None),
        ] {
            assert_eq!(unit(path).as_deref(), expected, "{path}");
        }
    }

    #[test]
    fn a_slurm_job_is_found_under_both_cgroup_versions() {
        for (path, expected) in [
            ("5:memory:/slurm/uid_1000/job_42/step_0/task_0", Some("42")),
            ("5:memory:/slurm_node1/uid_1000/job_42/step_batch", Some("42")),
            ("0::/system.slice/slurmstepd.scope/job_42/step_0/user/task_0", Some("42")),
            ("0::/system.slice/node1_slurmstepd.scope/job_7/step_extern/user", Some("7")),
            ("0::/user.slice/job_42", None),
            ("0::/slurm/job_/x", None),
            ("0::/slurm/job_4x/x", None),
        ] {
            assert_eq!(slurm_job(path).as_deref(), expected, "{path}");
        }
    }

    #[test]
    fn user_and_command_are_found() {
        assert_eq!(user_id("Name:\tx\nUid:\t1000\t0\t0\t0\nGid:\t5\n"), Some(1000));
        assert_eq!(user_id("Name:\tUid:\n"), None);
        assert_eq!(command("42 (a) b) S 1"), Some("a) b"));
        assert_eq!(command("42"), None);
    }

    #[test]
    fn any_hierarchy_may_name_the_pod_and_the_outermost_pod_counts() {
        let text = format!("12:pids:/\n11:memory:/kubepods/pod{UID}/x\n0::/system.slice\n");
        assert_eq!(pod_uid(&text).as_deref(), Some(UID));
        let text = format!("0::/kubepods/pod{UID}/x/kubelet/kubepods/pod{STATIC}/y");
        assert_eq!(pod_uid(&text).as_deref(), Some(UID));
    }

    #[test]
    fn a_start_time_is_found_behind_any_command() {
        let fields = "S 1 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654 1000 200";
        for command in ["cat", "a b", "a) S 1 2", "((", ""] {
            assert_eq!(start_time(&format!("42 ({command}) {fields}\n")), Some(987_654));
        }
        for text in ["", "42", "42 (cat", "42 (cat)", "42 (cat) S 1 2", "42 (cat) x)"] {
            assert_eq!(start_time(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "\\PC{0,200}") {
            let _ = (pod_uid(&text), start_time(&text), unit(&text), slurm_job(&text));
            let _ = (container_id(&text), user_id(&text), command(&text));
        }

        #[test]
        fn what_is_found_is_a_uid_that_the_text_holds(
            text in "(0|[1-9]):[a-z,]{0,8}:(/[a-z_.:-]{0,12}(pod)?[0-9a-f_-]{0,40}(\\.slice)?){0,5}",
        ) {
            if let Some(uid) = pod_uid(&text) {
                prop_assert!(uid.len() >= 32);
                prop_assert!(!uid.contains('_'));
                let held = text.replace('_', "-").contains(&format!("pod{uid}"));
                prop_assert!(held);
            }
        }

        #[test]
        fn both_drivers_lead_to_the_same_uid(
            uid in "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32}",
            class in "(burstable|besteffort)?",
            parent in "(/[a-z]{1,9}){0,3}",
            container in "[0-9a-f]{64}",
        ) {
            let dash = if class.is_empty() { "" } else { "-" };
            let slice = format!("kubepods{dash}{class}-pod{}.slice", uid.replace('-', "_"));
            let systemd = format!("0::{parent}/{slice}/cri-containerd-{container}.scope\n");
            prop_assert_eq!(pod_uid(&systemd), Some(uid.clone()));
            let cgroupfs = format!("3:cpu:{parent}/kubepods/{class}/pod{uid}/{container}\n");
            prop_assert_eq!(pod_uid(&cgroupfs), Some(uid));
        }

        #[test]
        fn a_start_time_survives_any_command(command in "\\PC{0,20}", start: u64) {
            let stat = format!("1 ({command}) R{} {start} 0 0", " 0".repeat(18));
            prop_assert_eq!(start_time(&stat), Some(start));
        }
    }
}
