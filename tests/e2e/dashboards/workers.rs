//! Processes of pods, for pictures: the exporter knows a pod's process by its cgroup, so these
//! sleep in cgroups that are named as the kubelet's. Root alone can make them; without, a picture
//! shows pods that have no processes.

use std::path::{Path, PathBuf};
use std::process::{Child, Command};

/// Where cgroups of version 2 are mounted: beside those of version 1, or alone.
const MOUNTS: &[&str] = &["/sys/fs/cgroup/unified", "/sys/fs/cgroup"];

/// A sleeping process in a pod's cgroup; both end when it is dropped.
pub(super) struct Worker {
    process: Child,
    cgroup: Option<PathBuf>,
}

impl Worker {
    pub(super) fn of_pod(uid: &str) -> Self {
        let process = Command::new("sleep").arg("infinity").spawn().unwrap();
        let mounts = MOUNTS.iter().map(Path::new);
        let mount = mounts.into_iter().find(|path| path.join("cgroup.procs").exists());
        let cgroup = mount.and_then(|mount| {
            let cgroup = mount.join(format!("pod{uid}"));
            std::fs::create_dir(&cgroup).ok()?;
            std::fs::write(cgroup.join("cgroup.procs"), process.id().to_string()).ok()?;
            Some(cgroup)
        });
        if cgroup.is_none() {
            eprintln!("no cgroup can be made: the pod {uid} is drawn without processes");
        }
        Self { process, cgroup }
    }

    pub(super) fn pid(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        if let Some(cgroup) = &self.cgroup {
            let _ = std::fs::remove_dir(cgroup);
        }
    }
}
