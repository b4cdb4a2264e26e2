//! One GPU on the simulator, read in this process: for what is asked of NVML on behalf of parts
//! that have no row. Each test runs in a process of its own, since the simulator reads its
//! environment when it is loaded, and is loaded once in a process.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use nvml_exporter::catalogue::{Plan, Selection};
use nvml_exporter::config::DeviceSelector;
use nvml_exporter::nvml::reader::Request;
use nvml_exporter::nvml::{Loader, Pass, Reader, Session, Target, topology};
use nvml_exporter::sampler::ProcRoot;
use nvml_exporter::sampler::incidents::Incidents;
use nvml_exporter::sampler::snapshot::GpuReading;

use super::{Call, simulator};

/// Set in a test's own process: where its control file and trace lie.
const DIRECTORY: &str = "NVML_TEST_BENCH";

/// A session on the simulator.
pub(crate) struct Bench {
    session: Arc<Session>,
    directory: PathBuf,
}

impl Bench {
    /// The session, in the test's own process. In the first process that process is run, and
    /// there is none once it has passed.
    pub(crate) fn of(test: &str, scenario: &str, environment: &[(&str, &str)]) -> Option<Self> {
        let Ok(directory) = std::env::var(DIRECTORY) else {
            run_alone(test, environment);
            return None;
        };
        let session = Loader::simulated(scenario, Some(simulator())).open().unwrap();
        Some(Self { session: Arc::new(session), directory: directory.into() })
    }

    /// Another session in place of this one: on what a command made of the machine.
    pub(crate) fn again(self, scenario: &str) -> Self {
        let Self { session, directory } = self;
        drop(session);
        let session = Loader::simulated(scenario, Some(simulator())).open().unwrap();
        Self { session: Arc::new(session), directory }
    }

    /// Tells the simulator something.
    pub(crate) fn control(&self, command: &str) {
        let path = self.directory.join("control");
        let mut text = std::fs::read_to_string(&path).unwrap_or_default();
        writeln!(text, "{command}").unwrap();
        std::fs::write(&path, text).unwrap();
    }

    /// A GPU, with a request of no rows that `ask` adds to.
    pub(crate) fn gpu(&self, index: u32, ask: impl FnOnce(&mut Request)) -> Gpu<'_> {
        let found = topology::look_up(&self.session, index);
        let selection = Arc::new(Selection::default());
        let mut request = Request {
            plan: Plan::new(&selection),
            selection,
            devices: DeviceSelector::default(),
            quirks: false,
            placements: false,
            processes: false,
            accounting: false,
        };
        ask(&mut request);
        let target = Target {
            session: Arc::clone(&self.session),
            handle: found.handle.unwrap(),
            identity: Arc::new(found.identity),
            request: Arc::new(request),
            proc_root: self.proc_root(),
            peers: Vec::new(),
        };
        Gpu { bench: self, target, reader: Reader::default() }
    }

    /// A `/proc` of the test's own, in its directory.
    fn proc_root(&self) -> ProcRoot {
        ProcRoot::new(self.directory.join("proc"))
    }

    /// Puts a process there, in a cgroup.
    pub(crate) fn process(&self, pid: u32, cgroup: &str) {
        let directory = self.directory.join("proc").join(pid.to_string());
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("cgroup"), format!("0::{cgroup}\n")).unwrap();
        let stat = format!("{pid} (python3) S{} 4242 0\n", " 0".repeat(18));
        std::fs::write(directory.join("stat"), stat).unwrap();
    }

    fn trace(&self) -> Vec<Call> {
        let text = std::fs::read_to_string(self.directory.join("trace")).unwrap();
        text.lines().map(Call::parse).collect()
    }
}

fn run_alone(test: &str, environment: &[(&str, &str)]) {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(DIRECTORY, directory.path())
        .env("NVML_SIM_CONTROL", path("control"))
        .env("NVML_SIM_TRACE", path("trace"))
        .envs(environment.iter().copied())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    // A test that was renamed would be found by nobody, and pass.
    assert!(said.contains("1 passed"), "{test}: {said}");
}

/// A GPU under test, with its reader.
pub(crate) struct Gpu<'a> {
    bench: &'a Bench,
    pub(crate) target: Target,
    reader: Reader,
}

impl Gpu<'_> {
    /// Makes a pass: what it came to, and the calls that it made.
    pub(crate) fn pass(&mut self) -> (Pass, Vec<Call>) {
        let before = self.bench.trace().len();
        let pass = self.reader.pass(&self.target, &Incidents::new(Duration::ZERO));
        (pass, self.bench.trace().split_off(before))
    }

    /// Makes a pass in which nothing fails.
    pub(crate) fn reading(&mut self) -> GpuReading {
        let (pass, _) = self.pass();
        assert_eq!(pass.errors, []);
        pass.outcome.unwrap()
    }
}

/// How often a function was called.
pub(crate) fn times(calls: &[Call], function: &str) -> usize {
    calls.iter().filter(|call| call.function == function).count()
}
