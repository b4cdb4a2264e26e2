//! The log: one line an event on stderr, as text or as JSON.

use std::io::{self, IsTerminal};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;
use tracing_subscriber::util::TryInitError;

/// How a line of the log looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum LogFormat {
    /// Time, level, place, message, `key=value` pairs.
    #[default]
    Text,
    /// One JSON object.
    Json,
}

/// What is logged, and how.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogSettings {
    /// How a line looks.
    pub format: LogFormat,
    /// Directives in the form of `RUST_LOG`: a level, or `target=level` pairs.
    pub directives: String,
}

/// Why the log could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The directives cannot be read.
    #[error("log directives: {0}")]
    Directives(#[from] ParseError),
    /// The process has a log already.
    #[error("log: {0}")]
    Installed(#[from] TryInitError),
}

/// Whether directives can be read; the error says what is wrong with them.
pub fn check_directives(directives: &str) -> Result<(), ParseError> {
    EnvFilter::builder().parse(directives).map(drop)
}

/// Sets up the log of this process. Colours are for a terminal only.
pub fn install(settings: &LogSettings) -> Result<(), LogError> {
    use tracing_subscriber::util::SubscriberInitExt as _;

    let filter = EnvFilter::builder().parse(&settings.directives)?;
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    match settings.format {
        LogFormat::Text => lines.with_ansi(io::stderr().is_terminal()).finish().try_init()?,
        LogFormat::Json => lines.json().flatten_event(true).with_ansi(false).finish().try_init()?,
    }
    Ok(())
}
