//! The driver or its library is absent, goes, comes back: a state that is served.

use crate::support::Setup;
use crate::watched::{TEMPERATURE, UP, Watched, gpus, is_down, is_up};

#[test]
fn the_driver_comes_after_the_start() {
    let watched = Watched::start(Setup::simulate("dgx-h100").control(&["driver unload"]));
    let page = watched.exporter.until("no driver", |page| {
        page.value("nvml_down", &[("reason", "driver_not_loaded")]).is_some()
    });
    assert!(page.is("nvml_up", &[], 0.0));
    assert_eq!(page.readings().count(), 0);
    assert_eq!(page.samples(UP).count(), 0);
    for (path, status) in [("/health", 200), ("/livez", 200), ("/metrics", 200), ("/", 200)] {
        assert_eq!(watched.exporter.get(path, &[]).status, status, "{path}");
    }
    let page = watched.after(&["driver load"], "eight GPUs", |page| {
        page.is("nvml_up", &[], 1.0) && gpus(page, TEMPERATURE).len() == 8
    });
    assert!(page.family("nvml_down").is_none());
    assert_eq!(watched.exporter.get("/readyz", &[]).status, 200);
    watched.others_go_on(&[]);
    watched.end();
}

#[test]
fn the_driver_goes_and_comes_back_in_another_version() {
    let watched = Watched::ready("t4-l4-mixed");
    let before = watched.exporter.scrape();
    let page = watched.after(&["driver unload"], "no driver", |page| page.is("nvml_up", &[], 0.0));
    assert_eq!(page.readings().count(), 0, "{}", page.text);
    // Who is missed is still known.
    assert_eq!(gpus(&page, UP), ["0", "1", "2", "3"]);
    for gpu in ["0", "1", "2", "3"] {
        assert!(is_down(&page, gpu, "library"), "{}", page.text);
    }
    assert_eq!(watched.exporter.get("/health", &[]).status, 200);
    let page = watched.after(&["driver load 560.35.05"], "four GPUs", |page| {
        gpus(page, TEMPERATURE) == ["0", "1", "2", "3"]
    });
    for sample in page.samples(TEMPERATURE) {
        assert_eq!(sample.label("DCGM_FI_DRIVER_VERSION"), Some("560.35.05"));
        let gpu = sample.label("gpu").unwrap();
        let former = before.sample(TEMPERATURE, &[("gpu", gpu)]).unwrap();
        assert_eq!(sample.label("UUID"), former.label("UUID"));
    }
    let info = page.samples("nvml_driver_info").next().unwrap();
    assert_eq!(info.label("driver_version"), Some("560.35.05"));
    watched.others_go_on(&[]);
    watched.end();
}

#[test]
fn the_driver_is_replaced_under_the_library() {
    let watched = Watched::ready("gh200");
    watched.after(&["driver mismatch"], "a mismatch", |page| {
        page.is("nvml_up", &[], 0.0)
            && page.value("nvml_down", &[("reason", "driver_library_mismatch")]).is_some()
    });
    watched.after(&["driver load"], "GPU 0 up", |page| is_up(page, "0"));
    watched.end();
}

#[test]
fn no_gpus_are_a_state() {
    let watched = Watched::start(Setup::simulate("no-gpus"));
    let page = watched.exporter.until_ready();
    assert!(page.is("nvml_up", &[], 1.0));
    assert_eq!(page.samples(UP).count() + page.readings().count(), 0);
    assert_eq!(watched.exporter.get("/health", &[]).status, 200);
    watched.end();
}

#[test]
fn no_library_is_a_state() {
    let watched = Watched::start(Setup::new().args(["--nvml-library=/nowhere/libnvidia-ml.so.1"]));
    let page = watched.exporter.until("the reason", |page| {
        page.value("nvml_down", &[("reason", "library_not_found")]).is_some()
    });
    assert!(page.is("nvml_up", &[], 0.0));
    assert_eq!(page.samples(UP).count() + page.readings().count(), 0);
    for path in ["/health", "/livez", "/readyz"] {
        assert_eq!(watched.exporter.get(path, &[]).status, 200, "{path}");
    }
    watched.end();
}
