//! The exporter itself: whether it runs, how good its readings are, what it costs.

use super::board::{Board, Row};
use super::looks::{self, CRITICAL, Level, Unit, WARNING};
use super::panel::Panel;
use super::query::{GPU_LABELS, Query, or_zero};
use super::table::{Column, Table};
use super::variable;

/// A target in a legend.
const INSTANCE: &str = "{{instance}}";

pub(super) fn board(query: &Query<'static>) -> Board {
    Board {
        name: "exporter",
        title: "Exporter",
        about: "The exporter itself: scrapes, age of readings, NVML errors, attribution, cost.",
        since: "now-1h",
        variables: variable::basic(),
        rows: vec![
            Row::new("Does it work", works(query)),
            Row::new("Scrapes", scrapes(query)),
            Row::new("Readings", readings(query)),
            Row::new("Attribution", attribution(query)),
            Row::new("What it costs", cost(query)),
            Row::new("Versions", versions(query)),
        ],
    }
}

/// The targets on which something is so.
fn targets(query: &Query<'static>, name: &'static str, condition: &str) -> String {
    or_zero(&format!(
        "count(max by (cluster, job, instance) ({}) {condition})",
        query.target(name, "")
    ))
}

fn works(query: &Query<'static>) -> Vec<Panel> {
    let of = |name| format!("max by (cluster, job, instance) ({})", query.target(name, ""));
    let age = format!(
        "time() - {} and on (cluster, job, instance) {} == 1",
        of("nvml_exporter_last_pass_timestamp_seconds"),
        of("nvml_up")
    );
    vec![
        Panel::stat(
            "Exporters up",
            "Targets that Prometheus can scrape.",
            targets(query, "up", "== 1"),
        ),
        Panel::stat(
            "Exporters down",
            "Targets that Prometheus cannot scrape. Alert: NvmlExporterDown.",
            targets(query, "up", "== 0"),
        )
        .steps(WARNING),
        Panel::stat(
            "Nodes without NVML",
            "Nodes whose driver is missing, broken or gone; nodes that have no GPU do not count. \
             Alerts: NvmlUnavailable, GpuDriverLibraryMismatch.",
            or_zero(&format!(
                "sum(max by (cluster, hostname) ({}))",
                query.host("nvml_down", "reason!~\"no_gpu|starting\"")
            )),
        )
        .steps(CRITICAL),
        Panel::stat(
            "Oldest reading",
            "Age of the newest pass of the exporter that is furthest behind, of those that have \
             NVML. Alert: NvmlExporterReadingsOld, from 180 s on.",
            or_zero(&format!("max({age})")),
        )
        .unit(Unit::Seconds)
        .steps(&[(None, Level::Good), (Some(180.0), Level::Warning)]),
        Panel::stat(
            "Refused counters files",
            "Exporters whose newest counters file has a mistake; they go on with the one before. \
             Alert: NvmlExporterConfigReloadFailed.",
            targets(query, "nvml_exporter_config_last_reload_successful", "== 0"),
        )
        .steps(WARNING),
        Panel::stat(
            "Kubelets silent",
            "Exporters that do not learn which pods hold their GPUs. \
             Alert: NvmlExporterAttributionFailing.",
            targets(query, "nvml_exporter_pod_resources_up", "== 0"),
        )
        .steps(WARNING),
        Panel::stat(
            "No kernel log",
            "Exporters that were told to read XIDs from the kernel log and cannot. \
             Alert: NvmlExporterKernelLogUnreadable.",
            targets(query, "nvml_exporter_kernel_log_up", "== 0"),
        )
        .steps(WARNING),
        Panel::stat(
            "Simulated",
            "Exporters whose readings are invented. Alert: NvmlExporterSimulated.",
            targets(query, "nvml_exporter_simulated", "== 1"),
        )
        .steps(WARNING),
    ]
}

fn scrapes(query: &Query<'static>) -> Vec<Panel> {
    let rate = |by: &str, name| {
        format!("sum by ({by}) (rate({}[$__rate_interval]))", query.target(name, ""))
    };
    vec![
        Panel::lines("Scrape duration", "How long Prometheus waits for a page.")
            .unit(Unit::Seconds)
            .query(query.target("scrape_duration_seconds", ""), INSTANCE),
        Panel::lines("Samples of a page", "How many samples each scrape brings.")
            .query(query.target("scrape_samples_scraped", ""), INSTANCE),
        Panel::lines("Scrapes answered", "Pages handed out per second, by format and encoding.")
            .unit(Unit::PerSecond)
            .query(
                rate("format, encoding", "nvml_exporter_scrapes_total"),
                "{{format}} {{encoding}}",
            ),
        Panel::lines(
            "Scrapes turned away",
            "Clients turned away per second, by the limit that they met. Empty as long as none is.",
        )
        .unit(Unit::PerSecond)
        .query(
            rate("instance, reason", "nvml_exporter_scrapes_rejected_total"),
            "{{instance}} {{reason}}",
        ),
    ]
}

