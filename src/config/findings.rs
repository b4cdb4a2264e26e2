//! What a check of the command line gathers: mistakes and warnings.

use std::fmt::Display;
use std::time::Duration;

use clap::ValueEnum;

use super::duration::parse_time;
use super::typed::{Invalid, Typed};

/// The texts that Go's `strconv.ParseBool` takes, so that environments written for it hold.
const TRUE: &[&str] = &["1", "t", "T", "true", "TRUE", "True"];
const FALSE: &[&str] = &["0", "f", "F", "false", "FALSE", "False"];

/// Mistakes and warnings so far. A value with a mistake is replaced by its type's default, so that
/// the check goes on; no [`Config`](super::Config) is made of it.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) mistakes: Vec<Invalid>,
    pub(super) warnings: Vec<String>,
}

impl Findings {
    /// Notes a mistake.
    pub(super) fn refuse(&mut self, at: impl Display, problem: impl Into<String>) {
        self.mistakes.push(Invalid::new(at, problem));
    }

    /// Notes something that will not be done as asked.
    pub(super) fn warn(&mut self, at: impl Display, text: impl Display) {
        self.warnings.push(format!("{at}: {text}"));
    }

    /// A value's meaning.
    pub(super) fn read<T: Default>(
        &mut self,
        typed: &Typed,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> T {
        parse(&typed.text).unwrap_or_else(|problem| {
            self.refuse(typed, problem);
            T::default()
        })
    }

    /// Whether a switch is on.
    pub(super) fn switch(&mut self, typed: &Typed) -> bool {
        self.read(typed, parse_bool)
    }

    /// One of the values of an enum.
    pub(super) fn choice<T: ValueEnum + Default>(&mut self, typed: &Typed) -> T {
        self.read(typed, |text| {
            T::from_str(text, false).map_err(|_| {
                let names: Vec<_> = T::value_variants()
                    .iter()
                    .filter_map(|value| Some(value.to_possible_value()?.get_name().to_owned()))
                    .collect();
                format!("is unknown; allowed: {}", names.join(", "))
            })
        })
    }

    /// A length of time: bare milliseconds, or with a unit.
    pub(super) fn time(&mut self, typed: &Typed) -> Duration {
        self.read(typed, parse_time).duration
    }
}

pub(super) fn parse_bool(text: &str) -> Result<bool, String> {
    match text {
        text if TRUE.contains(&text) => Ok(true),
        text if FALSE.contains(&text) => Ok(false),
        _ => Err(format!(
            "is neither true nor false; allowed: {}, {}",
            TRUE.join(", "),
            FALSE.join(", ")
        )),
    }
}

/// The items of repeated flags, each of which may be a comma list.
pub(super) fn items(typed: &[Typed]) -> impl Iterator<Item = (&Typed, &str)> {
    typed.iter().flat_map(|typed| {
        let parts = typed.text.split(',').map(str::trim).filter(|part| !part.is_empty());
        parts.map(move |part| (typed, part))
    })
}
