//! What the library says to people: on standard error, since it has no other place.

use std::fmt::Display;
use std::io::Write as _;

/// Writes one line to standard error. A closed standard error is no reason to fail.
pub(crate) fn complain(message: impl Display) {
    let _ = writeln!(std::io::stderr(), "nvml-simulator: {message}");
}
