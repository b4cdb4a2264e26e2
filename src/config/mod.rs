//! Flags, environment and files -> one validated [`Config`].
//!
//! [`Args`] is what was typed, [`Config`] what it means. Between them stands [`Args::check`], which
//! finds every mistake before it gives up. Precedence: flag, environment, configuration file,
//! default. The machine is asked through [`Machine`] alone.

mod args;
mod check;
mod counters;
mod duration;
mod findings;
mod host;
mod interval;
mod kubernetes;
mod listen;
mod machine;
pub mod selector;
mod settings;
#[cfg(test)]
mod tests;
mod typed;
mod unused;
mod yaml;

use std::ffi::OsString;

pub use self::args::{Args, Command, command};
pub use self::machine::{Machine, ThisMachine};
pub use self::selector::{DeviceSelector, GpuId, InstanceId};
pub use self::settings::{
    Config, Counters, Driver, Dump, GpuIdType, HostLabel, HostLabelName, InlineRow, KernelLog,
    Kubernetes, Listen, Web,
};
pub use self::typed::{Invalid, Origin, Typed};

/// The version and the revision it was built from, as `--version` says them.
#[must_use]
pub fn version() -> String {
    let revision = option_env!("NVML_EXPORTER_REVISION").unwrap_or("unknown");
    format!("version {} ({revision})", env!("CARGO_PKG_VERSION"))
}

/// Why there is no [`Config`].
#[derive(Debug, thiserror::Error)]
pub enum Stop {
    /// The command line cannot be read, or it asks for help or the version.
    #[error("{}", one_line(.0))]
    Usage(Box<clap::Error>),
    /// These mistakes were found.
    #[error("{}", lines(.0))]
    Invalid(Vec<Invalid>),
}

impl Stop {
    /// The process's exit status: 0 for `--help` and `--version`, 1 for any mistake, as
    /// dcgm-exporter has it.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(error) if !error.use_stderr() => 0,
            Self::Usage(_) | Self::Invalid(_) => 1,
        }
    }
}

/// clap's message of a mistake in one line with its suggestion, as all our messages are.
fn one_line(error: &clap::Error) -> String {
    let text = error.to_string();
    if !error.use_stderr() {
        // Help and the version are no mistakes.
        return text;
    }
    let mut lines = text.lines().map(str::trim);
    let problem = lines.next().unwrap_or_default().trim_start_matches("error: ");
    let tip = lines.find_map(|line| line.strip_prefix("tip: "));
    let tip = tip.map(|tip| format!("; {tip}")).unwrap_or_default();
    format!("{problem}{tip}; --help lists all flags")
}

fn lines(mistakes: &[Invalid]) -> String {
    mistakes.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// Reads the command line (the program's name first) and all that stands behind it.
pub fn load<I>(argv: I, machine: &dyn Machine) -> Result<Config, Stop>
where
    I: IntoIterator,
    I::Item: Into<OsString>,
{
    Args::read(argv, machine).map_err(Stop::Usage)?.check(machine).map_err(Stop::Invalid)
}
