//! Where the renderer leaves the newest page and every scrape takes it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;

use crate::exposition::page::Page;
use crate::exposition::{Encoding, Format};

/// How long an encoding counts as wanted after a client last asked for it: a few scrapes at the
/// longest sensible interval.
const WANTED_FOR: Duration = Duration::from_secs(300);

const FORMATS: usize = 2;
const ENCODINGS: usize = 3;

/// A handle to the newest page; clones share it. Readers and the writer never wait for each other.
#[derive(Debug, Clone)]
pub struct PageStore(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    page: ArcSwap<Page>,
    epoch: Instant,
    /// When each kind of body was last asked for, in milliseconds since `epoch`, plus one;
    /// 0 is never.
    asked: [[AtomicU64; ENCODINGS]; FORMATS],
}

impl Default for PageStore {
    fn default() -> Self {
        Self(Arc::new(Inner {
            page: ArcSwap::from_pointee(Page::default()),
            epoch: Instant::now(),
            asked: Default::default(),
        }))
    }
}

impl PageStore {
    /// Puts `page` in the place of the one before. Scrapes under way keep theirs.
    ///
    /// Makes the compressions that clients lately asked for first, unless they are made already:
    /// better the renderer waits than the next scrape. Not for an async worker.
    pub fn publish(&self, page: Page) {
        for (format, body) in
            [(Format::Text, Some(&page.text)), (Format::OpenMetrics, page.openmetrics.as_ref())]
        {
            let Some(body) = body else { continue };
            for encoding in Encoding::ALL {
                if self.wanted(format, encoding) {
                    let _ = body.encoded(encoding);
                }
            }
        }
        self.0.page.store(Arc::new(page));
    }

    /// The newest page.
    #[must_use]
    pub fn current(&self) -> Arc<Page> {
        self.0.page.load_full()
    }

    /// Notes that a client asked for this kind of body.
    pub fn want(&self, format: Format, encoding: Encoding) {
        let now = u64::try_from(self.0.epoch.elapsed().as_millis()).unwrap_or(u64::MAX - 1);
        self.0.asked[format as usize][encoding as usize].store(now + 1, Ordering::Relaxed);
    }

    /// Whether a client asked for this kind of body lately.
    #[must_use]
    pub fn wanted(&self, format: Format, encoding: Encoding) -> bool {
        match self.0.asked[format as usize][encoding as usize].load(Ordering::Relaxed) {
            0 => false,
            asked => self.0.epoch.elapsed() <= Duration::from_millis(asked - 1) + WANTED_FOR,
        }
    }
}
