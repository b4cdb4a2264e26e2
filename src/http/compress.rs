//! A body in the encoding asked for: made once for each page, and not on the async workers.

use std::io::{self, Write};
use std::sync::Arc;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::negotiate::{Encoding, Format};
use crate::exposition::page::{Body, Page};

/// The level at which metrics text stops shrinking for the time it takes.
const ZSTD_LEVEL: i32 = 3;

/// The body of `page` in `format`; text when the page has no other.
pub(super) fn body(page: &Page, format: Format) -> &Body {
    match format {
        Format::Text => &page.text,
        Format::OpenMetrics => page.openmetrics.as_ref().unwrap_or(&page.text),
    }
}

/// The bytes of one body, compressed now if this page's have not been yet; with the encoding they
/// really have.
pub(super) async fn encoded(
    page: Arc<Page>,
    format: Format,
    encoding: Encoding,
) -> (Bytes, Encoding) {
    let identity = body(&page, format).identity.clone();
    // Nothing to compress, and an empty cell below means a failure.
    if encoding == Encoding::Identity || identity.is_empty() {
        return (identity, Encoding::Identity);
    }
    let ready = made(body(&page, format), encoding);
    let bytes = match ready {
        Some(bytes) => bytes,
        None => tokio::task::spawn_blocking(move || make(body(&page, format), encoding))
            .await
            .unwrap_or_default(),
    };
    if bytes.is_empty() { (identity, Encoding::Identity) } else { (bytes, encoding) }
}

fn made(body: &Body, encoding: Encoding) -> Option<Bytes> {
    match encoding {
        Encoding::Identity => Some(body.identity.clone()),
        Encoding::Gzip => body.gzip.get().cloned(),
        Encoding::Zstd => body.zstd.get().cloned(),
    }
}

/// Whoever comes second waits for the first one's result.
pub(super) fn make(body: &Body, encoding: Encoding) -> Bytes {
    let (cell, compress): (_, Compressor) = match encoding {
        Encoding::Identity => return body.identity.clone(),
        Encoding::Gzip => (&body.gzip, gzip),
        Encoding::Zstd => (&body.zstd, zstd),
    };
    let made = cell.get_or_init(|| {
        let result = compress(&body.identity).inspect_err(|error| {
            tracing::error!(%error, encoding = encoding.label(), "cannot compress a page");
        });
        result.unwrap_or_default().into()
    });
    made.clone()
}

type Compressor = fn(&[u8]) -> io::Result<Vec<u8>>;

fn gzip(from: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(from)?;
    encoder.finish()
}

fn zstd(from: &[u8]) -> io::Result<Vec<u8>> {
    zstd::bulk::compress(from, ZSTD_LEVEL)
}
