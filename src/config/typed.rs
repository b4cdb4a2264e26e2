//! A value as it was typed, and where: what every message about a mistake starts with.

use std::ffi::OsStr;
use std::fmt;

use clap::builder::{TypedValueParser, ValueParserFactory};
use clap::error::ErrorKind;
use clap::parser::ValueSource;

/// Where a value was typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Nowhere: it is the default of this flag.
    Default(String),
    /// The command line; the flag's long name with its dashes.
    Flag(String),
    /// An environment variable.
    Environment(String),
    /// A line of a file, and the key that stands there.
    File {
        /// The file as it was named.
        path: String,
        /// Counted from 1.
        line: u64,
        /// The key, as a path from the top of the file.
        key: String,
    },
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default(name) | Self::Flag(name) | Self::Environment(name) => f.write_str(name),
            Self::File { path, line, key } => write!(f, "{path}:{line}: {key}"),
        }
    }
}

/// A value as typed, not looked at yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Typed {
    /// The text.
    pub text: String,
    /// Where it stands.
    pub origin: Origin,
}

impl Typed {
    /// Whether somebody typed it, so that it is not the default.
    #[must_use]
    pub fn is_set(&self) -> bool {
        !matches!(self.origin, Origin::Default(_))
    }
}

/// `--devices=g:0`, `DCGM_EXPORTER_DEVICES_STR=g:0` or `exporter.yaml:3: collections[0].every=5s`.
impl fmt::Display for Typed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.text.is_empty() || self.text.contains(char::is_whitespace) {
            write!(f, "{}={:?}", self.origin, self.text)
        } else {
            write!(f, "{}={}", self.origin, self.text)
        }
    }
}

/// A mistake in the configuration: one line that says where, what, and what is allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{at}: {problem}")]
pub struct Invalid {
    /// The flag, environment variable or line of a file, with the value.
    pub at: String,
    /// What is wrong, and what is allowed.
    pub problem: String,
}

impl Invalid {
    /// A mistake at a place.
    pub fn new(at: impl fmt::Display, problem: impl Into<String>) -> Self {
        Self { at: at.to_string(), problem: problem.into() }
    }
}

/// Makes a [`Typed`] of each value that clap reads.
#[derive(Debug, Clone)]
pub struct AsTyped {
    /// Whence the value comes if the flag is not on the command line.
    pub unless_flag: Option<Origin>,
}

impl TypedValueParser for AsTyped {
    type Value = Typed;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<Typed, clap::Error> {
        self.parse_ref_(command, arg, value, ValueSource::CommandLine)
    }

    fn parse_ref_(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &OsStr,
        source: ValueSource,
    ) -> Result<Typed, clap::Error> {
        let Some(text) = value.to_str() else {
            return Err(clap::Error::new(ErrorKind::InvalidUtf8).with_cmd(command));
        };
        let name = arg.and_then(clap::Arg::get_long).unwrap_or_default();
        let origin = match (&self.unless_flag, source) {
            (Some(origin), ValueSource::DefaultValue) => origin.clone(),
            (None, ValueSource::DefaultValue) => Origin::Default(format!("--{name}")),
            _ => Origin::Flag(format!("--{name}")),
        };
        Ok(Typed { text: text.to_owned(), origin })
    }
}

impl ValueParserFactory for Typed {
    type Parser = AsTyped;

    fn value_parser() -> AsTyped {
        AsTyped { unless_flag: None }
    }
}
