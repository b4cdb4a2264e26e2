//! Looking the GPUs up without waiting for one that hangs.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use super::PASS_DEADLINE;
use crate::nvml::{Code, Found, Session, topology};

/// How long a GPU may take to say who it is. Without persistence mode the first call to a GPU
/// initialises it, which takes seconds.
const LOOK_UP_DEADLINE: Duration = PASS_DEADLINE;

/// Looks GPUs up, each on a thread of its own that ends when the driver answers: a GPU that was
/// wedged before the exporter started must not hide the others. A GPU has at most one such
/// thread.
#[derive(Debug)]
pub(super) struct Lookups {
    sender: Sender<Found>,
    answers: Receiver<Found>,
    /// Indices whose thread has not come back yet.
    outstanding: HashSet<u32>,
}

impl Default for Lookups {
    fn default() -> Self {
        let (sender, answers) = mpsc::channel();
        Self { sender, answers, outstanding: HashSet::new() }
    }
}

impl Lookups {
    /// All GPUs by index. One that cannot be opened or identified, or does not answer in time, is
    /// listed with the reason.
    pub(super) fn enumerate(&mut self, session: &Arc<Session>) -> Result<Vec<Found>, Code> {
        let count = topology::count(session)?;
        // What comes back late is as old as its question: it is asked again.
        for late in self.answers.try_iter() {
            self.outstanding.remove(&late.identity.index);
        }
        let mut found: Vec<Found> =
            (0..count).map(|index| Found::refused(index, Code::TIMEOUT)).collect();
        let mut asked = 0;
        for index in 0..count {
            if self.outstanding.contains(&index) {
                continue;
            }
            if self.ask(session, index).is_ok() {
                asked += 1;
            }
        }
        let until = Instant::now() + LOOK_UP_DEADLINE;
        while asked > 0 {
            let left = until.saturating_duration_since(Instant::now());
            let Ok(answer) = self.answers.recv_timeout(left) else { break };
            let index = answer.identity.index;
            self.outstanding.remove(&index);
            asked -= 1;
            let place = usize::try_from(index).ok().and_then(|index| found.get_mut(index));
            if let Some(place) = place {
                *place = answer;
            }
        }
        Ok(found)
    }

    fn ask(&mut self, session: &Arc<Session>, index: u32) -> std::io::Result<()> {
        let (session, sender) = (Arc::clone(session), self.sender.clone());
        thread::Builder::new().name(format!("look-up-{index}")).spawn(move || {
            let found = topology::look_up(&session, index);
            drop(session);
            // Nobody waits any more when the session has ended meanwhile.
            let _ = sender.send(found);
        })?;
        self.outstanding.insert(index);
        Ok(())
    }
}
