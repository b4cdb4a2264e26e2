//! Helm, from the environment that `cargo xtask test` makes.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A program in `.venv/bin`.
pub(crate) fn tool(name: &str) -> PathBuf {
    let program = root().join(".venv/bin").join(name);
    assert!(
        program.exists(),
        "{} is not there; `cargo xtask test` installs what the tests need",
        program.display()
    );
    program
}

/// Helm with nothing of whoever runs the tests.
pub(crate) fn helm(arguments: &[&str]) -> Output {
    let home = tempfile::tempdir().unwrap();
    let mut command = Command::new(tool("helm"));
    for place in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
        command.env(place, home.path());
    }
    command.args(arguments).current_dir(root()).output().unwrap()
}

/// What a program said, for the message of a failure.
pub(crate) fn said(output: &Output) -> String {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    format!("{}{}", text(&output.stdout), text(&output.stderr))
}
