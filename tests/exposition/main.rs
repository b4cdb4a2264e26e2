//! Snapshots in, pages out.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail loudly")]

mod accounts;
mod attribution;
mod conformance;
mod golden;
mod names;
mod parser;
mod properties;
mod sharers;
mod support;
mod usage;
