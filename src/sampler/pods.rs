//! Which pods processes belong to, read from `/proc` and remembered.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use super::cgroup::{pod_uid, start_time};

/// Where the kernel tells of processes: `/proc`, unless a test has one of its own. Processes of
/// pods are there only in the node's own process namespace (`hostPID`).
#[derive(Debug, Clone)]
pub struct ProcRoot(Arc<Path>);

impl Default for ProcRoot {
    fn default() -> Self {
        Self::new("/proc")
    }
}

impl ProcRoot {
    /// A directory laid out as `/proc` is.
    #[must_use]
    pub fn new(path: impl AsRef<Path>) -> Self {
        Self(path.as_ref().into())
    }

    /// A file of a process; it may hold any bytes, as a command's name may.
    fn read(&self, pid: u32, file: &str) -> Option<String> {
        let bytes = std::fs::read(self.0.join(pid.to_string()).join(file)).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// One process, as it was found.
#[derive(Debug, Clone)]
struct Process {
    start: Option<u64>,
    pod_uid: Option<Arc<str>>,
}

/// The pods of the processes that one GPU listed last. A process does not change pods, and the
/// number of one that ended can be another's: number and start time together tell them apart.
#[derive(Debug, Default)]
pub struct Pods(HashMap<u32, Process>);

impl Pods {
    /// Looks at these processes and forgets all others. Each one's cgroup is read once.
    pub fn look_up(&mut self, root: &ProcRoot, pids: impl IntoIterator<Item = u32>) {
        let mut former = std::mem::take(&mut self.0);
        for pid in pids {
            if self.0.contains_key(&pid) {
                continue;
            }
            let Some(text) = root.read(pid, "stat") else { continue };
            let start = start_time(&text);
            let known = former.remove(&pid).filter(|known| start.is_some() && known.start == start);
            let process = known.unwrap_or_else(|| {
                let cgroup = root.read(pid, "cgroup");
                Process {
                    // A file that could not be read is tried again.
                    start: start.filter(|_| cgroup.is_some()),
                    pod_uid: cgroup.and_then(|text| pod_uid(&text)).map(Into::into),
                }
            });
            self.0.insert(pid, process);
        }
    }

    /// The pod of a process; `None` if it is in none, or was not found.
    #[must_use]
    pub fn of(&self, pid: u32) -> Option<Arc<str>> {
        self.0.get(&pid)?.pod_uid.clone()
    }

    /// How many of the processes were found at all.
    #[must_use]
    pub fn visible(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::{Pods, ProcRoot};

    const ONE: &str = "11111111-1111-1111-1111-111111111111";
    const OTHER: &str = "22222222-2222-2222-2222-222222222222";

    fn put(root: &TempDir, pid: u32, start: u64, cgroup: Option<&str>) {
        let directory = root.path().join(pid.to_string());
        fs::create_dir_all(&directory).unwrap();
        let text = format!("{pid} (python 3) S{} {start} 0\n", " 0".repeat(18));
        fs::write(directory.join("stat"), text).unwrap();
        let path = directory.join("cgroup");
        match cgroup {
            Some(text) => fs::write(path, format!("0::/kubepods/{text}/x\n")).unwrap(),
            None => fs::remove_file(path).unwrap_or_default(),
        }
    }

    fn pod(uid: &str) -> String {
        format!("pod{uid}")
    }

    #[test]
    fn a_process_is_in_its_pod_in_none_or_not_to_be_seen() {
        let directory = tempfile::tempdir().unwrap();
        put(&directory, 10, 100, Some(&pod(ONE)));
        put(&directory, 11, 100, Some("system.slice"));
        let mut pods = Pods::default();
        pods.look_up(&ProcRoot::new(directory.path()), [10, 11, 12, 10]);
        assert_eq!([10, 11, 12].map(|pid| pods.of(pid)), [Some(ONE.into()), None, None]);
        assert_eq!(pods.visible(), 2);
        pods.look_up(&ProcRoot::new(directory.path()), []);
        assert_eq!((pods.of(10), pods.visible()), (None, 0));
    }

    #[test]
    fn a_cgroup_is_read_once_until_the_number_is_another_processs() {
        let directory = tempfile::tempdir().unwrap();
        let root = ProcRoot::new(directory.path());
        put(&directory, 10, 100, Some(&pod(ONE)));
        let mut pods = Pods::default();
        pods.look_up(&root, [10]);
        put(&directory, 10, 100, Some(&pod(OTHER)));
        pods.look_up(&root, [10]);
        assert_eq!(pods.of(10).as_deref(), Some(ONE), "the same process");
        put(&directory, 10, 200, Some(&pod(OTHER)));
        pods.look_up(&root, [10]);
        assert_eq!(pods.of(10).as_deref(), Some(OTHER), "another one");
    }

    #[test]
    fn a_cgroup_that_could_not_be_read_is_tried_again() {
        let directory = tempfile::tempdir().unwrap();
        let root = ProcRoot::new(directory.path());
        put(&directory, 10, 100, None);
        let mut pods = Pods::default();
        pods.look_up(&root, [10]);
        assert_eq!((pods.of(10), pods.visible()), (None, 1));
        put(&directory, 10, 100, Some(&pod(ONE)));
        pods.look_up(&root, [10]);
        assert_eq!(pods.of(10).as_deref(), Some(ONE));
    }

    #[test]
    fn this_process_is_to_be_seen() {
        let mut pods = Pods::default();
        pods.look_up(&ProcRoot::default(), [std::process::id()]);
        assert_eq!(pods.visible(), 1);
    }
}
