//! The only module that calls NVML or holds `unsafe`.
//!
//! `nvml-wrapper` loads the library, holds its symbols and ends the session. Getters that the
//! wrapper has right are called through it; those that it lacks or gets wrong (no `scopeId`, a
//! truncated bit mask, an enum that refuses new values) are called through the same symbol table
//! in `raw`. Everything that leaves this module is plain data.
#![expect(unsafe_code, reason = "NVML is a C library; each block says why it is sound")]

mod accounting;
pub mod calls;
pub mod code;
mod elf;
pub mod events;
mod facts;
mod field_values;
mod gpm;
pub mod library;
mod list;
mod mig;
mod peers;
mod process_samples;
mod processes;
mod rates;
mod raw;
pub(crate) mod raw_handle;
pub mod reader;
mod request;
pub mod topology;
mod work;

pub use code::{Code, Meaning};
pub use library::{LoadError, Loader, Session};
pub use reader::{Pass, Reader, Target};
pub use topology::Found;
