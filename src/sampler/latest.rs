//! A slot that holds the newest of a sequence of values.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// One writer, any number of readers; a reader that waits gets the newest value and may miss
/// some between. The lock guards a pointer swap only.
#[derive(Debug)]
pub struct Latest<T> {
    slot: Mutex<(u64, Arc<T>)>,
    changed: Condvar,
}

impl<T> Latest<T> {
    /// A slot with a first value.
    pub fn new(value: T) -> Self {
        Self { slot: Mutex::new((0, Arc::new(value))), changed: Condvar::new() }
    }

    /// Replaces the value.
    pub fn set(&self, value: T) {
        let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        *slot = (slot.0 + 1, Arc::new(value));
        self.changed.notify_all();
    }

    /// The newest value with its number.
    pub fn get(&self) -> (u64, Arc<T>) {
        let slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        (slot.0, Arc::clone(&slot.1))
    }

    /// The newest value once its number is not `seen` any more, or after `timeout`.
    pub fn wait(&self, seen: u64, timeout: Duration) -> (u64, Arc<T>) {
        let slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        let (slot, _) = self
            .changed
            .wait_timeout_while(slot, timeout, |slot| slot.0 == seen)
            .unwrap_or_else(PoisonError::into_inner);
        (slot.0, Arc::clone(&slot.1))
    }
}

#[cfg(test)]
mod tests {
    use super::Latest;
    use std::time::Duration;

    #[test]
    fn a_reader_gets_the_newest_value() {
        let latest = Latest::new(0);
        latest.set(1);
        latest.set(2);
        let (number, value) = latest.wait(0, Duration::ZERO);
        assert_eq!((number, *value), (2, 2));
        assert_eq!(*latest.wait(number, Duration::ZERO).1, 2);
    }
}
