//! Programs of Python packages, from the environment that `cargo xtask test` makes.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use super::exporter::simulator;
use super::prometheus::missing;

/// A program in `.venv/bin` that is to be run.
#[derive(Debug)]
pub(crate) struct Python {
    command: Command,
    program: PathBuf,
}

impl Python {
    pub(crate) fn new(program: &str) -> Self {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join(".venv/bin").join(program);
        let mut command = Command::new(&program);
        command.current_dir(env!("CARGO_MANIFEST_DIR"));
        Self { command, program }
    }

    /// With the simulator in the driver's place, for whoever loads `libnvidia-ml.so.1`.
    pub(crate) fn simulate(mut self, scenario: &str) -> Self {
        let library = simulator();
        let directory = library.parent().unwrap().join("nvml");
        std::fs::create_dir_all(&directory).unwrap();
        let link = directory.join("libnvidia-ml.so.1");
        // Other tests may make the same link at the same time.
        let _ = std::os::unix::fs::symlink(library, &link);
        assert!(link.exists(), "{}", link.display());
        self.command
            .env("LD_LIBRARY_PATH", directory)
            .env("NVML_SIM_SCENARIO", scenario)
            .env("NVML_SIM_CLOCK", "frozen");
        self
    }

    pub(crate) fn args<const N: usize>(mut self, args: [&str; N]) -> Self {
        self.command.args(args);
        self
    }

    /// Runs it on this input.
    pub(crate) fn run(mut self, input: &str) -> Output {
        let mut child = self
            .command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|e| panic!("{}: {e}", missing(&self.program.display().to_string())));
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_owned();
        // A program that does not read its input closes it.
        let writer = std::thread::spawn(move || drop(stdin.write_all(input.as_bytes())));
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        output
    }
}
