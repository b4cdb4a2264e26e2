//! Loading the library in a test.
//!
//! The library has one state per copy that is loaded. So each test loads a copy of its own: tests
//! of one process cannot meet.

use std::ffi::{CStr, CString, c_char};
use std::path::{Path, PathBuf};

use libloading::{Library, Symbol};
use nvml_wrapper::Nvml;
use tempfile::TempDir;

/// A copy of the library, playing a scenario.
pub(crate) struct Simulator {
    library: Library,
    path: PathBuf,
    _directory: TempDir,
}

impl Simulator {
    /// Loads a copy with what the environment says.
    pub(crate) fn load() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("libnvidia-ml.so.1");
        std::fs::copy(built_library(), &path).unwrap();
        let library = open(&path);
        Self { library, path, _directory: directory }
    }

    /// Loads a copy and chooses a scenario, at a frozen clock.
    pub(crate) fn play(scenario: &str) -> Self {
        let simulator = Self::load();
        assert_eq!(simulator.choose(scenario), 0, "{scenario}");
        simulator.control("clock freeze 2000000");
        simulator
    }

    /// Chooses a scenario.
    pub(crate) fn choose(&self, name: &str) -> u32 {
        let name = CString::new(name).unwrap();
        let choose: Symbol<unsafe extern "C" fn(*const c_char) -> u32> =
            self.symbol("nvmlSimulatorSetScenario").unwrap();
        // SAFETY: the function has this signature, and the string lives through the call.
        unsafe { choose(name.as_ptr()) }
    }

    /// Carries out a control command.
    pub(crate) fn control(&self, command: &str) {
        assert_eq!(self.try_control(command), 0, "{command}");
    }

    /// Carries out a control command, if it is one.
    pub(crate) fn try_control(&self, command: &str) -> u32 {
        let command = CString::new(command).unwrap();
        let control: Symbol<unsafe extern "C" fn(*const c_char) -> u32> =
            self.symbol("nvmlSimulatorControl").unwrap();
        // SAFETY: the function has this signature, and the string lives through the call.
        unsafe { control(command.as_ptr()) }
    }

    /// The names of the built-in scenarios.
    pub(crate) fn scenarios(&self) -> Vec<String> {
        let names: Symbol<unsafe extern "C" fn() -> *const c_char> =
            self.symbol("nvmlSimulatorScenarios").unwrap();
        // SAFETY: the function has this signature and returns a string that lives for ever.
        let text = unsafe { CStr::from_ptr(names()) };
        text.to_str().unwrap().lines().map(str::to_owned).collect()
    }

    /// Looks a symbol up.
    pub(crate) fn symbol<T>(&self, name: &str) -> Option<Symbol<'_, T>> {
        // SAFETY: callers name the type that nvml.h gives the function.
        unsafe { self.library.get(name.as_bytes()) }.ok()
    }

    /// Opens a session as nvml-wrapper does.
    pub(crate) fn nvml(&self) -> Nvml {
        self.try_nvml().unwrap()
    }

    /// Tries to open a session.
    pub(crate) fn try_nvml(&self) -> Result<Nvml, nvml_wrapper::error::NvmlError> {
        Nvml::builder().lib_path(self.path.as_os_str()).init()
    }
}

fn open(path: &Path) -> Library {
    // SAFETY: the library's constructor only reads the environment and its own image.
    unsafe { Library::new(path) }.unwrap()
}

/// The library lies beside the test executable.
fn built_library() -> PathBuf {
    let mut path = std::env::current_exe().unwrap();
    path.pop();
    path.join("libnvml_simulator.so")
}

/// The name of the error that a call gave.
pub(crate) fn refusal<T, E: std::fmt::Debug>(answer: Result<T, E>) -> String {
    match answer {
        Ok(_) => "nothing: it was answered".to_owned(),
        Err(error) => format!("{error:?}"),
    }
}

/// Runs the rest of a test in a process of its own with some environment: true in that process,
/// false in the first, once the other one has passed.
pub(crate) fn in_child(test: &str, environment: &[(&str, &str)]) -> bool {
    const MARK: &str = "NVML_SIM_TEST_CHILD";
    if std::env::var_os(MARK).is_some() {
        return true;
    }
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", test, "--nocapture", "--test-threads=1"]).env(MARK, "1");
    let output = child.envs(environment.iter().copied()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    false
}
