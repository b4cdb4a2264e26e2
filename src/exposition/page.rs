//! The ready page: what every scrape gets until the next snapshot.

use std::io::Write as _;
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

impl Page {
    /// The `Content-Type` of [`Page::text`].
    pub const TEXT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";
    /// The `Content-Type` of [`Page::openmetrics`].
    pub const OPENMETRICS_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
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

/// Compressions to make ahead of the first scrape that asks for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Wanted {
    /// [`Body::gzip`].
    pub gzip: bool,
    /// [`Body::zstd`].
    pub zstd: bool,
}

impl Body {
    /// A body that is not compressed yet.
    #[must_use]
    pub fn new(identity: Bytes) -> Self {
        Self { identity, ..Self::default() }
    }

    /// The body in gzip.
    #[must_use]
    pub fn gzip(&self) -> Bytes {
        self.gzip.get_or_init(|| gzip(&self.identity)).clone()
    }

    /// The body in zstd.
    #[must_use]
    pub fn zstd(&self) -> Bytes {
        self.zstd.get_or_init(|| zstd(&self.identity)).clone()
    }

    /// Makes the wanted compressions now, so that no scrape waits for them.
    pub fn precompress(&self, wanted: Wanted) {
        if wanted.gzip {
            let _ = self.gzip();
        }
        if wanted.zstd {
            let _ = self.zstd();
        }
    }
}

/// The knee on pages of 0.8 and 5 MB: level 1 is a quarter larger and hardly faster, 3 saves
/// another 5 to 8 % for a quarter more time, 6 takes three times as long for the last 22 %.
const GZIP_LEVEL: u32 = 2;

/// Level 3 takes a quarter longer and gains nothing on these pages.
const ZSTD_LEVEL: i32 = 1;

#[expect(clippy::expect_used, reason = "a Vec takes every write")]
fn gzip(text: &[u8]) -> Bytes {
    let sink = Vec::with_capacity(text.len() / 16);
    let mut encoder = flate2::write::GzEncoder::new(sink, flate2::Compression::new(GZIP_LEVEL));
    encoder.write_all(text).expect("a Vec takes every write");
    exact(encoder.finish().expect("a Vec takes every write"))
}

#[expect(clippy::expect_used, reason = "a valid level and a buffer of the bound leave no error")]
fn zstd(text: &[u8]) -> Bytes {
    exact(zstd::bulk::compress(text, ZSTD_LEVEL).expect("the level is valid"))
}

/// Without the spare room, which for zstd is as large as the page and would stay with it.
fn exact(compressed: Vec<u8>) -> Bytes {
    Bytes::from(compressed.into_boxed_slice())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compressed_bodies_read_back_as_the_page_and_are_made_once() {
        let body = Body::new("nvml_up 1\n".repeat(1000).into());
        body.precompress(Wanted { gzip: true, zstd: false });
        assert!(body.gzip.get().is_some() && body.zstd.get().is_none());
        assert_eq!(body.gzip().as_ptr(), body.gzip().as_ptr());

        let mut unzipped = Vec::new();
        let mut decoder = flate2::write::GzDecoder::new(&mut unzipped);
        decoder.write_all(&body.gzip()).unwrap();
        decoder.finish().unwrap();
        assert_eq!(unzipped, body.identity);
        assert_eq!(zstd::bulk::decompress(&body.zstd(), 1 << 20).unwrap(), body.identity);
    }
}
