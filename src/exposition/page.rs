//! The ready page: what every scrape gets until the next snapshot.

use std::sync::OnceLock;

use bytes::Bytes;

/// One rendered exposition, immutable; handed out by reference count.
#[derive(Debug, Default)]
pub struct Page {
    /// `text/plain; version=0.0.4`.
    pub text: Body,
    /// `OpenMetrics` 1.0, when `--openmetrics` is on.
    pub openmetrics: Option<Body>,
}

/// One format's bytes, with each compression made once, when first asked for.
#[derive(Debug, Default)]
pub struct Body {
    /// As rendered.
    pub identity: Bytes,
    /// RFC 1952.
    pub gzip: OnceLock<Bytes>,
    /// RFC 8878.
    pub zstd: OnceLock<Bytes>,
}
