//! The exporter's own metrics: a prometheus-client registry that is written at the end of every
//! page. What is about devices is rendered from the snapshot instead (`exposition::health`).

mod counts;
mod pods;
mod process;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, SystemTime};

use prometheus_client::encoding::{EncodeLabelSet, prometheus_text, text};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use self::counts::Counts;
use self::pods::PodMetrics;
use crate::exposition::{Encoding, Format};

/// Handles to record into, for the sampler, the server and the configuration; cheap to clone.
#[derive(Debug, Clone)]
pub struct Telemetry {
    registry: Arc<Registry>,
    pass: Histogram,
    errors: Counts<CallLabels>,
    scrapes: Counts<ScrapeLabels>,
    rejected: Counts<ReasonLabels>,
    reloads: Counts<ResultLabels>,
    reload_ok: Gauge,
    reload_time: Gauge<f64, AtomicU64>,
    kernel_log: Family<NoLabels, Gauge>,
    pods: Option<PodMetrics>,
}

/// The program as built.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Build {
    /// The crate's version.
    pub version: &'static str,
    /// The commit, or empty.
    pub revision: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, EncodeLabelSet)]
struct CallLabels {
    call: &'static str,
    code: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, EncodeLabelSet)]
struct ScrapeLabels {
    format: &'static str,
    encoding: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, EncodeLabelSet)]
struct ReasonLabels {
    reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, EncodeLabelSet)]
struct ResultLabels {
    result: &'static str,
}

/// Upper bounds of pass durations in seconds. A pass over an idle GPU takes some milliseconds
/// (about a hundred calls of tens of microseconds); a busy or power-gated one some hundred;
/// from a second on something is wrong, and the deadlines lie there.
const PASS_BUCKETS: [f64; 12] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0];

/// A gauge in a family is absent until it is set.
type NoLabels = [(&'static str, &'static str); 0];

const SUCCESS: &str = "success";
const FAILURE: &str = "failure";

impl Telemetry {
    /// A registry of its own: two in one process share nothing.
    #[must_use]
    pub fn new(build: Build) -> Self {
        Self::with(build, false)
    }

    /// The same, with metrics about the kubelet, for an exporter that asks it.
    #[must_use]
    pub fn with_pods(build: Build) -> Self {
        Self::with(build, true)
    }

    fn with(build: Build, pods: bool) -> Self {
        let mut registry = Registry::default();
        // Help texts have no full stop: the registry adds one.
        let own = registry.sub_registry_with_prefix("nvml_exporter");
        own.register("build", "The program as built", Info::new(build));
        let pass = Histogram::new(PASS_BUCKETS);
        own.register("pass_duration_seconds", "Time a pass over one GPU took", pass.clone());
        let errors = Counts::<CallLabels>::default();
        own.register("nvml_errors", "NVML calls that failed", errors.clone());
        let scrapes = Counts::<ScrapeLabels>::default();
        own.register("scrapes", "Scrapes answered with a page", scrapes.clone());
        let rejected = Counts::<ReasonLabels>::default();
        own.register("scrapes_rejected", "Scrapes answered without a page", rejected.clone());
        let reloads = Counts::<ResultLabels>::default();
        own.register("config_reloads", "Reloads of the configuration", reloads.clone());
        // There from the start, so that the first failure is an increase.
        for result in [SUCCESS, FAILURE] {
            reloads.start(ResultLabels { result });
        }
        let reload_ok = Gauge::default();
        own.register(
            "config_last_reload_successful",
            "Whether the newest configuration is in use",
            reload_ok.clone(),
        );
        let reload_time = Gauge::default();
        own.register(
            "config_last_reload_success_timestamp_seconds",
            "When the configuration in use was loaded, in Unix time",
            reload_time.clone(),
        );
        let kernel_log = Family::default();
        own.register(
            "kernel_log_up",
            "Whether XIDs are read from the kernel log",
            kernel_log.clone(),
        );
        let pods = pods.then(|| PodMetrics::register(own));
        registry.register_collector(Box::new(process::Process::new()));
        // The process runs, so what it was started with was good.
        reload_ok.set(1);
        reload_time.set(unix_now());
        let registry = Arc::new(registry);
        Self {
            registry,
            pass,
            errors,
            scrapes,
            rejected,
            reloads,
            reload_ok,
            reload_time,
            kernel_log,
            pods,
        }
    }

    /// A pass over one GPU was complete after this time.
    pub fn record_pass(&self, took: Duration) {
        self.pass.observe(took.as_secs_f64());
    }

    /// An NVML call failed. Both are constants: the function's name, and the return code's.
    pub fn record_error(&self, call: &'static str, code: &'static str) {
        self.errors.count(CallLabels { call, code });
    }

    /// A scrape was answered with a page.
    pub fn record_scrape(&self, format: Format, encoding: Encoding) {
        let labels = ScrapeLabels { format: format.label(), encoding: encoding.label() };
        self.scrapes.count(labels);
    }

    /// A scrape was answered without a page, for a reason that is a constant.
    pub fn record_rejected(&self, reason: &'static str) {
        self.rejected.count(ReasonLabels { reason });
    }

