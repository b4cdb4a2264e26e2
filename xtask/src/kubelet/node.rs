//! A Kubernetes node of one machine, without an API server: containerd, the kubelet, device
//! plugins, and the exporter beside them. All of it runs inside namespaces of its own.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::mount::{MountFlags, mount, mount_bind};

use super::answer::Answer;
use super::{bin, logs, module, recorded};
use crate::http;
use crate::shell::{self, Outcome, program};

const SCENARIO: &str = "h200-mig-and-whole";
pub(super) const NODE: &str = "gpu-node";
const CONTAINERD: &str = "/run/containerd/containerd.sock";
const POD_RESOURCES: &str = "/var/lib/kubelet/pod-resources/kubelet.sock";
/// Where the kubelet looks for pods, as `kubelet.yaml` has it.
const PODS: &str = "/run/pods";
const IMAGES: &str = "/run/images.tar";
const BUSYBOX: &str = "/bin/busybox";
const PORT: u16 = 9400;
/// Empty here and gone with the namespace. The kubelet's paths for devices cannot be moved.
const OWN_FOLDERS: [&str; 3] = ["/run", "/var/lib", "/var/log"];
/// What a kubelet wants of the kernel and sets if it is otherwise. It finds files that say so
/// already, so that the machine's settings stay what they are.
const KERNEL_SETTINGS: [(&str, &str); 6] = [
    ("kernel/keys/root_maxbytes", "25000000"),
    ("kernel/keys/root_maxkeys", "1000000"),
    ("kernel/panic", "10"),
    ("kernel/panic_on_oops", "1"),
    ("vm/overcommit_memory", "1"),
    ("vm/panic_on_oom", "0"),
];
/// For what a node does; a run that needs as long has failed.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What runs is killed when dropped.
pub(super) struct Node {
    running: BTreeMap<String, Child>,
}

impl Node {
    /// A node whose container runtime is up, without kubelet.
    pub(super) fn new() -> Outcome<Self> {
        own_world().map_err(|error| format!("cannot set up the namespaces: {error}"))?;
        shell::output(&mut program(BUSYBOX, &["ip", "link", "set", "lo", "up"]))?;
        let mut node = Self { running: BTreeMap::new() };
        let mut containerd = Command::new("containerd");
        node.start("containerd", containerd.arg("--config").arg(module().join("containerd.toml")))?;
        let ctr = |words: &str| {
            let words: Vec<&str> = words.split(' ').collect();
            let mut command = program("ctr", &["--address", CONTAINERD, "--namespace", "k8s.io"]);
            shell::output(command.args(words))
        };
        until("containerd", || ctr("version"))?;
        shell::output(&mut program(bin("image"), &[BUSYBOX, IMAGES]))?;
        ctr(&format!("images import {IMAGES}"))?;
        Ok(node)
    }

    /// Starts a program; what it says is in a file of that name, after what one before it said.
    fn start(&mut self, name: &str, command: &mut Command) -> Outcome {
        let path = logs().join(format!("{}.log", name.replace('/', "_")));
        let log = |path: &Path| {
            let out = File::options().create(true).append(true).open(path)?;
            Ok::<_, std::io::Error>((out.try_clone()?, out))
        };
        let (out, err) = log(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let child = command.stdin(Stdio::null()).stdout(out).stderr(err).spawn();
        let child = child.map_err(|error| format!("cannot run {name}: {error}"))?;
        self.running.insert(name.to_owned(), child);
        Ok(())
    }

    /// Ends it as `kill -9` does: without a farewell.
    pub(super) fn kill(&mut self, name: &str) {
        if let Some(mut child) = self.running.remove(name) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    pub(super) fn start_kubelet(&mut self) -> Outcome {
        let mut kubelet = Command::new(bin("kubelet"));
        kubelet.arg("--config").arg(module().join("kubelet.yaml"));
        self.start("kubelet", kubelet.args(["--hostname-override", NODE]))
    }

    pub(super) fn start_exporter(&mut self) -> Outcome {
        let mut exporter = Command::new(shell::target().join("debug/nvml-exporter"));
        exporter
            .args(["--simulate", SCENARIO, "--collect-interval=1s", "--kubernetes"])
            .args(["--attribution=both", "--kubernetes-virtual-gpus"])
            .arg(format!("--address=127.0.0.1:{PORT}"))
            .arg(format!("--pod-resources-kubelet-socket={POD_RESOURCES}"));
        self.start("exporter", &mut exporter)
    }

    /// Announces devices under a resource's name.
    pub(super) fn start_plugin(&mut self, resource: &str, ids: &[String]) -> Outcome {
        self.start(resource, Command::new(bin("deviceplugin")).arg(resource).args(ids))
    }

    /// Hands the kubelet a pod of `tests/kubelet/pods`.
    pub(super) fn add_pod(name: &str) -> Outcome {
        let from = module().join("pods").join(name);
        fs::copy(&from, pod(name)).map(drop).map_err(|error| format!("{}: {error}", from.display()))
    }

    pub(super) fn remove_pod(name: &str) -> Outcome {
        fs::remove_file(pod(name)).map_err(|error| format!("{}: {error}", pod(name).display()))
    }

    /// What the kubelet says now.
    pub(super) fn ask() -> Outcome<Answer> {
        let text = shell::output(&mut program(bin("record"), &[POD_RESOURCES]))?;
        Answer::parse(&text)
    }

    /// The same, kept under a name.
    pub(super) fn record(name: &str) -> Outcome<Answer> {
        let prefix = recorded().join(name);
        let mut record = program(bin("record"), &[POD_RESOURCES]);
        Answer::parse(&shell::output(record.arg(prefix))?)
    }

    pub(super) fn page() -> Outcome<String> {
        http::get(PORT, "/metrics").map_err(|error| format!("the exporter's page: {error}"))
    }

    /// The log of a program started by this name.
    pub(super) fn said(name: &str) -> String {
        let path = logs().join(format!("{}.log", name.replace('/', "_")));
        fs::read_to_string(path).unwrap_or_default()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // Containers' processes are not in the list; they end with the namespace.
        let names: Vec<String> = self.running.keys().cloned().collect();
        for name in names {
            self.kill(&name);
        }
    }
}

fn pod(name: &str) -> PathBuf {
    Path::new(PODS).join(name)
}

fn own_world() -> std::io::Result<()> {
    for folder in OWN_FOLDERS {
        mount("tmpfs", folder, "tmpfs", MountFlags::empty(), None)?;
    }
    fs::create_dir_all(PODS)?;
    for (name, value) in KERNEL_SETTINGS {
        let file = Path::new("/run/kernel").join(name);
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&file, value)?;
        mount_bind(&file, Path::new("/proc/sys").join(name))?;
    }
    Ok(())
}

/// Tries until it succeeds, and says why it does not when patience ends.
pub(super) fn until<T>(what: &str, attempt: impl FnMut() -> Outcome<T>) -> Outcome<T> {
    within(PATIENCE, what, attempt)
}

/// The same with another patience.
pub(super) fn within<T>(
    patience: Duration,
    what: &str,
    mut attempt: impl FnMut() -> Outcome<T>,
) -> Outcome<T> {
    let end = Instant::now() + patience;
    loop {
        match attempt() {
            Ok(found) => return Ok(found),
            Err(problem) if Instant::now() > end => {
                return Err(format!("{what}: not within {} s: {problem}", patience.as_secs()));
            }
            Err(_) => std::thread::sleep(LOOK_EVERY),
        }
    }
}
