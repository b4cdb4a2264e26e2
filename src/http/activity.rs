//! What one connection is doing, and until when it may: the base of every time limit.
//!
//! hyper knows one time limit, which would also end a connection that waits for the next scrape.
//! Here each phase has its own. The transport and the service report; one watcher per connection
//! waits.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::app::Refusal;
use super::limits::Limits;
use super::routes::Place;

/// One connection's state, shared by its transport, its answers and its watcher.
#[derive(Debug)]
pub(super) struct Activity {
    state: watch::Sender<State>,
    evicted: Notify,
    read_timeout: Duration,
    write_timeout: Duration,
    idle_timeout: Duration,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    until: Instant,
    /// Since when there has been no request; meaningless while answering.
    idle_since: Instant,
    /// Answers whose body the connection has not taken over yet.
    unfinished: usize,
    /// Places of answers that are taken over but not written out.
    places: Vec<Place>,
    /// HTTP/2: bytes between answers are no request's beginning.
    multiplexed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nothing came yet.
    Fresh,
    /// Between requests.
    Idle,
    /// A request's head is coming in.
    Reading,
    /// At least one answer is under way.
    Answering,
}

/// Why a connection has to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spent {
    /// Nothing was asked for too long: no fault.
    Idle,
    /// The client's fault, or another client's turn.
    Refused(Refusal),
}

impl Activity {
    pub(super) fn new(limits: &Limits) -> Self {
        let now = Instant::now();
        let state = State {
            phase: Phase::Fresh,
            until: now + limits.read_timeout,
            idle_since: now,
            unfinished: 0,
            places: Vec::new(),
            multiplexed: false,
        };
        Self {
            state: watch::Sender::new(state),
            evicted: Notify::new(),
            read_timeout: limits.read_timeout,
            write_timeout: limits.write_timeout,
            idle_timeout: limits.idle_timeout,
        }
    }

    /// The connection speaks HTTP/2.
    pub(super) fn multiplexes(&self) {
        self.state.send_if_modified(|state| {
            state.multiplexed = true;
            false
        });
    }

    /// Bytes came in.
    pub(super) fn received(&self) {
        self.state.send_if_modified(|state| {
            let begins = matches!(state.phase, Phase::Fresh | Phase::Idle) && !state.multiplexed;
            if begins {
                state.phase = Phase::Reading;
                state.until = Instant::now() + self.read_timeout;
            }
            begins
        });
    }

    /// All bytes given to the transport so far are the kernel's.
    pub(super) fn flushed(&self) {
        self.state.send_if_modified(|state| {
            state.places.clear();
            let over = state.phase == Phase::Answering && state.unfinished == 0;
            if over {
                state.phase = Phase::Idle;
                state.idle_since = Instant::now();
                state.until = state.idle_since + self.idle_timeout;
            }
            over
        });
    }

    /// A request's head is complete. The time for the answers under way counts from the first.
    pub(super) fn begin(self: &Arc<Self>) -> Answering {
        self.state.send_if_modified(|state| {
            state.unfinished += 1;
            let first = state.phase != Phase::Answering;
            if first {
                state.phase = Phase::Answering;
                state.until = Instant::now() + self.write_timeout;
            }
            first
        });
        Answering { activity: self.clone(), place: None }
    }

    /// Since when the connection has had no complete request; `None` while it has one.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        let state = self.state.borrow();
        (state.phase != Phase::Answering).then_some(state.idle_since)
    }

    /// Asks the connection to make room, if it still has no request by then.
    pub(super) fn evict(&self) {
        self.evicted.notify_one();
    }

    /// Resolves when the connection has to end.
    pub(super) async fn spent(&self) -> Spent {
        let mut changes = self.state.subscribe();
        loop {
            let (phase, until) = {
                let state = changes.borrow_and_update();
                (state.phase, state.until)
            };
            tokio::select! {
                _ = changes.changed() => {}
                () = self.evicted.notified() => {
                    if self.idle_since().is_some() {
                        return Spent::Refused(Refusal::Evicted);
                    }
                }
                () = tokio::time::sleep_until(until) => return match phase {
                    Phase::Idle => Spent::Idle,
                    Phase::Fresh | Phase::Reading => Spent::Refused(Refusal::SlowRequest),
                    Phase::Answering => Spent::Refused(Refusal::SlowReader),
                },
            }
        }
    }
}

/// One answer under way; dropped when the connection has taken over its last byte or given up.
#[derive(Debug)]
pub(super) struct Answering {
    activity: Arc<Activity>,
    place: Option<Place>,
}

impl Answering {
    /// Keeps a scrape's place until the answer is written out, not only until it is made: else
    /// clients that do not read could pile up.
    pub(super) fn hold(&mut self, place: Option<Place>) {
        self.place = place;
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.activity.state.send_if_modified(|state| {
            state.unfinished -= 1;
            state.places.extend(self.place.take());
            false
        });
    }
}
