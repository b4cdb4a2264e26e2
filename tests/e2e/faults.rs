//! What goes wrong with a GPU, an instance or the driver costs its own series, says why, and passes
//! by itself. A real Prometheus scrapes all along and sees no failed scrape.

use crate::support::{Page, Setup, until};
use crate::watched::{
    DOWN, ENERGY, ERRORS, TEMPERATURE, UP, Watched, errors, gpus, is_down, is_up,
};

#[test]
fn a_gpu_that_hangs_for_ever_in_one_call() {
    let watched = Watched::ready("dgx-h100");
    let mut threads = watched.exporter.threads();
    threads.retain(|name| !name.starts_with("look-up"));
    let page = watched.after(&["gpu 3 hang nvmlDeviceGetPowerUsage"], "GPU 3 down", |page| {
        is_down(page, "3", "timeout")
    });
    assert_eq!(gpus(&page, TEMPERATURE), ["0", "1", "2", "4", "5", "6", "7"]);
    assert!(errors(&page, "pass", "TIMEOUT") >= 1.0);
    watched.exporter.until_log("GPU does not answer; its series end gpu=3");
    watched.others_go_on(&["3"]);
    let page = watched.exporter.scrape();
    assert!(is_down(&page, "3", "timeout"));
    // Those that look GPUs up come and go; of those that stay one is stuck and none is added.
    until(
        "the same threads",
        || (watched.exporter.threads() == threads).then_some(()),
        || format!("{:?}, not {threads:?}", watched.exporter.threads()),
    );
    watched.after(&["gpu 3 resume"], "GPU 3 up", |page| is_up(page, "3"));
    watched.others_go_on(&[]);
    watched.end();
}

/// Nothing works any more: neither readings nor whatever looks the GPU up.
#[test]
fn a_gpu_that_hangs_in_every_call() {
    let watched = Watched::ready("dgx-h100");
    watched.after(&["gpu 5 hang *"], "GPU 5 down", |page| is_down(page, "5", "timeout"));
    watched.others_go_on(&["5"]);
    // Another one goes meanwhile, so that the GPUs are looked up with one that hangs among them.
    watched.after(&["gpu 6 lost"], "GPU 6 down", |page| is_down(page, "6", "lost"));
    watched.others_go_on(&["5", "6"]);
    watched.after(&["gpu 5 resume", "gpu 6 restore"], "all GPUs up", |page| {
        is_up(page, "5") && is_up(page, "6")
    });
    watched.others_go_on(&[]);
    watched.end();
}

#[test]
fn a_gpu_that_hangs_from_the_start() {
    let setup = Setup::simulate("dgx-h100").control(&["gpu 0 hang *"]);
    let watched = Watched::start(setup);
    watched
        .exporter
        .until("the other GPUs", |page| (1..8).all(|gpu| is_up(page, &gpu.to_string())));
    watched.others_go_on(&[]);
    watched.after(&["gpu 0 resume"], "GPU 0 up", |page| is_up(page, "0"));
    watched.end();
}

#[test]
fn a_gpu_is_lost_and_restored() {
    let watched = Watched::ready("dgx-h100");
    let before = watched.exporter.scrape();
    let page = watched.after(&["gpu 2 lost"], "GPU 2 down", |page| is_down(page, "2", "lost"));
    let lost: f64 = page
        .samples(ERRORS)
        .filter(|sample| sample.label("code") == Some("GPU_IS_LOST"))
        .map(|sample| sample.value)
        .sum();
    assert!(lost >= 1.0, "{}", page.text);
    watched.others_go_on(&["2"]);
    let page = watched.after(&["gpu 2 restore"], "GPU 2 up", |page| is_up(page, "2"));
    let uuid = |page: &Page| page.sample(UP, &[("gpu", "2")]).unwrap().labels.clone();
    assert_eq!(uuid(&page), uuid(&before));
    watched.others_go_on(&[]);
    watched.end();
}

/// A call that a GPU needs a reset for.
#[test]
fn a_gpu_needs_a_reset() {
    let watched = Watched::ready("t4-l4-mixed");
    watched.after(&["gpu 1 error * RESET_REQUIRED"], "GPU 1 down", |page| {
        is_down(page, "1", "reset_required")
    });
    watched.others_go_on(&["1"]);
    watched.after(&["gpu 1 error * clear"], "GPU 1 up", |page| is_up(page, "1"));
    watched.end();
}

