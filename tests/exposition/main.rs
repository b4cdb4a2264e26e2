//! Snapshots in, pages out.

mod golden;
mod support;