fn readings(query: &Query<'static>) -> Vec<Panel> {
    let pass = |part: &str| {
        format!(
            "sum by (cluster, job, instance) (rate({}[$__rate_interval]))",
            query.target(
                match part {
                    "sum" => "nvml_exporter_pass_duration_seconds_sum",
                    _ => "nvml_exporter_pass_duration_seconds_count",
                },
                ""
            )
        )
    };
    let unsupported = Table::new(&[("field", "Field"), ("reason", "Reason")], ("GPUs", true))
        .column(Column::new(
            "GPUs",
            Unit::Count,
            format!(
                "count by (field, reason) (max by ({GPU_LABELS}, field, reason) ({}))",
                query.raw("nvml_exporter_field_unsupported", "")
            ),
        ));
    vec![
        Panel::lines(
            "Time to read a GPU",
            "Mean duration of a pass over one GPU. \
             NvmlExporterReadingsSlow, of severity info, from 2 s on.",
        )
        .unit(Unit::Seconds)
        .query(format!("{} / {}", pass("sum"), pass("count")), INSTANCE),
        Panel::lines(
            "Age of readings",
            "Age of each GPU's newest complete reading, as of when the page was made. It grows \
             while the GPU is down.",
        )
        .unit(Unit::Seconds)
        .query(query.gpu("nvml_exporter_reading_age_seconds"), "{{hostname}}/{{gpu}}"),
        Panel::lines(
            "NVML errors",
            "Calls per second that failed otherwise than by being unsupported, by call and code. \
             The call named pass counts passes that were given up.",
        )
        .unit(Unit::PerSecond)
        .query(
            format!(
                "sum by (call, code) (rate({}[$__rate_interval]))",
                query.target("nvml_exporter_nvml_errors_total", "")
            ),
            "{{call}} {{code}}",
        ),
        Panel::table(
            "Fields that GPUs do not give",
            "Fields that the counters file selects and that GPUs do not support, with NVML's \
             code. They have no series.",
            unsupported,
        )
        .size(12, 8),
    ]
}

fn attribution(query: &Query<'static>) -> Vec<Panel> {
    let kubelet = |name| query.target(name, "");
    let duration = |part| format!("rate({}[$__rate_interval])", query.target(part, ""));
    vec![
        Panel::lines(
            "Device ids from the kubelet",
            "Ids that the kubelet lists with pods: those that name a device of the node, and \
             those that do not, by reason. Needs --kubernetes, as all of this row.",
        )
        .size(8, 8)
        .query(kubelet("nvml_exporter_pod_resources_ids_matched"), "matched {{instance}}")
        .query(kubelet("nvml_exporter_pod_resources_ids_unmatched"), "{{reason}} {{instance}}")
        .query(kubelet("nvml_exporter_pod_resources_ids_ambiguous"), "ambiguous {{instance}}"),
        Panel::lines("Time until the kubelet answers", "Mean time of a question.")
            .unit(Unit::Seconds)
            .size(8, 8)
            .query(
                format!(
                    "{} / {}",
                    duration("nvml_exporter_pod_resources_duration_seconds_sum"),
                    duration("nvml_exporter_pod_resources_duration_seconds_count")
                ),
                INSTANCE,
            ),
        Panel::lines(
            "Questions that failed",
            "Questions to the kubelet per second that had no answer, by reason.",
        )
        .unit(Unit::PerSecond)
        .size(8, 8)
        .query(
            format!(
                "sum by (instance, reason) (rate({}[$__rate_interval]))",
                query.target("nvml_exporter_pod_resources_errors_total", "")
            ),
            "{{instance}} {{reason}}",
        ),
    ]
}

fn cost(query: &Query<'static>) -> Vec<Panel> {
    vec![
        Panel::lines("CPU", "CPU time that the exporter uses, in cores.").size(8, 8).query(
            format!("rate({}[$__rate_interval])", query.target("process_cpu_seconds_total", "")),
            INSTANCE,
        ),
        Panel::lines("Memory", "Memory that the exporter holds in RAM.")
            .unit(Unit::Bytes)
            .size(8, 8)
            .query(query.target("process_resident_memory_bytes", ""), INSTANCE),
        Panel::lines("Threads and files", "Threads and open file descriptors of the exporter.")
            .size(8, 8)
            .query(query.target("process_threads", ""), "threads {{instance}}")
            .query(query.target("process_open_fds", ""), "files {{instance}}"),
    ]
}

fn versions(query: &Query<'static>) -> Vec<Panel> {
    let builds =
        Table::new(&[("version", "Version"), ("revision", "Revision")], ("Exporters", true))
            .column(Column::new(
                "Exporters",
                Unit::Count,
                format!(
                    "count by (version, revision) ({})",
                    query.target("nvml_exporter_build_info", "")
                ),
            ));
    let reloads = Table::new(
        &[("cluster", "Cluster"), ("job", "Job"), ("instance", "Instance")],
        ("Instance", false),
    )
    .column(Column::new(
        "Started",
        Unit::Time,
        format!(
            "max by (cluster, job, instance) ({}) * 1000",
            query.target("process_start_time_seconds", "")
        ),
    ))
    .column(Column::new(
        "Counters file read",
        Unit::Time,
        format!(
            "max by (cluster, job, instance) ({}) * 1000",
            query.target("nvml_exporter_config_last_reload_success_timestamp_seconds", "")
        ),
    ))
    .column(
        Column::new(
            "File refused",
            Unit::Text,
            format!(
                "1 - max by (cluster, job, instance) ({})",
                query.target("nvml_exporter_config_last_reload_successful", "")
            ),
        )
        .mapped(looks::FLAG_WARNING),
    );
    vec![
        Panel::table("Builds", "Versions of the exporter that run.", builds).size(8, 8),
        Panel::table(
            "Starts and reloads",
            "When each exporter started, and when it read the selection that it serves. \
             Alert: NvmlExporterConfigReloadFailed.",
            reloads,
        )
        .size(16, 8),
    ]
}
