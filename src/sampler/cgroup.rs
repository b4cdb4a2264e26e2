//! Which pod a process belongs to, by the names that the kubelet gives cgroups. Pure.

/// Pod UIDs are at least so long: 36 characters, or 32 for a static pod, whose UID is a hash.
const UID_MIN: usize = 32;

/// Longer names are nobody's UID.
const UID_MAX: usize = 128;

/// The pod UID in the text of `/proc/<pid>/cgroup` (`cgroups(7)`), in the form that the API server
/// writes it; `None` for a process of no pod.
///
/// A line is `<hierarchy>:<controllers>:<path>`; cgroup v2 has one, v1 one a hierarchy. The kubelet
/// names a pod's cgroup `pod<uid>` (driver `cgroupfs`) or `kubepods-…-pod<uid>.slice` (driver
/// `systemd`, which has `_` for `-`). The outermost pod counts: it is the node's kubelet that hands
/// out devices.
#[must_use]
pub fn pod_uid(cgroup: &str) -> Option<String> {
    let paths = cgroup.lines().filter_map(|line| line.splitn(3, ':').nth(2));
    // A runtime that takes systemd's form for a path leaves `:` between its parts.
    paths.flat_map(|path| path.split(['/', ':'])).find_map(uid_of_segment)
}

fn uid_of_segment(segment: &str) -> Option<String> {
    let name = segment.strip_suffix(".slice").unwrap_or(segment);
    let uid = name.strip_prefix("pod").or_else(|| name.rsplit_once("-pod").map(|(_, uid)| uid))?;
    let uid = uid.replace('_', "-");
    let is_uid = (UID_MIN..=UID_MAX).contains(&uid.len())
        && uid.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    is_uid.then_some(uid)
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

    use super::{pod_uid, start_time};

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
            let _ = (pod_uid(&text), start_time(&text));
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
