//! The families that are on a page whatever is selected.

use std::collections::BTreeSet;
use std::time::Duration;

use expect_test::expect;
use nvml_exporter::attribution::Attribution;
use nvml_exporter::catalogue::fields;
use nvml_exporter::exposition::Renderer;
use nvml_exporter::exposition::{Encoding, Format};
use nvml_exporter::sampler::snapshot::{Gpu, Library, Status};

use crate::parser::{Family, parse};
use crate::support::*;

/// Every family that there can be, from a page that has all and one without the library.
fn always_there() -> Vec<Family> {
    let telemetry = telemetry();
    telemetry.record_pass(Duration::from_millis(4));
    telemetry.record_error("nvmlInit_v2", "unknown");
    telemetry.record_scrape(Format::Text, Encoding::Identity);
    telemetry.record_rejected("unauthorized");
    let mut split = reading(Vec::new());
    split.instances = vec![instance(1, Vec::new())];
    split.unsupported = vec![(0, "not_supported")];
    let down =
        Gpu { status: Status::Down("lost"), reading: None, ..up(identity(1), reading(Vec::new())) };
    let full = snapshot(selection(&[&TEMP], &[]), vec![up(identity(0), split), down]);
    let mut none = full.clone();
    none.library = Library::Starting;
    let mut pages = [full, none].map(|snapshot| {
        let page = Renderer::default().render(
            (&snapshot, &Attribution::default()),
            &settings(),
            &telemetry,
            now(),
        );
        parse(str::from_utf8(&page.text.encoded(Encoding::Identity)).unwrap())
    });
    let known: BTreeSet<String> = pages[0].iter().map(|family| family.name.clone()).collect();
    pages[1].retain(|family| !known.contains(&family.name));
    pages.into_iter().flatten().collect()
}

#[test]
fn no_field_takes_the_name_of_a_family_that_is_always_there() {
    let taken: BTreeSet<String> = always_there().into_iter().map(|family| family.name).collect();
    expect![[r#"
        {
            "nvml_device_info",
            "nvml_down",
            "nvml_driver_info",
            "nvml_exporter_build_info",
            "nvml_exporter_config_last_reload_success_timestamp_seconds",
            "nvml_exporter_config_last_reload_successful",
            "nvml_exporter_config_reloads_total",
            "nvml_exporter_device_down",
            "nvml_exporter_device_up",
            "nvml_exporter_field_unsupported",
            "nvml_exporter_last_pass_timestamp_seconds",
            "nvml_exporter_nvml_errors_total",
            "nvml_exporter_page_timestamp_seconds",
            "nvml_exporter_pass_duration_seconds",
            "nvml_exporter_reading_age_seconds",
            "nvml_exporter_scrapes_rejected_total",
            "nvml_exporter_scrapes_total",
            "nvml_exporter_simulated",
            "nvml_exporter_snapshot_age_seconds",
            "nvml_mig_instance_info",
            "nvml_up",
            "process_cpu_seconds_total",
            "process_max_fds",
            "process_open_fds",
            "process_resident_memory_bytes",
            "process_start_time_seconds",
            "process_threads",
            "process_virtual_memory_bytes",
        }
    "#]]
    .assert_debug_eq(&taken);
    for field in fields() {
        for name in std::iter::once(&field.name).chain(field.aliases) {
            assert!(!taken.contains(*name), "{name}");
        }
    }
}

#[test]
fn each_family_that_is_always_there_is_documented() {
    let document = include_str!("../../docs/own-metrics.md");
    for family in always_there() {
        let name = format!("`{}`", family.name);
        assert!(document.contains(&name), "{name} is missing in docs/own-metrics.md");
    }
}

#[test]
fn our_own_families_follow_the_conventions() {
    for family in always_there() {
        let name = &family.name;
        assert!(name.starts_with("nvml_") || name.starts_with("process_"), "{name}");
        assert_eq!(name.ends_with("_total"), family.kind == "counter", "{name}");
        assert!(family.help.ends_with('.') && !family.help.ends_with(".."), "{name}");
    }
}

/// In `OpenMetrics` a counter `x_total` is the family `x`.
#[test]
fn no_field_is_named_like_another_counter_without_its_suffix() {
    let names: BTreeSet<&str> = fields().map(|field| field.name).collect();
    for counter in names.iter().filter_map(|name| name.strip_suffix("_total")) {
        assert!(!names.contains(counter), "{counter}");
    }
}
