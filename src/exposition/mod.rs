//! Snapshot to bytes. The only module that knows the text formats.

pub mod page;
