//! The ready page: what every scrape gets until the next snapshot.

use std::io::Write as _;
use std::sync::OnceLock;

use bytes::Bytes;

use super::format::Encoding;

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
    identity: Bytes,
    gzip: OnceLock<Bytes>,
    zstd: OnceLock<Bytes>,
}

impl Body {
    /// A body that is not compressed yet.
    #[must_use]
    pub fn new(identity: Bytes) -> Self {
        Self { identity, ..Self::default() }
    }

    /// The body in one coding, made now if it has not been yet. Whoever comes second waits for
    /// the first one's result; compressing takes milliseconds, so not on an async worker.
    #[must_use]
    pub fn encoded(&self, encoding: Encoding) -> Bytes {
        match encoding {
            Encoding::Identity => self.identity.clone(),
            Encoding::Gzip => self.gzip.get_or_init(|| gzip(&self.identity)).clone(),
            Encoding::Zstd => self.zstd.get_or_init(|| zstd(&self.identity)).clone(),
        }
    }

    /// Whether there is nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.identity.is_empty()
    }

    /// The body in one coding if it is made already.
    #[must_use]
    pub fn ready(&self, encoding: Encoding) -> Option<Bytes> {
        match encoding {
            Encoding::Identity => Some(self.identity.clone()),
            Encoding::Gzip => self.gzip.get().cloned(),
            Encoding::Zstd => self.zstd.get().cloned(),
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
        let gzip = body.encoded(Encoding::Gzip);
        assert!(body.ready(Encoding::Gzip).is_some() && body.ready(Encoding::Zstd).is_none());
        assert_eq!(body.encoded(Encoding::Gzip).as_ptr(), gzip.as_ptr());

        let mut unzipped = Vec::new();
        let mut decoder = flate2::write::GzDecoder::new(&mut unzipped);
        decoder.write_all(&gzip).unwrap();
        decoder.finish().unwrap();
        assert_eq!(unzipped, body.identity);
        assert_eq!(
            zstd::bulk::decompress(&body.encoded(Encoding::Zstd), 1 << 20).unwrap(),
            body.identity
        );
    }
}
