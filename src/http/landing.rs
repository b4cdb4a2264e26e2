//! The page at `/`, for people.

use std::time::Instant;

use super::status::Status;

/// The page as HTML.
pub(super) fn page(status: &Status, _now: Instant) -> String {
    format!(
        "<!doctype html><title>GPU Exporter</title><p>{}<p><a href=/metrics>Metrics</a>",
        status.version
    )
}
