//! Threads without which the process is of no use.

use tokio::sync::watch;

/// Why the process should end by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// NVML has been away for longer than allowed.
    NoDriver,
    /// A thread that nothing replaces has panicked: a restart is better than a page that stands
    /// still.
    Died(&'static str),
}

/// Held by such a thread for its life: tells when the thread panics.
#[derive(Debug)]
pub struct Vital {
    pub(super) thread: &'static str,
    pub(super) ended: watch::Sender<Option<Ended>>,
}

impl Drop for Vital {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.ended.send_replace(Some(Ended::Died(self.thread)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Ended, Vital, watch};

    #[test]
    fn a_thread_that_panics_is_told_and_one_that_ends_is_not() {
        let (ended, seen) = watch::channel(None);
        drop(Vital { thread: "a", ended: ended.clone() });
        assert_eq!(*seen.borrow(), None);
        let vital = Vital { thread: "b", ended };
        let died = std::thread::spawn(move || {
            let _vital = vital;
            panic!("as meant");
        });
        assert!(died.join().is_err());
        assert_eq!(*seen.borrow(), Some(Ended::Died("b")));
    }
}
