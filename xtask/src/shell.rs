//! Running other programs, each announced before it runs.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// One line that says what went wrong.
pub(crate) type Outcome<T = ()> = Result<T, String>;

/// The folder of the workspace.
pub(crate) fn root() -> PathBuf {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask).to_owned()
}

/// Where cargo builds.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// The cargo that runs this. It is not told of this package, or build scripts that look at such
/// variables would run again whenever cargo is called by hand and through here by turns.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command.args(arguments).current_dir(root());
    command
}

/// A program with arguments, in the workspace's folder.
pub(crate) fn program(program: impl AsRef<OsStr>, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(root());
    command
}

/// Says what is run, runs it, and fails as it fails.
pub(crate) fn run(command: &mut Command) -> Outcome {
    eprintln!("$ {}", shown(command));
    let status = command.status().map_err(|error| cannot_run(command, &error))?;
    if status.success() { Ok(()) } else { Err(format!("{}: {status}", shown(command))) }
}

/// What a program writes to standard output; its end must be a success.
pub(crate) fn output(command: &mut Command) -> Outcome<String> {
    let output = command.output().map_err(|error| cannot_run(command, &error))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{}: {}: {}", shown(command), output.status, said.trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Whether a program can be started with these arguments and ends well; silent.
pub(crate) fn works(program: &str, arguments: &[&str]) -> bool {
    Command::new(program).args(arguments).output().is_ok_and(|output| output.status.success())
}

fn cannot_run(command: &Command, error: &std::io::Error) -> String {
    format!("cannot run {}: {error}", command.get_program().display())
}

fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let name = program.file_name().unwrap_or(program.as_os_str());
    std::iter::once(name)
        .chain(command.get_args())
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}
