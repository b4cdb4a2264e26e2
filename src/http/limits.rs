//! What one client may take from everyone else: sizes, times and counts, each with a name.

use std::time::Duration;

/// Bytes of a request's head. A scrape with every header that Prometheus, a proxy and a service
/// mesh add stays under 4 KiB; more gets 431.
pub const MAX_HEADER_BYTES: usize = 16 * 1024;

/// Header fields of one request; more get 431.
pub const MAX_HEADERS: usize = 64;

/// Bytes of a request's body. No route reads one: up to this many are ignored, more get 413.
pub const MAX_BODY_BYTES: u64 = 4 * 1024;

/// HTTP/2 streams one connection may have open. A scraper needs one.
pub const MAX_STREAMS: u32 = 16;

/// How long a listener rests when the process is out of file descriptors: accepting again at
/// once would spin.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How often the files of the web configuration are looked at for a change.
pub const REREAD_EVERY: Duration = Duration::from_secs(1);

/// The limits an operator may set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// From the first byte of a request to the end of its head; also the TLS handshake, and the
    /// wait for a new connection's first request.
    pub read_timeout: Duration,
    /// From the end of a request's head to the last byte of the answer handed to the kernel.
    /// A reader slower than this is cut off.
    pub write_timeout: Duration,
    /// How long a connection may stay open between requests. Above any sensible scrape interval,
    /// so that a scraper keeps its connection and, with TLS, its handshake.
    pub idle_timeout: Duration,
    /// Open connections. At the limit a newcomer takes the place of the connection that has been
    /// without a request for longest; if all are busy it is closed unanswered.
    pub connections: usize,
    /// Scrapes answered at once, counted until the last byte is handed to the kernel; more get
    /// 503. Each one holds on to the page it started with, so this bounds memory too.
    pub scrapes: usize,
    /// How long answers under way may take after the shutdown signal.
    pub shutdown_grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            read_timeout: Duration::from_secs(10),
            write_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(180),
            connections: 512,
            scrapes: 16,
            shutdown_grace: Duration::from_millis(800),
        }
    }
}
