//! Real processes in real cgroups, laid out as a kubelet, a container runtime, systemd and Slurm
//! do it.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::thread;

/// A cgroup made for one test. It ends with the test; so do the processes in it.
#[derive(Debug)]
pub(crate) struct Cgroup {
    /// From the outermost directory that was made.
    made: Vec<PathBuf>,
    processes: Vec<Child>,
}

impl Cgroup {
    /// Makes a cgroup by its path below the root of a hierarchy.
    pub(crate) fn make(path: &str) -> Self {
        let root = hierarchy();
        for _ in 0..1000 {
            if let Some(made) = try_make(root.clone(), path) {
                return Self { made, processes: Vec::new() };
            }
        }
        panic!("{}: {path} cannot be made", root.display());
    }

    /// Starts a process that does nothing there; its number.
    pub(crate) fn run(&mut self) -> u32 {
        self.adopt(idle())
    }

    /// Moves a process there.
    pub(crate) fn adopt(&mut self, child: Child) -> u32 {
        let pid = child.id();
        let procs = self.made.last().unwrap().join("cgroup.procs");
        fs::write(&procs, pid.to_string()).unwrap();
        self.processes.push(child);
        pid
    }

    /// Ends all processes.
    pub(crate) fn end(&mut self) {
        for mut process in self.processes.drain(..) {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// `None` if another test, at its end, has just removed what both have in common.
fn try_make(mut directory: PathBuf, path: &str) -> Option<Vec<PathBuf>> {
    let mut made = Vec::new();
    for segment in path.split('/') {
        directory.push(segment);
        match fs::create_dir(&directory).map_err(|error| error.kind()) {
            Ok(()) => made.push(directory.clone()),
            Err(ErrorKind::AlreadyExists) => {}
            Err(ErrorKind::NotFound) => return None,
            Err(error) => panic!("{}: {error}", directory.display()),
        }
    }
    // The innermost is this test's in any case, so that its end is seen to.
    if made.last() != Some(&directory) {
        made.push(directory);
    }
    Some(made)
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        self.end();
        for directory in self.made.iter().rev() {
            // One that another test has put something into stays for that one.
            let _ = fs::remove_dir(directory);
        }
    }
}

/// A process that does nothing.
pub(crate) fn idle() -> Child {
    Command::new("sleep").arg("3600").stdin(Stdio::null()).spawn().unwrap()
}

/// A process with the number of one that has ended, as comes about when numbers wrap around.
pub(crate) fn idle_as(pid: u32) -> Child {
    // As many as there are numbers, unless the kernel takes a hint where to go on.
    for _ in 0..100_000 {
        let _ = fs::write("/proc/sys/kernel/ns_last_pid", (pid - 1).to_string());
        let mut child = idle();
        if child.id() == pid {
            return child;
        }
        // Another process of the machine came between.
        let _ = child.kill();
        let _ = child.wait();
    }
    panic!("process {pid} could not be made again");
}

/// Where cgroups can be made: version 2 where it is mounted, else any hierarchy of version 1.
fn hierarchy() -> PathBuf {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let mut roots: Vec<(bool, &str)> = mounts
        .lines()
        .filter_map(|line| {
            let (mount, fs) = line.split_once(" - ")?;
            let kind = fs.split(' ').next()?;
            let root = mount.split(' ').nth(4)?;
            // Controllers that want settings before processes may be moved in are no use here.
            let fit = kind == "cgroup2" || kind == "cgroup" && !root.contains("cpuset");
            fit.then_some((kind != "cgroup2", root))
        })
        .collect();
    roots.sort_unstable();
    let is_writable = |root: &str| {
        let probe = Path::new(root).join(format!(
            "probe-{}-{:?}",
            std::process::id(),
            thread::current().id()
        ));
        fs::create_dir(&probe).and_then(|()| fs::remove_dir(&probe)).is_ok()
    };
    let root = roots.into_iter().map(|(_, root)| root).find(|root| is_writable(root));
    root.map_or_else(mounted, PathBuf::from)
}

/// A hierarchy of one's own, where those that are there cannot be written to.
fn mounted() -> PathBuf {
    static POINT: OnceLock<PathBuf> = OnceLock::new();
    let mount = || {
        let point = tempfile::tempdir().unwrap().keep();
        let mut command = Command::new("mount");
        let done = command.args(["-t", "cgroup2", "none"]).arg(&point).status().unwrap();
        assert!(done.success(), "this test makes cgroups: it has to run as root");
        point
    };
    POINT.get_or_init(mount).clone()
}

/// Pods' cgroups as the kubelet names them, each by another driver and runtime.
pub(crate) fn of_pod(uid: &str, form: usize) -> String {
    let container = format!("{:064x}", form + 1);
    let slice = uid.replace('-', "_");
    match form % 3 {
        0 => format!(
            "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{slice}.slice/\
             cri-containerd-{container}.scope"
        ),
        1 => format!("kubepods/besteffort/pod{uid}/{container}"),
        _ => format!("kubepods.slice/kubepods-pod{slice}.slice/crio-{container}.scope"),
    }
}
