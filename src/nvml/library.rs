//! Loading NVML and starting a session on it.

use std::ffi::{CStr, CString, OsStr};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use libloading::Library;
use nvml_wrapper::Nvml;
use nvml_wrapper::bitmasks::InitFlags;
use nvml_wrapper::error::NvmlError;

use super::code::Code;
use super::elf;
use super::gpm::Buffers;
use crate::sampler::snapshot::LibraryFacts;

/// The names that the dynamic linker resolves: containers hold only the versioned one, some
/// development hosts only the other.
const SONAMES: &[&str] = &["libnvidia-ml.so.1", "libnvidia-ml.so"];

/// Where container platforms mount the host's driver without telling the dynamic linker.
const MOUNT_DIRS: &[&str] = &[
    "/usr/local/nvidia/lib64",
    "/home/kubernetes/bin/nvidia/lib64",
    "/run/nvidia/driver/usr/lib/x86_64-linux-gnu",
    "/run/nvidia/driver/usr/lib/aarch64-linux-gnu",
    "/run/nvidia/driver/usr/lib64",
    "/usr/lib/wsl/lib",
];

/// The simulator's file name, looked for beside the executable and in `../lib`.
const SIMULATOR: &str = "libnvml_simulator.so";

/// The simulator's own entry point, which no real NVML has.
const SET_SCENARIO: &[u8] = b"nvmlSimulatorSetScenario\0";

/// What is loaded, and how. Loading again after a driver change uses the same.
#[derive(Debug, Clone)]
pub struct Loader {
    candidates: Vec<PathBuf>,
    scenario: Option<String>,
}

/// Why there is no session.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// No candidate could be opened.
    #[error(
        "no NVML library could be loaded ({tried}); is the NVIDIA driver installed, and in a \
         container: is the nvidia runtime class set and NVIDIA_DRIVER_CAPABILITIES=utility?"
    )]
    NotFound {
        /// What the dynamic linker said of each candidate.
        tried: String,
    },
    /// The library is there and `nvmlInit` failed.
    #[error("{path}: nvmlInit failed: {}; {}", .code.name(), hint(*.code))]
    Init {
        /// The library loaded.
        path: String,
        /// What it answered.
        code: Code,
    },
    /// The simulator is not where it should be.
    #[error(
        "--simulate: the simulator's library is not beside the program, nor in ../lib ({tried})"
    )]
    NoSimulator {
        /// What the dynamic linker said of each place.
        tried: String,
    },
    /// The simulator refused the scenario.
    #[error("--simulate={scenario}: no such scenario, or its file is wrong ({}); built in: {known}",
        .code.name())]
    Scenario {
        /// As given.
        scenario: String,
        /// What the simulator answered.
        code: Code,
        /// The built-in scenarios.
        known: String,
    },
}

impl LoadError {
    /// A short constant for a label.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "library_not_found",
            Self::NoSimulator { .. } | Self::Scenario { .. } => "scenario",
            Self::Init { code, .. } => match *code {
                Code::DRIVER_NOT_LOADED => "driver_not_loaded",
                Code::LIB_RM_VERSION_MISMATCH => "driver_library_mismatch",
                Code::NO_PERMISSION => "no_permission",
                Code::GPU_NOT_FOUND => "no_gpu",
                _ => "init_failed",
            },
        }
    }
}

fn hint(code: Code) -> &'static str {
    match code {
        Code::DRIVER_NOT_LOADED => "load the nvidia kernel module; retrying",
        Code::LIB_RM_VERSION_MISMATCH => {
            "the driver was updated: its kernel module and library differ; reboot or reload the \
             module; retrying"
        }
        Code::NO_PERMISSION => {
            "give the process access to /dev/nvidiactl and /dev/nvidia*; retrying"
        }
        _ => "retrying",
    }
}

impl Loader {
    /// `library` as given by `--nvml-library`, or the usual names and places.
    #[must_use]
    pub fn new(library: Option<&Path>) -> Self {
        let candidates = match library {
            Some(path) => vec![path.to_owned()],
            None => SONAMES
                .iter()
                .map(PathBuf::from)
                .chain(MOUNT_DIRS.iter().map(|dir| Path::new(dir).join(SONAMES[0])))
                .collect(),
        };
        Self { candidates, scenario: None }
    }

    /// The simulator with a scenario (`--simulate`): the library beside the executable or in
    /// `../lib`, unless `library` names another.
    #[must_use]
    pub fn simulated(scenario: &str, library: Option<&Path>) -> Self {
        let candidates = match library {
            Some(path) => vec![path.to_owned()],
            None => simulator_paths(),
        };
        Self { candidates, scenario: Some(scenario.to_owned()) }
    }

    /// For the simulator: whether it is there and knows the scenario, without starting a session.
    /// Unlike a driver, neither comes by itself later.
    pub fn verify(&self) -> Result<(), LoadError> {
        if self.scenario.is_none() {
            return Ok(());
        }
        let mut tried = Vec::new();
        for path in &self.candidates {
            // SAFETY: as in `open_one`.
            match unsafe { Library::new(path) } {
                Ok(library) => return self.choose_scenario(&library, path).map(drop),
                Err(error) => tried.push(linker(&error)),
            }
        }
        Err(LoadError::NoSimulator { tried: tried.join("; ") })
    }

