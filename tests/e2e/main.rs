//! The real binary from outside: on the simulator, scraped by hand, by a real Prometheus, and
//! beside NVIDIA's own bindings. Nothing here asserts how long something takes; time limits only
//! end a test that hangs.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test ends where it fails")]
#![expect(clippy::needless_raw_string_hashes, reason = "expect-test writes strings so")]

mod accounting;
mod alarms;
mod bindings;
mod clock_events;
mod cluster;
mod configmap;
mod conformance;
mod conformance_process;
mod dashboards;
mod energy;
mod errors;
mod faults;
mod faults_driver;
mod health;
mod hpa;
mod labels;
mod names;
mod once;
mod operator;
mod pages;
mod placements;
mod plan;
mod pods;
mod processes;
mod profiling;
mod profiling_samples;
mod prometheus;
mod recorded;
mod sharing;
mod support;
mod symbols;
mod users;
mod watched;
mod xids;
