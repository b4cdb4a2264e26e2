//! What the log says of the kubelet: a line for each change of state.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use crate::attribution::Allocations;
use crate::attribution::kubelet::{PodResourcesError, Reason, Seen};

/// Ids of unknown form that are told one by one.
const UNKNOWN_IDS: usize = 32;

/// How the last poll went.
#[derive(Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Unknown,
    Answering,
    Failing(Reason),
}

/// Remembers what was said.
#[derive(Debug, Default)]
pub(super) struct Journal {
    state: State,
    unknown: HashSet<(Arc<str>, String)>,
}

impl Journal {
    pub(super) fn answered(&mut self, socket: &Path, seen: &Seen, allocations: &Allocations) {
        if self.turn(State::Answering) {
            let socket = socket.display();
            let Seen { pods, containers, ids, .. } = seen;
            tracing::info!(%socket, pods, containers, ids, "the kubelet says which pods hold what");
        }
        for (resource, id) in self.news(&allocations.unknown) {
            tracing::warn!(
                %resource, %id,
                "a GPU's id has a form that is not known; its pod is not shown"
            );
        }
    }

    /// `kept` tells whether there is an earlier answer.
    pub(super) fn failed(&mut self, error: &PodResourcesError, kept: bool) {
        if self.turn(State::Failing(error.reason)) {
            let reason = error.reason.label();
            if kept {
                tracing::warn!(reason, %error, "cannot ask which pods hold what; for a while the last answer counts");
            } else {
                tracing::warn!(reason, %error, "cannot ask which pods hold what");
            }
        }
    }

    /// Whether the state is another than before.
    fn turn(&mut self, state: State) -> bool {
        let changed = self.state != state;
        self.state = state;
        changed
    }

    /// Those that have not been told, as long as there is room to remember them.
    fn news(&mut self, unknown: &[(Arc<str>, String)]) -> Vec<(Arc<str>, String)> {
        let mut news = Vec::new();
        for entry in unknown {
            if self.unknown.len() < UNKNOWN_IDS && self.unknown.insert(entry.clone()) {
                news.push(entry.clone());
            }
        }
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_told_when_it_changes() {
        let mut journal = Journal::default();
        let mut told = |state| journal.turn(state);
        assert!(told(State::Failing(Reason::SocketMissing)));
        assert!(!told(State::Failing(Reason::SocketMissing)));
        assert!(told(State::Failing(Reason::Refused)));
        assert!(told(State::Answering));
        assert!(!told(State::Answering));
    }

    #[test]
    fn an_unknown_id_is_told_once_and_not_without_end() {
        let mut journal = Journal::default();
        let ids = |range: std::ops::Range<usize>| -> Vec<(Arc<str>, String)> {
            range.map(|id| ("nvidia.com/gpu".into(), format!("card-{id}"))).collect()
        };
        assert_eq!(journal.news(&ids(0..2)).len(), 2);
        assert_eq!(journal.news(&ids(0..3)), ids(2..3));
        assert_eq!(journal.news(&ids(0..UNKNOWN_IDS + 9)).len(), UNKNOWN_IDS - 3);
        assert_eq!(journal.news(&ids(0..UNKNOWN_IDS + 9)), []);
    }
}
