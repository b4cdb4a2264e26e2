//! What a fault may do to the page, seen by hand and by a Prometheus that scrapes all along.

use crate::support::{Exporter, Page, Prometheus, Setup};

pub(crate) const UP: &str = "nvml_exporter_device_up";
pub(crate) const DOWN: &str = "nvml_exporter_device_down";
pub(crate) const ERRORS: &str = "nvml_exporter_nvml_errors_total";
pub(crate) const ENERGY: &str = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION";
pub(crate) const TEMPERATURE: &str = "DCGM_FI_DEV_GPU_TEMP";

/// An exporter that a Prometheus scrapes.
pub(crate) struct Watched {
    pub(crate) exporter: Exporter,
    prometheus: Prometheus,
}

impl Watched {
    pub(crate) fn start(setup: Setup) -> Self {
        let exporter = setup.start();
        let prometheus = Prometheus::start(&[exporter.address]);
        Self { exporter, prometheus }
    }

    pub(crate) fn ready(scenario: &str) -> Self {
        let watched = Self::start(Setup::simulate(scenario));
        watched.exporter.until_settled();
        watched
    }

    /// Tells the simulator, waits for the page to follow, and for Prometheus to see it.
    pub(crate) fn after(
        &self,
        commands: &[&str],
        what: &str,
        wanted: impl Fn(&Page) -> bool,
    ) -> Page {
        self.exporter.control(commands);
        let page = self.exporter.until(what, wanted);
        self.prometheus.until_scraped(self.prometheus.scrapes() + 1.0);
        page
    }

    /// The energy of all GPUs but these goes on, pass after pass.
    pub(crate) fn others_go_on(&self, stopped: &[&str]) {
        let mut page = self.exporter.scrape();
        for _ in 0..4 {
            let before = page;
            page = self.exporter.until("the other GPUs' energy to go on", |now| {
                before
                    .samples(ENERGY)
                    .filter(|sample| !stopped.contains(&sample.label("gpu").unwrap()))
                    .all(|sample| {
                        let labels: Vec<(&str, &str)> =
                            sample.labels.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
                        now.value(ENERGY, &labels).is_some_and(|value| value > sample.value)
                    })
            });
        }
    }

    /// Prometheus saw no failed scrape.
    pub(crate) fn end(self) {
        self.prometheus.until_scraped(5.0);
        self.prometheus.assert_content();
    }
}

pub(crate) fn gpus(page: &Page, name: &str) -> Vec<String> {
    let mut gpus: Vec<String> =
        page.samples(name).map(|sample| sample.label("gpu").unwrap().to_owned()).collect();
    gpus.dedup();
    gpus
}

/// Whether the GPU is down for this reason, and has no readings.
pub(crate) fn is_down(page: &Page, gpu: &str, reason: &str) -> bool {
    page.is(UP, &[("gpu", gpu)], 0.0)
        && page.is(DOWN, &[("gpu", gpu), ("reason", reason)], 1.0)
        && readings_of(page, gpu) == 0
}

pub(crate) fn is_up(page: &Page, gpu: &str) -> bool {
    page.is(UP, &[("gpu", gpu)], 1.0)
        && page.sample(DOWN, &[("gpu", gpu)]).is_none()
        && readings_of(page, gpu) > 0
}

pub(crate) fn readings_of(page: &Page, gpu: &str) -> usize {
    page.readings().filter(|sample| sample.label("gpu") == Some(gpu)).count()
}

pub(crate) fn errors(page: &Page, call: &str, code: &str) -> f64 {
    page.value(ERRORS, &[("call", call), ("code", code)]).unwrap_or_default()
}
