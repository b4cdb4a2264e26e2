//! Threads, cadence and deadlines; what they publish is a [`snapshot::Snapshot`].

pub mod snapshot;
