//! A slot that holds the newest of a sequence of values.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// One writer, any number of readers; a reader that waits gets the newest value and may miss
/// some between. The lock guards a pointer swap only.
#[derive(Debug)]
pub struct Latest<T> {
    slot: Mutex<(u64, Arc<T>)>,
    bell: Arc<Bell>,
}

/// Rung by each new value of the slots that share it, so that one reader can wait for several.
#[derive(Debug, Default)]
pub struct Bell {
    rings: Mutex<u64>,
    rung: Condvar,
}

impl Bell {
    /// How often it has been rung.
    pub fn rings(&self) -> u64 {
        *self.rings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until it has been rung more often than `seen`, or for `timeout`.
    pub fn wait(&self, seen: u64, timeout: Duration) {
        let rings = self.rings.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.rung.wait_timeout_while(rings, timeout, |rings| *rings == seen);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    fn ring(&self) {
        *self.rings.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.rung.notify_all();
    }
}

impl<T> Latest<T> {
    /// A slot with a first value.
    pub fn new(value: T) -> Self {
        Self::ringing(value, Arc::default())
    }

    /// The same with a bell that other slots share.
    pub fn ringing(value: T, bell: Arc<Bell>) -> Self {
        Self { slot: Mutex::new((0, Arc::new(value))), bell }
    }

    /// The bell that new values ring.
    pub fn bell(&self) -> &Arc<Bell> {
        &self.bell
    }

    /// Replaces the value.
    pub fn set(&self, value: T) {
        {
            let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
            *slot = (slot.0 + 1, Arc::new(value));
        }
        self.bell.ring();
    }

    /// The newest value with its number.
    pub fn get(&self) -> (u64, Arc<T>) {
        let slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        (slot.0, Arc::clone(&slot.1))
    }

    /// The newest value once its number is not `seen` any more, or after `timeout`.
    pub fn wait(&self, seen: u64, timeout: Duration) -> (u64, Arc<T>) {
        let until = Instant::now() + timeout;
        loop {
            let rings = self.bell.rings();
            let newest = self.get();
            let left = until.saturating_duration_since(Instant::now());
            if newest.0 != seen || left.is_zero() {
                return newest;
            }
            self.bell.wait(rings, left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Latest;
    use std::sync::Arc;
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

    #[test]
    fn two_slots_ring_one_bell() {
        let one = Latest::new(0);
        let other = Latest::ringing('a', Arc::clone(one.bell()));
        let rings = one.bell().rings();
        other.set('b');
        assert_eq!(one.bell().rings(), rings + 1);
        one.bell().wait(rings, Duration::ZERO);
        assert_eq!((*one.get().1, *other.get().1), (0, 'b'));
    }
}
