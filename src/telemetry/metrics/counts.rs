//! A family of counters whose samples come in the order of their labels.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use prometheus_client::encoding::{EncodeLabelSet, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;

/// Like prometheus-client's own family, whose samples come in random order: a page should differ
/// from the last by its values only. The lock is written to once for each label set ever seen.
#[derive(Debug)]
pub(super) struct Counts<L>(Arc<RwLock<BTreeMap<L, Counter>>>);

impl<L> Clone for Counts<L> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<L> Default for Counts<L> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<L: Ord> Counts<L> {
    /// Counts one more.
    pub(super) fn count(&self, labels: L) {
        self.with(labels, |counter| {
            counter.inc();
        });
    }

    /// Makes the counter exist, so that its first increase is one.
    pub(super) fn start(&self, labels: L) {
        self.with(labels, |_| ());
    }

    fn with(&self, labels: L, act: impl FnOnce(&Counter)) {
        {
            let counters = self.0.read().unwrap_or_else(PoisonError::into_inner);
            if let Some(counter) = counters.get(&labels) {
                return act(counter);
            }
        }
        let mut counters = self.0.write().unwrap_or_else(PoisonError::into_inner);
        act(counters.entry(labels).or_default());
    }
}

impl<L: EncodeLabelSet + Ord> EncodeMetric for Counts<L> {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), fmt::Error> {
        for (labels, counter) in &*self.0.read().unwrap_or_else(PoisonError::into_inner) {
            counter.encode(encoder.encode_family(labels)?)?;
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Counter
    }

    fn is_empty(&self) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).is_empty()
    }
}
