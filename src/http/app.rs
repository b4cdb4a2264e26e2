//! What the routes are given: handles, no globals.

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;

use super::limits::Limits;
use super::pages::PageStore;
use super::status::Status;
use super::web_config::WebConfig;
use crate::exposition::{Encoding, Format};

/// Says what is stuck when a loop of the exporter no longer moves, whatever the GPUs do.
pub type Liveness = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// Everything the server reads.
#[derive(Clone)]
pub struct App {
    /// The newest page.
    pub pages: PageStore,
    /// For `/`, `/readyz` and `/health`.
    pub status: Arc<ArcSwap<Status>>,
    /// Asked by `/livez`.
    pub liveness: Liveness,
    /// Told of every scrape and every refusal.
    pub observer: Arc<dyn Observe>,
    /// Whether `OpenMetrics` is served to those who ask for it.
    pub openmetrics: bool,
    /// TLS, users, headers.
    pub web: Arc<WebConfig>,
    /// Sizes, times and counts.
    pub limits: Limits,
}

impl App {
    /// An app without web configuration that is always alive and tells nobody: the rest is set by
    /// field.
    #[must_use]
    pub fn new(pages: PageStore, status: Arc<ArcSwap<Status>>, limits: Limits) -> Self {
        Self {
            pages,
            status,
            liveness: Arc::new(|| Ok(())),
            observer: Arc::new(Nobody),
            openmetrics: false,
            web: Arc::new(WebConfig::plain()),
            limits,
        }
    }
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App")
            .field("openmetrics", &self.openmetrics)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// Who counts what the server does. Called on the async workers: must not block.
pub trait Observe: Send + Sync {
    /// A scrape was answered with a page.
    fn scraped(&self, format: Format, encoding: Encoding);
    /// A client was turned away.
    fn refused(&self, why: Refusal);
}

/// Counts nothing.
#[derive(Debug, Clone, Copy)]
pub struct Nobody;

impl Observe for Nobody {
    fn scraped(&self, _: Format, _: Encoding) {}
    fn refused(&self, _: Refusal) {}
}

/// Why a client was turned away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// Too many scrapes at once.
    Scrapes,
    /// Too many connections, none of them idle.
    Connections,
    /// A connection without a request had to make room for another.
    Evicted,
    /// The answer was not read in time.
    SlowReader,
    /// The request did not come in time.
    SlowRequest,
    /// The TLS handshake failed.
    Handshake,
    /// No or wrong user and password.
    Unauthorized,
    /// The web configuration's `rate_limit`.
    RateLimit,
}

impl Refusal {
    /// Every kind, so that a counter can start all of them at 0.
    pub const ALL: [Self; 8] = [
        Self::Scrapes,
        Self::Connections,
        Self::Evicted,
        Self::SlowReader,
        Self::SlowRequest,
        Self::Handshake,
        Self::Unauthorized,
        Self::RateLimit,
    ];

    /// The label value.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Scrapes => "scrape_limit",
            Self::Connections => "connection_limit",
            Self::Evicted => "evicted",
            Self::SlowReader => "slow_reader",
            Self::SlowRequest => "slow_request",
            Self::Handshake => "tls_handshake",
            Self::Unauthorized => "unauthorized",
            Self::RateLimit => "rate_limit",
        }
    }
}