/// The instances of a GPU as (profile, id).
fn instances(page: &Page, gpu: &str) -> Vec<(String, String)> {
    page.samples("DCGM_FI_DEV_FB_TOTAL")
        .filter(|sample| sample.label("gpu") == Some(gpu))
        .filter_map(|sample| {
            let (profile, id) = (sample.label("GPU_I_PROFILE")?, sample.label("GPU_I_ID")?);
            Some((profile.to_owned(), id.to_owned()))
        })
        .collect()
}

fn profiles(page: &Page, gpu: &str) -> Vec<String> {
    instances(page, gpu).into_iter().map(|(profile, _)| profile).collect()
}

#[test]
fn mig_is_repartitioned_and_switched_off_and_on() {
    let watched = Watched::ready("a100-mig-mixed");
    let page = watched.exporter.scrape();
    assert_eq!(profiles(&page, "0"), ["3g.40gb", "2g.20gb", "1g.10gb"]);
    let others = (instances(&page, "1"), instances(&page, "2"));
    assert_eq!((others.0.len(), others.1.len()), (7, 0));

    let page = watched.after(&["gpu 0 mig 1g.10gb,1g.10gb,4g.40gb"], "new instances", |page| {
        let mut profiles = profiles(page, "0");
        profiles.sort();
        profiles == ["1g.10gb", "1g.10gb", "4g.40gb"]
    });
    // Not a series is left of those that were.
    let ids: Vec<String> = instances(&page, "0").into_iter().map(|(_, id)| id).collect();
    for sample in page.readings().filter(|sample| sample.label("gpu") == Some("0")) {
        if let Some(id) = sample.label("GPU_I_ID") {
            assert!(ids.iter().any(|known| known == id), "{sample:?}");
        }
    }
    assert_eq!((instances(&page, "1"), instances(&page, "2")), others);
    watched.others_go_on(&[]);

    let page = watched.after(&["gpu 0 mig off"], "GPU 0 as a whole", |page| {
        instances(page, "0").is_empty() && page.of_gpu("DCGM_FI_DEV_FB_TOTAL", "0").is_some()
    });
    assert_eq!(page.of_gpu("DCGM_FI_DEV_MIG_MODE", "0"), Some(0.0));
    assert!(!page.samples("nvml_mig_instance_info").any(|s| s.label("gpu") == Some("0")));
    // What only a whole GPU gives is asked for again.
    watched
        .exporter
        .until("utilisation", |page| page.of_gpu("DCGM_FI_DEV_GPU_UTIL", "0").is_some());
    assert_eq!((instances(&page, "1"), instances(&page, "2")), others);

    // MIG mode without instances: the board's row stays.
    let page = watched.after(&["gpu 0 mig on"], "MIG on", |page| {
        page.of_gpu("DCGM_FI_DEV_MIG_MODE", "0") == Some(1.0)
    });
    assert!(page.of_gpu(TEMPERATURE, "0").is_some());
    watched
        .after(&["gpu 0 mig 7g.80gb"], "one instance", |page| profiles(page, "0") == ["7g.80gb"]);
    watched.others_go_on(&[]);
    watched.end();
}

/// NVML counts GPUs from 0 without gaps; here a GPU keeps its number.
#[test]
fn a_gpu_is_detached_and_attached() {
    let watched = Watched::ready("dgx-h100");
    let identities =
        |page: &Page| -> Vec<_> { page.samples(UP).map(|sample| sample.labels.clone()).collect() };
    let before = identities(&watched.exporter.scrape());
    let page =
        watched.after(&["gpu 1 detach"], "GPU 1 down", |page| is_down(page, "1", "detached"));
    assert_eq!(identities(&page), before);
    let page = watched
        .exporter
        .until("the others", |page| gpus(page, TEMPERATURE) == ["0", "2", "3", "4", "5", "6", "7"]);
    for sample in page.samples(TEMPERATURE) {
        let identity = &before[sample.label("gpu").unwrap().parse::<usize>().unwrap()];
        // Our own families spell the model otherwise.
        let mut shared = identity.iter().filter(|(name, _)| name != "model_name");
        assert!(shared.all(|label| sample.labels.contains(label)), "{sample:?}");
    }
    watched.others_go_on(&["1"]);
    let page = watched.after(&["gpu 1 attach"], "GPU 1 up", |page| is_up(page, "1"));
    assert_eq!(identities(&page), before);
    watched.others_go_on(&[]);
    watched.end();
}

