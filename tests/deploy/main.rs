//! What is needed to deploy the exporter: the Helm chart, rendered by Helm itself.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test ends where it fails")]

mod lint;
mod support;
