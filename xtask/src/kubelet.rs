//! `e2e-kubelet`: the exporter beside a real kubelet, which gives the simulator's GPUs to pods.
//!
//! Not part of CI: it needs root and Go, and compiling a kubelet takes minutes.
//! Containers, mounts and processes are in namespaces of their own, so that they end with this
//! command however it ends; only empty control groups are left for it to remove.

mod answer;
mod devices;
mod node;
mod page;
mod steps;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::needs::{self, BUSYBOX, CONTAINERD, RUNC};
use crate::shell::{self, Outcome, cargo, program};

const USAGE: &str = "usage: cargo xtask e2e-kubelet [--record]";
/// How this program calls itself again, inside the namespaces.
const INSIDE: &str = "--inside";
/// The Go module with the kubelet and what the test needs around it.
const MODULE: &str = "tests/kubelet";
/// Its programs.
const PROGRAMS: [&str; 4] = ["kubelet", "deviceplugin", "record", "image"];
/// Where `--record` puts the kubelet's answers.
const FIXTURES: &str = "tests/data/kubelet";
/// The parent of all containers' control groups: containerd gives it this name, to Kubernetes'
/// containers of any containerd.
const CONTROL_GROUP: &str = "k8s.io";
/// Killed processes leave their control groups a moment later.
const CONTROL_GROUP_TRIES: u32 = 50;
const LOOK_EVERY: Duration = Duration::from_millis(100);

pub(crate) fn run(arguments: &[String]) -> Outcome {
    let record = match arguments {
        [] => false,
        [record] if record == "--record" => true,
        [inside] if inside == INSIDE => return steps::run(),
        _ => return Err(USAGE.to_owned()),
    };
    check_machine()?;
    needs::packages(&[CONTAINERD, RUNC, BUSYBOX])?;
    // Not the whole workspace: this program would be built anew, and could not call itself again.
    let packages = ["build", "--package", "nvml-exporter", "--package", "nvml-simulator"];
    shell::run(&mut cargo(&packages))?;
    build()?;
    for folder in [recorded(), logs()] {
        empty(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    let ended = inside();
    remove_control_groups();
    if ended.is_err() {
        eprintln!("what its parts said is in {}", logs().display());
    }
    if record && ended.is_ok() {
        copy_answers().map_err(|error| format!("{FIXTURES}: {error}"))?;
    }
    ended
}

/// What is built, recorded and said.
fn folder() -> PathBuf {
    shell::target().join("e2e-kubelet")
}

fn bin(name: &str) -> PathBuf {
    folder().join("bin").join(name)
}

fn recorded() -> PathBuf {
    folder().join("recorded")
}

fn logs() -> PathBuf {
    folder().join("logs")
}

fn module() -> PathBuf {
    shell::root().join(MODULE)
}

/// What no package brings.
fn check_machine() -> Outcome {
    if !rustix::process::geteuid().is_root() {
        return Err("a kubelet and containerd run as root: run this as root".to_owned());
    }
    let runs = |group: &PathBuf| {
        let processes = fs::read_to_string(group.join("cgroup.procs"));
        processes.is_ok_and(|processes| !processes.is_empty())
    };
    if let Some(group) = control_groups().iter().find(|group| runs(group)) {
        return Err(format!(
            "Kubernetes' containers run on this machine ({}): this is for one without",
            group.display()
        ));
    }
    if !shell::works("go", &["version"]) {
        return Err(format!(
            "Go is missing: the kubelet is compiled from its module. Install the release that \
             {MODULE}/go.mod names or a later one (https://go.dev/dl), so that it is found on PATH"
        ));
    }
    for (name, package) in [("unshare", "util-linux"), ("setpriv", "util-linux")] {
        if !shell::works(name, &["--version"]) {
            return Err(format!("{name} is missing; Debian's package {package} has it"));
        }
    }
    let namespaces = ["--mount", "--net", "--pid", "--fork", "--mount-proc", "true"];
    shell::output(&mut program("unshare", &namespaces)).map(drop).map_err(|problem| {
        format!("this machine gives no namespaces, which keep the test apart from it: {problem}")
    })
}

/// Compiles what is written in Go; a minute or ten the first time.
fn build() -> Outcome {
    let version = kubernetes_version()?;
    // What a release is told when it is built, and what `kubelet --version` says.
    let flags = format!("-s -w -X k8s.io/component-base/version.gitVersion={version}");
    let mut command = program("go", &["build", "-trimpath", "-buildvcs=false", "-ldflags", &flags]);
    command.arg("-o").arg(folder().join("bin/"));
    command.args(PROGRAMS.map(|name| format!("./{name}")));
    // Static, since two of them run where no library is.
    shell::run(command.env("CGO_ENABLED", "0").current_dir(module()))
}

fn kubernetes_version() -> Outcome<String> {
    let path = module().join("go.mod");
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let version = text.lines().find_map(|line| line.trim().strip_prefix("k8s.io/kubernetes "));
    version
        .map(str::to_owned)
        .ok_or_else(|| format!("{}: requires no k8s.io/kubernetes", path.display()))
}

/// Runs this program again as the first process of its own world, whose end ends all others in it.
fn inside() -> Outcome {
    let exe = std::env::current_exe().map_err(|error| format!("who am I: {error}"))?;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))
            .map_err(|error| format!("cannot catch signals: {error}"))?;
    }
    // `setpriv` ends `unshare` when this process is killed; `--kill-child` passes it on.
    let words = "--pdeathsig KILL unshare --mount --net --pid --fork --kill-child --mount-proc";
    let mut child = Command::new("setpriv")
        .args(words.split(' '))
        .arg(exe)
        .args(["e2e-kubelet", INSIDE])
        .spawn()
        .map_err(|error| format!("cannot run setpriv: {error}"))?;
    let ended = wait(&mut child, &stop);
    // It may have ended by itself.
    let _ = child.kill();
    let _ = child.wait();
    ended
}

