//! The library as its clients see it.
#![expect(unsafe_code, reason = "loads a C library and calls it, at times without a wrapper")]
#![expect(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

mod accounting;
mod common;
mod control;
mod manners;
mod monitoring;
mod processes;
mod scenarios;
mod tools;
