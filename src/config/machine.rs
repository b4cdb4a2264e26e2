//! What the configuration asks of the machine it runs on: environment, host name, files.
//!
//! This is the one place that reads the process environment, so that a test can bring its own.

use std::io;
use std::path::Path;

/// The machine as the configuration sees it.
pub trait Machine {
    /// An environment variable's text, if it is set.
    fn environment(&self, name: &str) -> Option<String>;
    /// The operating system's host name.
    fn host_name(&self) -> Result<String, String>;
    /// A file's text.
    fn read(&self, path: &Path) -> io::Result<String>;
    /// Whether a file can be found.
    fn exists(&self, path: &Path) -> bool;
}

/// The machine that runs this process.
#[derive(Debug, Clone, Copy, Default)]
pub struct ThisMachine;

impl Machine for ThisMachine {
    fn environment(&self, name: &str) -> Option<String> {
        std::env::var_os(name).map(|text| text.to_string_lossy().into_owned())
    }

    fn host_name(&self) -> Result<String, String> {
        match gethostname::gethostname().into_string() {
            Ok(name) if name.is_empty() => Err("it is empty".to_owned()),
            Ok(name) => Ok(name),
            Err(_) => Err("it is not UTF-8".to_owned()),
        }
    }

    fn read(&self, path: &Path) -> io::Result<String> {
        std::fs::read_to_string(path)
    }

    fn exists(&self, path: &Path) -> bool {
        path.exists()
    }
}