fn wait(child: &mut Child, stop: &AtomicBool) -> Outcome {
    loop {
        match child.try_wait().map_err(|error| format!("cannot wait: {error}"))? {
            Some(status) if status.success() => return Ok(()),
            Some(_) => return Err("the test failed".to_owned()),
            None if stop.load(Ordering::Relaxed) => return Err("interrupted".to_owned()),
            None => thread::sleep(LOOK_EVERY),
        }
    }
}

/// Control groups below the one for containers, and it itself, the innermost first: in all
/// hierarchies (version 1), or the one there is (version 2).
fn control_groups() -> Vec<PathBuf> {
    let root = Path::new("/sys/fs/cgroup");
    let mut found = Vec::new();
    for hierarchy in subfolders(root).chain([root.to_owned()]) {
        let group = hierarchy.join(CONTROL_GROUP);
        if group.exists() {
            collect(group, &mut found);
        }
    }
    found
}

fn collect(group: PathBuf, found: &mut Vec<PathBuf>) {
    for inner in subfolders(&group) {
        collect(inner, found);
    }
    found.push(group);
}

fn subfolders(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_dir())
}

/// Removes all of them; one with processes is refused, and tried again.
fn remove_control_groups() {
    let mut left = Vec::new();
    for _ in 0..CONTROL_GROUP_TRIES {
        left = control_groups();
        left.retain(|group| fs::remove_dir(group).is_err());
        if left.is_empty() {
            return;
        }
        thread::sleep(LOOK_EVERY);
    }
    eprintln!("control groups are still in use, and stay: {left:?}");
}

fn empty(folder: &Path) -> std::io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    fs::create_dir_all(folder)
}

fn copy_answers() -> std::io::Result<()> {
    let fixtures = shell::root().join(FIXTURES);
    for entry in fs::read_dir(recorded())? {
        let entry = entry?;
        fs::copy(entry.path(), fixtures.join(entry.file_name()))?;
    }
    eprintln!("recorded answers are in {FIXTURES}");
    Ok(())
}
