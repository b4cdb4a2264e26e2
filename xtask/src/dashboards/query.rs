//! The queries of the dashboards: selectors with the variables, and the aggregations that make one
//! series of one thing.
//!
//! Readings of a board repeat on each of its MIG instances and on each pod that shares it. So
//! everything is `max by` the GPU, or the device, before it is summed or compared.

use super::names;
use crate::alerts::fields::{Fields, Names};
use crate::shell::Outcome;

/// Selects an exporter's targets.
const TARGET: &str = r#"cluster=~"$cluster",job=~"$job",instance=~"$instance""#;
/// Selects nodes.
const HOST: &str = r#"hostname=~"$host""#;
/// Selects GPUs.
const GPU: &str = r#"hostname=~"$host",gpu=~"$gpu""#;

/// The labels of a GPU in a result.
pub(super) const GPU_LABELS: &str = "cluster, hostname, gpu, UUID";
/// The labels of a GPU or a MIG instance in a result.
pub(super) const DEVICE_LABELS: &str = "cluster, hostname, gpu, UUID, GPU_I_PROFILE, GPU_I_ID";
/// What tells devices apart.
pub(super) const DEVICE: &str = "UUID, GPU_I_ID";

/// Writes queries under one set of names.
pub(super) struct Query<'a> {
    fields: &'a Fields,
    names: Names,
    /// Names that no document has; told when the dashboards are written.
    unknown: std::cell::RefCell<Vec<String>>,
}

impl<'a> Query<'a> {
    pub(super) const fn new(fields: &'a Fields, names: Names) -> Self {
        Self { fields, names, unknown: std::cell::RefCell::new(Vec::new()) }
    }

    pub(super) const fn names(&self) -> Names {
        self.names
    }

    /// Fails if a query named a field that does not exist.
    pub(super) fn check(&self) -> Outcome {
        match self.unknown.borrow().first() {
            Some(problem) => Err(problem.clone()),
            None => Ok(()),
        }
    }

    /// A field's name, and what makes its base unit.
    fn named(&self, legacy: &'a str) -> (&'a str, &'static str) {
        match names::named(self.fields, legacy, self.names) {
            Ok(named) => (named.name, named.conversion),
            Err(problem) => {
                self.unknown.borrow_mut().push(problem);
                (legacy, "")
            }
        }
    }

    /// A field's name.
    pub(super) fn name(&self, legacy: &'a str) -> &'a str {
        self.named(legacy).0
    }

    /// A series of the exporter itself.
    pub(super) fn target(&self, name: &'a str, more: &str) -> String {
        select(self.name(name), &[TARGET, more])
    }

    /// A series of a node.
    pub(super) fn host(&self, name: &'a str, more: &str) -> String {
        select(self.name(name), &[TARGET, HOST, more])
    }

    /// A series of a GPU or a device, as scraped.
    pub(super) fn raw(&self, name: &'a str, more: &str) -> String {
        select(self.name(name), &[TARGET, GPU, more])
    }

    /// One value a GPU, in the base unit.
    pub(super) fn gpu(&self, name: &'a str) -> String {
        self.max(GPU_LABELS, name, "")
    }

    /// One value a GPU or MIG instance, in the base unit.
    pub(super) fn device(&self, name: &'a str) -> String {
        self.max(DEVICE_LABELS, name, "")
    }

    /// One value for each set of labels, in the base unit.
    pub(super) fn max(&self, by: &str, name: &'a str, more: &str) -> String {
        let (_, conversion) = self.named(name);
        converted(&format!("max by ({by}) ({})", self.raw(name, more)), conversion)
    }

    /// How fast a counter grows, in base units a second, one value for each set of labels.
    pub(super) fn rate(&self, by: &str, name: &'a str, more: &str) -> String {
        let (_, conversion) = self.named(name);
        let raw = self.raw(name, more);
        converted(&format!("max by ({by}) (rate({raw}[$__rate_interval]))"), conversion)
    }

    /// What a counter of a GPU has grown by in the dashboard's range, in base units. The counter
    /// is made one series a GPU first: series end when pods do, and what happens between two pods
    /// would be lost.
    pub(super) fn grown(&self, by: &str, name: &'a str) -> String {
        let (_, conversion) = self.named(name);
        let one = format!("max by ({by}) ({})", self.raw(name, ""));
        converted(&format!("increase(({one})[$__range:$__interval])"), conversion)
    }

    /// How busy each GPU or MIG instance is. NVML says nothing about instances; the profiling
    /// metric takes their place from Hopper on.
    pub(super) fn utilisation(&self) -> String {
        let engine = self.device("DCGM_FI_PROF_GR_ENGINE_ACTIVE");
        format!("({} or {engine})", self.device("DCGM_FI_DEV_GPU_UTIL"))
    }
}

/// The mean over the dashboard's range of something that counts as 0 while it is not there.
pub(super) fn mean_in_range(expr: &str) -> String {
    format!(
        "sum_over_time(({expr})[$__range:$__interval]) \
         / scalar(count_over_time(vector(1)[$__range:$__interval]))"
    )
}

/// A count that is 0 where there is nothing to count.
pub(super) fn or_zero(expr: &str) -> String {
    format!("{expr} or vector(0)")
}

fn select(name: &str, matchers: &[&str]) -> String {
    let matchers: Vec<&str> = matchers.iter().copied().filter(|text| !text.is_empty()).collect();
    format!("{name}{{{}}}", matchers.join(","))
}

fn converted(expr: &str, conversion: &str) -> String {
    if conversion.is_empty() { expr.to_owned() } else { format!("({expr}{conversion})") }
}
