//! Whose processes are, read from `/proc` and remembered.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, Mode, OFlags};

use super::cgroup::{command, container_id, pod_uid, slurm_job, start_time, unit, user_id};

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

    /// The directory of a process.
    fn open(&self, pid: u32) -> Option<Directory> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::open(self.0.join(pid.to_string()), flags, Mode::empty()).ok().map(Directory)
    }
}

/// A process's directory under `/proc`. It is that process's for good: when the process has ended
/// nothing is found in it any more, whoever has its number then.
#[derive(Debug)]
struct Directory(OwnedFd);

impl Directory {
    /// A file of the process; it may hold any bytes, as a command's name may.
    fn read(&self, file: &str) -> Option<String> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.0, file, flags, Mode::empty()).ok()?;
        let mut bytes = Vec::new();
        File::from(file).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Whether the process is there. Much less work than to read what it is doing.
    fn is_alive(&self) -> bool {
        rustix::fs::statat(&self.0, "stat", AtFlags::empty()).is_ok()
    }
}

/// Whose a process is, as far as the kernel tells.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner {
    /// The UID of the pod, by its cgroup.
    pub pod_uid: Option<Arc<str>>,
    /// The id of the container, by its cgroup.
    pub container_id: Option<Arc<str>>,
    /// The systemd unit, by its cgroup.
    pub unit: Option<Arc<str>>,
    /// The Slurm job, by its cgroup.
    pub slurm_job: Option<Arc<str>>,
    /// The real user id.
    pub user_id: Option<u32>,
    /// The user's name, by this machine's `/etc/passwd`.
    pub user: Option<Arc<str>>,
    /// The command's name.
    pub command: Option<Arc<str>>,
    /// When the process started, in clock ticks after boot.
    pub start: Option<u64>,
}

impl Owner {
    /// What is known of a process, and whether that is all; `None` if it has ended.
    fn read(directory: &Directory) -> Option<(Self, bool)> {
        let stat = directory.read("stat")?;
        let cgroup = directory.read("cgroup");
        let user_id = directory.read("status").and_then(|status| user_id(&status));
        let complete = cgroup.is_some();
        let cgroup = cgroup.unwrap_or_default();
        let owner = Self {
            pod_uid: pod_uid(&cgroup).map(Into::into),
            container_id: container_id(&cgroup).map(Into::into),
            unit: unit(&cgroup).map(Into::into),
            slurm_job: slurm_job(&cgroup).map(Into::into),
            user_id,
            user: user_id.and_then(user_name).map(Into::into),
            command: command(&stat).map(Into::into),
            start: start_time(&stat),
        };
        Some((owner, complete))
    }
}

/// Users of a directory service have a number alone: asking for them can take for ever.
fn user_name(id: u32) -> Option<String> {
    let id = id.to_string();
    let passwd = std::fs::read_to_string("/etc/passwd").ok()?;
    let mut lines = passwd.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let line = lines.find(|fields| fields.get(2) == Some(&id.as_str()))?;
    line.first().map(|name| (*name).to_owned())
}

/// So many directories are kept open for one GPU, so that open files do not run out on a node
/// with many GPUs and processes. Processes beyond that are looked at by what they are doing.
const OPEN: usize = 32;

/// A process may be moved to another unit or job, and run another command: this often it is looked
/// at again.
const AGAIN: Duration = Duration::from_secs(60);

/// One process, as it was found.
#[derive(Debug)]
struct Process {
    directory: Option<Directory>,
    owner: Arc<Owner>,
    /// When it was found the same as before.
    settled: Option<Instant>,
}

impl Process {
    fn first(root: &ProcRoot, pid: u32) -> Option<Self> {
        let directory = root.open(pid)?;
        let (owner, _) = Owner::read(&directory)?;
        Some(Self { directory: Some(directory), owner: Arc::new(owner), settled: None })
    }

    /// Looks again; `None` if it has ended.
    fn again(self, root: &ProcRoot, pid: u32) -> Option<Self> {
        let is_settled = self.settled.is_some_and(|at| at.elapsed() < AGAIN);
        if let (Some(directory), true) = (&self.directory, is_settled) {
            return directory.is_alive().then_some(self);
        }
        let directory = match self.directory {
            Some(directory) => directory,
            None => root.open(pid)?,
        };
        if is_settled {
            let start = start_time(&directory.read("stat")?);
            return (start.is_some() && start == self.owner.start)
                .then_some(Self { directory: Some(directory), ..self });
        }
        let (owner, complete) = Owner::read(&directory)?;
        let directory = Some(directory);
        if *self.owner == owner {
            // A file that could not be read is tried again.
            return Some(Self { directory, settled: complete.then(Instant::now), ..self });
        }
        Some(Self { directory, owner: Arc::new(owner), settled: None })
    }
}