    /// Loads the first candidate that can be opened and initialises it.
    pub fn open(&self) -> Result<Session, LoadError> {
        let mut tried = Vec::new();
        for path in &self.candidates {
            match self.open_one(path) {
                Ok(session) => return Ok(session),
                Err(Attempt::Next(why)) => tried.push(why),
                Err(Attempt::Final(error)) => return Err(error),
            }
        }
        Err(LoadError::NotFound { tried: tried.join("; ") })
    }

    fn open_one(&self, path: &Path) -> Result<Session, Attempt> {
        // An image can carry an empty placeholder that hides the host's library.
        if std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() == 0) {
            return Err(Attempt::Next(format!("{}: empty file", path.display())));
        }
        if elf::is_cut_off(path) {
            let path = path.display();
            return Err(Attempt::Next(format!("{path}: not complete; is it being copied?")));
        }
        // SAFETY: running the library's initialisers is what loading NVML means; the path is
        // the operator's or one of the driver's own.
        let library =
            unsafe { Library::new(path) }.map_err(|error| Attempt::Next(linker(&error)))?;
        let simulated = self.choose_scenario(&library, path).map_err(Attempt::Final)?;
        let nvml = init(path.as_os_str()).map_err(|error| {
            let path = path.display().to_string();
            Attempt::Final(LoadError::Init { path, code: error.into() })
        })?;
        Ok(Session::new(nvml, path, simulated))
    }

    /// Tells the simulator its scenario. A library without the entry point is the real one.
    fn choose_scenario(&self, library: &Library, path: &Path) -> Result<Option<String>, LoadError> {
        type SetScenario = unsafe extern "C" fn(*const std::ffi::c_char) -> u32;
        // SAFETY: the symbol is the simulator's, whose signature this is.
        let Ok(set) = (unsafe { library.get::<SetScenario>(SET_SCENARIO) }) else {
            return match &self.scenario {
                None => Ok(None),
                Some(_) => Err(LoadError::NoSimulator {
                    tried: format!("{} is not the simulator", path.display()),
                }),
            };
        };
        let Some(scenario) = &self.scenario else { return Ok(Some("environment".to_owned())) };
        let text = CString::new(scenario.as_str()).unwrap_or_default();
        // SAFETY: `text` is a NUL-terminated string that outlives the call.
        Code::check(unsafe { set(text.as_ptr()) }).map_err(|code| LoadError::Scenario {
            scenario: scenario.clone(),
            code,
            known: scenarios(library),
        })?;
        Ok(Some(scenario.clone()))
    }
}

enum Attempt {
    Next(String),
    Final(LoadError),
}

/// `nvmlInitWithFlags(NO_GPUS)`, so that a node whose last GPU is gone is a state and not an
/// error; older drivers have only `nvmlInit_v2`, or do not know the flag.
fn init(path: &OsStr) -> Result<Nvml, NvmlError> {
    match Nvml::builder().lib_path(path).flags(InitFlags::NO_GPUS).init() {
        Err(
            NvmlError::FailedToLoadSymbol(_)
            | NvmlError::FunctionNotFound
            | NvmlError::InvalidArg
            | NvmlError::NotSupported,
        ) => Nvml::builder().lib_path(path).init(),
        other => other,
    }
}

fn simulator_paths() -> Vec<PathBuf> {
    let Some(dir) = std::env::current_exe().ok().and_then(|exe| Some(exe.parent()?.to_owned()))
    else {
        return vec![PathBuf::from(SIMULATOR)];
    };
    vec![dir.join(SIMULATOR), dir.join("..").join("lib").join(SIMULATOR)]
}

/// The simulator's built-in scenarios, for people.
fn scenarios(library: &Library) -> String {
    type Scenarios = unsafe extern "C" fn() -> *const std::ffi::c_char;
    // SAFETY: the symbol is the simulator's, whose signature this is.
    let Ok(list) = (unsafe { library.get::<Scenarios>(b"nvmlSimulatorScenarios\0") }) else {
        return String::new();
    };
    // SAFETY: the simulator answers with a NUL-terminated string that lives as long as itself.
    let text = unsafe { CStr::from_ptr(list()) };
    text.to_string_lossy().lines().collect::<Vec<_>>().join(", ")
}

/// The dynamic linker's words, which name the file, without the wrapping.
fn linker(error: &libloading::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}

/// An initialised NVML. Dropping the last handle shuts NVML down and closes the library.
#[derive(Debug)]
pub struct Session {
    nvml: Nvml,
    /// Whether the driver takes version 2 of the fabric struct at most; found out by asking.
    pub(super) fabric_v2: AtomicBool,
    /// Sample buffers of performance monitoring that are in use.
    pub(super) gpm: Buffers,
    /// What the driver says of itself.
    pub facts: LibraryFacts,
}

impl Session {
    fn new(nvml: Nvml, path: &Path, simulated: Option<String>) -> Self {
        let facts = LibraryFacts {
            path: path.display().to_string(),
            driver_version: nvml.sys_driver_version().unwrap_or_default(),
            nvml_version: nvml.sys_nvml_version().unwrap_or_default(),
            cuda_version: nvml
                .sys_cuda_driver_version()
                .map(|version| format!("{}.{}", version / 1000, version % 1000 / 10))
                .unwrap_or_default(),
            simulated,
        };
        Self { nvml, fabric_v2: AtomicBool::new(false), gpm: Buffers::default(), facts }
    }

    pub(super) fn nvml(&self) -> &Nvml {
        &self.nvml
    }

    /// The driver's major version, if it says one.
    pub(super) fn driver_major(&self) -> Option<u32> {
        self.facts.driver_version.split('.').next()?.parse().ok()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.gpm.free_all(&self.nvml);
    }
}
