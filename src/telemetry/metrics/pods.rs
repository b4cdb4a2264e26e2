//! Metrics about asking the kubelet which pod holds what.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::counts::Counts;
use super::{NoLabels, ReasonLabels, Telemetry, unix_now};

/// Upper bounds in seconds. A kubelet answers in some milliseconds, a busy one in some hundred;
/// the limits of a call lie beyond.
const BUCKETS: [f64; 10] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0];

/// What is recorded of polls. Families without labels are gauges that are absent at first.
#[derive(Debug, Clone)]
pub(super) struct PodMetrics {
    up: Gauge,
    last_success: Family<NoLabels, Gauge<f64, AtomicU64>>,
    errors: Counts<ReasonLabels>,
    duration: Histogram,
    pods: Family<NoLabels, Gauge>,
}

impl PodMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            up: Gauge::default(),
            last_success: Family::default(),
            errors: Counts::default(),
            duration: Histogram::new(BUCKETS),
            pods: Family::default(),
        };
        registry.register(
            "pod_resources_up",
            "Whether the kubelet last said what pods hold",
            metrics.up.clone(),
        );
        registry.register(
            "pod_resources_last_success_timestamp_seconds",
            "When the kubelet last said what pods hold, in Unix time",
            metrics.last_success.clone(),
        );
        registry.register(
            "pod_resources_errors",
            "Calls of the kubelet's pod-resources service that failed",
            metrics.errors.clone(),
        );
        registry.register(
            "pod_resources_duration_seconds",
            "Time that asking the kubelet took",
            metrics.duration.clone(),
        );
        registry.register(
            "pod_resources_pods",
            "Pods that the kubelet lists, with GPUs and without; none if that is not known",
            metrics.pods.clone(),
        );
        metrics
    }
}

/// Asking the kubelet; records nothing unless made by [`Telemetry::with_pods`].
impl Telemetry {
    /// Errors of this reason can happen: their counter is there from now on.
    pub fn expect_poll_error(&self, reason: &'static str) {
        if let Some(metrics) = &self.pods {
            metrics.errors.start(ReasonLabels { reason });
        }
    }

    /// The kubelet said which pods hold what.
    pub fn record_poll(&self, took: Duration, pods: usize) {
        if let Some(metrics) = &self.pods {
            metrics.up.set(1);
            metrics.last_success.get_or_create(&[]).set(unix_now());
            metrics.duration.observe(took.as_secs_f64());
            metrics.pods.get_or_create(&[]).set(i64::try_from(pods).unwrap_or(i64::MAX));
        }
    }

    /// The kubelet did not say which pods hold what.
    pub fn record_poll_failure(&self, took: Duration, reason: &'static str) {
        if let Some(metrics) = &self.pods {
            metrics.up.set(0);
            metrics.duration.observe(took.as_secs_f64());
        }
        self.record_poll_error(reason);
    }

    /// One call of the kubelet failed, for a reason that is a constant.
    pub fn record_poll_error(&self, reason: &'static str) {
        if let Some(metrics) = &self.pods {
            metrics.errors.count(ReasonLabels { reason });
        }
    }

    /// What was known of pods is too old to be told any more.
    pub fn record_pods_forgotten(&self) {
        if let Some(metrics) = &self.pods {
            metrics.pods.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Build;
    use super::*;

    fn page(telemetry: &Telemetry) -> Vec<String> {
        let mut page = String::new();
        telemetry.encode_text(&mut page);
        let mine = page.lines().filter(|line| line.starts_with("nvml_exporter_pod_resources"));
        mine.filter(|line| !line.contains("_bucket")).map(str::to_owned).collect()
    }

    fn build() -> Build {
        Build { version: "1.0.0", revision: "" }
    }

    #[test]
    fn an_exporter_that_asks_no_kubelet_says_nothing_of_one() {
        let telemetry = Telemetry::new(build());
        telemetry.record_poll(Duration::ZERO, 1);
        telemetry.record_poll_failure(Duration::ZERO, "timeout");
        assert_eq!(page(&telemetry), Vec::<String>::new());
    }

    #[test]
    fn what_is_not_known_is_absent() {
        let telemetry = Telemetry::with_pods(build());
        telemetry.expect_poll_error("timeout");
        assert_eq!(
            page(&telemetry),
            [
                "nvml_exporter_pod_resources_up 0",
                "nvml_exporter_pod_resources_errors_total{reason=\"timeout\"} 0",
                "nvml_exporter_pod_resources_duration_seconds_sum 0.0",
                "nvml_exporter_pod_resources_duration_seconds_count 0",
            ]
        );
        telemetry.record_poll(Duration::from_millis(500), 7);
        let known = page(&telemetry);
        assert!(known.contains(&"nvml_exporter_pod_resources_up 1".to_owned()), "{known:?}");
        assert!(known.contains(&"nvml_exporter_pod_resources_pods 7".to_owned()), "{known:?}");
        assert!(known.iter().any(|line| line.contains("last_success_timestamp_seconds 1")));
        telemetry.record_poll_failure(Duration::from_millis(500), "timeout");
        telemetry.record_pods_forgotten();
        let lost = page(&telemetry);
        assert!(lost.contains(&"nvml_exporter_pod_resources_up 0".to_owned()), "{lost:?}");
        assert!(lost.contains(
            &"nvml_exporter_pod_resources_errors_total{reason=\"timeout\"} 1".to_owned()
        ));
        assert!(!lost.iter().any(|line| line.contains("_pods ")), "{lost:?}");
    }
}