/// The owners of the processes that one GPU listed last. A process belongs to its owner from soon
/// after its start; the number of one that ended can be another's.
#[derive(Debug, Default)]
pub struct Owners(HashMap<u32, Process>);

impl Owners {
    /// Looks at these processes and forgets all others.
    pub fn look_up(&mut self, root: &ProcRoot, pids: impl IntoIterator<Item = u32>) {
        let mut former = std::mem::take(&mut self.0);
        let mut open = 0;
        for pid in pids {
            if self.0.contains_key(&pid) {
                continue;
            }
            let known = former.remove(&pid).and_then(|known| known.again(root, pid));
            let Some(mut found) = known.or_else(|| Process::first(root, pid)) else { continue };
            open += 1;
            found.directory = found.directory.filter(|_| open <= OPEN);
            self.0.insert(pid, found);
        }
    }

    /// Whose the process is; `None` if it was not found.
    #[must_use]
    pub fn of(&self, pid: u32) -> Option<Arc<Owner>> {
        self.0.get(&pid).map(|process| Arc::clone(&process.owner))
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
    use std::sync::Arc;

    use tempfile::TempDir;

    use super::{Owners, ProcRoot};

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

    fn uid(owners: &Owners, pid: u32) -> Option<Arc<str>> {
        owners.of(pid)?.pod_uid.clone()
    }

    fn pod(uid: &str) -> String {
        format!("pod{uid}")
    }

    #[test]
    fn a_process_is_in_its_pod_in_none_or_not_to_be_seen() {
        let directory = tempfile::tempdir().unwrap();
        put(&directory, 10, 100, Some(&pod(ONE)));
        put(&directory, 11, 100, Some("system.slice"));
        let mut owners = Owners::default();
        owners.look_up(&ProcRoot::new(directory.path()), [10, 11, 12, 10]);
        assert_eq!([10, 11, 12].map(|pid| uid(&owners, pid)), [Some(ONE.into()), None, None]);
        assert_eq!(owners.visible(), 2);
        owners.look_up(&ProcRoot::new(directory.path()), []);
        assert_eq!((uid(&owners, 10), owners.visible()), (None, 0));
    }

    #[test]
    fn a_cgroup_is_read_until_it_is_the_same_twice_or_the_number_another_processs() {
        let directory = tempfile::tempdir().unwrap();
        let root = ProcRoot::new(directory.path());
        let mut owners = Owners::default();
        put(&directory, 10, 100, Some("user.slice"));
        owners.look_up(&root, [10]);
        assert_eq!(uid(&owners, 10), None);
        put(&directory, 10, 100, Some(&pod(ONE)));
        for _ in 0..2 {
            owners.look_up(&root, [10]);
            assert_eq!(uid(&owners, 10).as_deref(), Some(ONE), "where it was put");
        }
        put(&directory, 10, 100, Some(&pod(OTHER)));
        owners.look_up(&root, [10]);
        assert_eq!(uid(&owners, 10).as_deref(), Some(ONE), "the same process");
        fs::remove_dir_all(directory.path().join("10")).unwrap();
        put(&directory, 10, 200, Some(&pod(OTHER)));
        owners.look_up(&root, [10]);
        assert_eq!(uid(&owners, 10).as_deref(), Some(OTHER), "another one");
    }

    #[test]
    fn of_many_processes_each_is_told_from_a_later_one_of_its_number() {
        let directory = tempfile::tempdir().unwrap();
        let root = ProcRoot::new(directory.path());
        let pids = || 10..10 + 2 * u32::try_from(super::OPEN).unwrap();
        let mut owners = Owners::default();
        for (start, of) in [(100, ONE), (200, OTHER)] {
            for pid in pids() {
                let _ = fs::remove_dir_all(directory.path().join(pid.to_string()));
                put(&directory, pid, start, Some(&pod(of)));
            }
            for _ in 0..3 {
                owners.look_up(&root, pids());
                assert!(pids().all(|pid| uid(&owners, pid).as_deref() == Some(of)), "{start}");
            }
        }
        assert_eq!(owners.0.values().filter(|one| one.directory.is_some()).count(), super::OPEN);
    }

    #[test]
    fn a_cgroup_that_could_not_be_read_is_tried_again() {
        let directory = tempfile::tempdir().unwrap();
        let root = ProcRoot::new(directory.path());
        put(&directory, 10, 100, None);
        let mut owners = Owners::default();
        owners.look_up(&root, [10]);
        assert_eq!((uid(&owners, 10), owners.visible()), (None, 1));
        put(&directory, 10, 100, Some(&pod(ONE)));
        owners.look_up(&root, [10]);
        assert_eq!(uid(&owners, 10).as_deref(), Some(ONE));
    }

    #[test]
    fn this_process_is_to_be_seen() {
        let mut owners = Owners::default();
        owners.look_up(&ProcRoot::default(), [std::process::id()]);
        assert_eq!(owners.visible(), 1);
    }
}
