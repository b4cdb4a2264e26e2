//! What is needed to deploy the exporter: the Helm chart as Helm renders it, judged by Kubernetes'
//! own schemas and by the exporter itself; and the manifests made from it.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test ends where it fails")]

mod files;
mod lint;
mod manifests;
mod matrix;
mod names;
mod notes;
mod pods;
mod program;
mod refused;
mod rights;
mod serving;
mod support;