    /// A new configuration was read, and put to use or refused; and whether all parts of the
    /// newest configuration are in use now.
    pub fn record_reload(&self, good: bool, in_use: bool) {
        let result = if good { SUCCESS } else { FAILURE };
        self.reloads.count(ResultLabels { result });
        self.reload_ok.set(i64::from(in_use));
        if good {
            self.reload_time.set(unix_now());
        }
    }

    /// The kernel log is read for XIDs, or could not be; without this call it is not asked for.
    pub fn kernel_log(&self, up: bool) {
        self.kernel_log.get_or_create(&NoLabels::default()).set(i64::from(up));
    }

    /// Appends all metrics in text 0.0.4.
    pub fn encode_text(&self, out: &mut String) {
        let start = out.len();
        if prometheus_text::encode(out, &self.registry).is_err() {
            out.truncate(start);
        }
    }

    /// Appends all metrics in `OpenMetrics` 1.0, and the end of the page.
    pub fn encode_openmetrics(&self, out: &mut String) {
        let start = out.len();
        if text::encode_registry(out, &self.registry).is_err() {
            out.truncate(start);
        }
        out.push_str("# EOF\n");
    }
}

fn unix_now() -> f64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

#[cfg(test)]
#[expect(clippy::needless_raw_string_hashes, reason = "expect-test writes them")]
mod tests {
    use expect_test::expect;

    use super::*;

    fn telemetry() -> Telemetry {
        Telemetry::new(Build { version: "1.0.0", revision: "abc" })
    }

    /// The exporter's own part; what the kernel says and the time differ from run to run.
    fn stable(page: &str) -> String {
        let mut lines: Vec<&str> = page
            .lines()
            .filter(|line| !line.contains("process_") && !line.contains("timestamp"))
            .filter(|line| !line.contains("_bucket{") || line.contains("\"0.005\""))
            .collect();
        // The registry keeps the samples of a family in random order.
        lines.chunk_by_mut(|a, b| a.starts_with('#') == b.starts_with('#')).for_each(|part| {
            if !part[0].starts_with('#') {
                part.sort_unstable();
            }
        });
        lines.join("\n")
    }

    #[test]
    fn what_is_recorded_is_on_the_page_in_text() {
        let telemetry = telemetry();
        telemetry.record_pass(Duration::from_millis(4));
        telemetry.record_error("nvmlDeviceGetPowerUsage", "gpu_is_lost");
        telemetry.record_scrape(Format::Text, Encoding::Gzip);
        telemetry.record_scrape(Format::Text, Encoding::Gzip);
        telemetry.record_rejected("unauthorized");
        telemetry.record_reload(false, false);
        let mut page = String::new();
        telemetry.encode_text(&mut page);
        expect![[r##"
            # HELP nvml_exporter_build_info The program as built.
            # TYPE nvml_exporter_build_info gauge
            nvml_exporter_build_info{version="1.0.0",revision="abc"} 1
            # HELP nvml_exporter_pass_duration_seconds Time a pass over one GPU took.
            # TYPE nvml_exporter_pass_duration_seconds histogram
            nvml_exporter_pass_duration_seconds_bucket{le="0.005"} 1
            nvml_exporter_pass_duration_seconds_count 1
            nvml_exporter_pass_duration_seconds_sum 0.004
            # HELP nvml_exporter_nvml_errors_total NVML calls that failed.
            # TYPE nvml_exporter_nvml_errors_total counter
            nvml_exporter_nvml_errors_total{call="nvmlDeviceGetPowerUsage",code="gpu_is_lost"} 1
            # HELP nvml_exporter_scrapes_total Scrapes answered with a page.
            # TYPE nvml_exporter_scrapes_total counter
            nvml_exporter_scrapes_total{format="text",encoding="gzip"} 2
            # HELP nvml_exporter_scrapes_rejected_total Scrapes answered without a page.
            # TYPE nvml_exporter_scrapes_rejected_total counter
            nvml_exporter_scrapes_rejected_total{reason="unauthorized"} 1
            # HELP nvml_exporter_config_reloads_total Reloads of the configuration.
            # TYPE nvml_exporter_config_reloads_total counter
            nvml_exporter_config_reloads_total{result="failure"} 1
            nvml_exporter_config_reloads_total{result="success"} 0
            # HELP nvml_exporter_config_last_reload_successful Whether the newest configuration is in use.
            # TYPE nvml_exporter_config_last_reload_successful gauge
            nvml_exporter_config_last_reload_successful 0"##]].assert_eq(&stable(&page));
    }

    #[test]
    fn openmetrics_ends_with_its_mark_and_counters_keep_their_suffix() {
        let telemetry = telemetry();
        telemetry.record_scrape(Format::OpenMetrics, Encoding::Identity);
        let mut page = String::new();
        telemetry.encode_openmetrics(&mut page);
        assert!(page.ends_with("\n# EOF\n"));
        assert!(page.contains("# TYPE nvml_exporter_scrapes counter\n"));
        assert!(page.contains(
            "nvml_exporter_scrapes_total{format=\"openmetrics\",encoding=\"identity\"} 1\n"
        ));
    }

    #[test]
    fn clones_record_into_the_same_registry() {
        let telemetry = telemetry();
        telemetry.clone().record_reload(true, true);
        let mut page = String::new();
        telemetry.encode_text(&mut page);
        assert!(page.contains("nvml_exporter_config_reloads_total{result=\"success\"} 1\n"));
    }
}
