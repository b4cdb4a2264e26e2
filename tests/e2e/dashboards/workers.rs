//! Processes of pods, for pictures: the exporter knows a pod's process by its cgroup, so these
//! sleep in cgroups that are named as the kubelet's. Root alone can make them.

use std::path::{Path, PathBuf};
use std::process::{Child, Command};

/// Where cgroups of version 2 are mounted: beside those of version 1, or alone.
const MOUNTS: &[&str] = &["/sys/fs/cgroup/unified", "/sys/fs/cgroup"];

/// A sleeping process in a pod's cgroup; both end when it is dropped.
pub(super) struct Worker {
    process: Child,
    cgroup: PathBuf,
}

impl Worker {
    pub(super) fn of_pod(uid: &str) -> Self {
        let mut mounts = MOUNTS.iter().map(Path::new);
        let mount = mounts.find(|path| path.join("cgroup.procs").exists());
        let cgroup = mount.unwrap_or(Path::new(MOUNTS[1])).join(format!("pod{uid}"));
        let process = Command::new("sleep").arg("infinity").spawn().unwrap();
        // From here on it ends with the value.
        let worker = Self { process, cgroup };
        let entered = std::fs::create_dir(&worker.cgroup)
            .and_then(|()| std::fs::write(worker.cgroup.join("cgroup.procs"), worker.id()));
        entered.unwrap_or_else(|error| {
            panic!("{}: {error}: pictures are recorded as root", worker.cgroup.display())
        });
        worker
    }

    /// The process's number.
    pub(super) fn id(&self) -> String {
        self.process.id().to_string()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir(&self.cgroup);
    }
}
