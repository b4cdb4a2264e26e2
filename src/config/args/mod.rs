//! The command line as typed: every flag is declared here once, with its short form, environment
//! variable, default and meaning. Nothing is looked at; [`Args::check`](super::check) does that.

mod dashes;
mod declare;
mod kubernetes;
mod metrics;
mod process;
mod unused;

use std::ffi::OsString;

use clap::FromArgMatches;

pub(super) use self::kubernetes::KubernetesArgs;
pub(super) use self::metrics::MetricsArgs;
pub(super) use self::process::{DumpArgs, ProcessArgs, WebArgs};
pub(super) use self::unused::UnusedArgs;
use super::machine::Machine;

pub use self::declare::command;

/// What the process is asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Command {
    /// Serve metrics until a signal comes (what happens if no command is given)
    #[default]
    Serve,
    /// Say what this configuration would export on this machine, and why not the rest
    Check,
    /// Print the page that a scrape would get, and end
    Once,
    /// List the fields that a counters file can name
    Fields,
}

/// Prometheus exporter for NVIDIA GPUs: reads NVML, speaks DCGM's metric names.
///
/// Flags, short forms and environment variables of NVIDIA's dcgm-exporter are accepted, with one
/// dash or two. A flag wins over its environment variable, that over the configuration file.
#[derive(Debug, Clone, clap::Parser)]
#[command(
    name = "nvml-exporter",
    version = super::version(),
    disable_version_flag = true,
    args_override_self = true,
    max_term_width = 100,
)]
pub struct Args {
    /// What to do
    #[arg(value_enum, default_value = "serve", hide_default_value = true)]
    pub command: Command,
    /// Print the version
    #[arg(short = 'v', long, action = clap::ArgAction::Version)]
    version: Option<bool>,
    /// What is exported, and how it is named.
    #[command(flatten)]
    pub metrics: MetricsArgs,
    /// The HTTP server.
    #[command(flatten)]
    pub web: WebArgs,
    /// Driver, log, configuration file.
    #[command(flatten)]
    pub process: ProcessArgs,
    /// Who holds a GPU.
    #[command(flatten)]
    pub kubernetes: KubernetesArgs,
    /// Debugging dumps.
    #[command(flatten)]
    pub dump: DumpArgs,
    /// Flags of dcgm-exporter that mean nothing here.
    #[command(flatten)]
    pub unused: UnusedArgs,
}

impl Args {
    /// Reads a command line (with the program's name first) and the environment behind it.
    ///
    /// The error is also what `--help` and `--version` answer.
    pub fn read<I>(argv: I, machine: &dyn Machine) -> Result<Self, Box<clap::Error>>
    where
        I: IntoIterator,
        I::Item: Into<OsString>,
    {
        let mut command = command(machine);
        let argv = dashes::with_two_dashes(argv.into_iter().map(Into::into), &command);
        let matches = command.try_get_matches_from_mut(argv)?;
        Ok(Self::from_arg_matches(&matches).map_err(|error| error.format(&mut command))?)
    }
}