/// The families of which this GPU has a sample.
fn families(page: &Page, gpu: &str) -> Vec<String> {
    let mut names: Vec<String> = page
        .readings()
        .filter(|sample| sample.label("gpu") == Some(gpu))
        .map(|sample| sample.name.clone())
        .filter(|name| !name.contains("NVLINK_BANDWIDTH"))
        .collect();
    names.dedup();
    names
}

#[test]
fn one_call_of_one_gpu_fails_for_a_while() {
    let watched = Watched::ready("dgx-h100");
    let before = families(&watched.exporter.scrape(), "4");
    let without: Vec<String> = before.iter().filter(|name| *name != TEMPERATURE).cloned().collect();
    for code in ["UNKNOWN", "TIMEOUT", "NOT_SUPPORTED", "NO_PERMISSION", "NOT_FOUND"] {
        let command = format!("gpu 4 error nvmlDeviceGetTemperature {code}");
        let page = watched
            .after(&[&command], "no temperature", |page| page.of_gpu(TEMPERATURE, "4").is_none());
        assert!(is_up(&page, "4"), "{code}");
        assert_eq!(families(&page, "4"), without, "{code}");
        assert_eq!(gpus(&page, TEMPERATURE), ["0", "1", "2", "3", "5", "6", "7"], "{code}");
        let why = [("field", TEMPERATURE), ("gpu", "4"), ("reason", code)];
        assert!(page.value("nvml_exporter_field_unsupported", &why).is_some(), "{code}");
        // What a GPU does not support is a property, not an error.
        let counted = errors(&page, "nvmlDeviceGetTemperature", code) >= 1.0;
        assert_eq!(counted, !matches!(code, "NOT_SUPPORTED" | "NO_PERMISSION"), "{code}");
        watched.others_go_on(&[]);
        watched.after(&["gpu 4 error nvmlDeviceGetTemperature clear"], "temperature", |page| {
            families(page, "4") == before
        });
    }
    watched.end();
}

#[test]
fn one_field_value_of_a_batch_fails_for_a_while() {
    let watched = Watched::ready("gh200");
    let before = families(&watched.exporter.scrape(), "0");
    let energy_ids = "83";
    let without: Vec<String> = before.iter().filter(|name| *name != ENERGY).cloned().collect();
    let command = format!("gpu 0 field {energy_ids} error UNKNOWN");
    let page = watched.after(&[&command], "no energy", |page| page.of_gpu(ENERGY, "0").is_none());
    assert_eq!(families(&page, "0"), without);
    assert!(errors(&page, "nvmlDeviceGetFieldValues", "UNKNOWN") >= 1.0);
    let command = format!("gpu 0 field {energy_ids} error clear");
    watched.after(&[&command], "energy", |page| families(page, "0") == before);
    watched.end();
}

#[test]
fn a_gpu_that_may_not_be_opened() {
    let setup = Setup::simulate("dgx-h100").control(&["gpu 6 error * NO_PERMISSION"]);
    let watched = Watched::start(setup);
    let page = watched.exporter.until("seven GPUs", |page| {
        page.samples(TEMPERATURE).count() == 7 && page.samples(UP).count() == 8
    });
    assert!(page.is(UP, &[("gpu", "6")], 0.0));
    assert!(page.is(DOWN, &[("gpu", "6"), ("reason", "no_permission")], 1.0));
    assert_eq!(gpus(&page, TEMPERATURE), ["0", "1", "2", "3", "4", "5", "7"]);
    watched.others_go_on(&[]);
    let page = watched.after(&["gpu 6 error * clear"], "GPU 6 up", |page| is_up(page, "6"));
    assert_eq!(page.samples(UP).count(), 8, "{}", page.text);
    watched.end();
}

/// A code that says nothing, on every call: no reading is made of what is remembered.
#[test]
fn a_gpu_that_answers_nothing() {
    let watched = Watched::ready("dgx-h100");
    watched.after(&["gpu 3 error * UNKNOWN"], "GPU 3 down", |page| is_down(page, "3", "error"));
    watched.others_go_on(&["3"]);
    watched.after(&["gpu 3 error * clear"], "GPU 3 up", |page| is_up(page, "3"));
    watched.others_go_on(&[]);
    watched.end();
}
