//! `nvmlGpmMetricsGet`: what lies between two samples.

use nvml_wrapper_sys::bindings as sys;

use super::buffers::Buffer;
use crate::nvml::Code;
use crate::nvml::library::Session;
use crate::nvml::raw::{Plain, nvml_call, zeroed};

/// Room for metrics: more than in any header up to now. Drivers are said to touch only what is
/// asked for, but the struct grew from header to header, and its version did not.
const ROOM: usize = 512;

/// An `nvmlGpmMetricsGet_t` with more room at its end.
#[repr(C)]
struct Asked {
    version: u32,
    count: u32,
    first: sys::nvmlGpmSample_t,
    second: sys::nvmlGpmSample_t,
    metrics: [sys::nvmlGpmMetric_t; ROOM],
}

// SAFETY: integers, a double, raw pointers and arrays of structs of these.
unsafe impl Plain for Asked {}

/// The struct of the call, kept between passes for its size.
pub(super) struct Metrics(Box<Asked>);

impl Default for Metrics {
    fn default() -> Self {
        Self(Box::new(zeroed()))
    }
}

impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

/// What each metric came to, in the order in which they were asked.
pub(super) type Values = Vec<Result<f64, Code>>;

impl Metrics {
    /// Asks for metrics between an earlier and a later sample. Should a library refuse the whole
    /// call for the sake of one metric, they are asked one by one, which finds the culprit.
    pub(super) fn between(
        &mut self,
        session: &Session,
        samples: (Buffer, Buffer),
        metrics: &[u16],
    ) -> Result<Values, Code> {
        let mut values = Vec::with_capacity(metrics.len());
        for part in metrics.chunks(ROOM) {
            match self.call(session, samples, part) {
                Ok(()) => values.extend(self.answers(part.len())),
                Err(Code::INVALID_ARGUMENT | Code::NOT_SUPPORTED) if part.len() > 1 => {
                    for one in part {
                        let answer = self.call(session, samples, std::slice::from_ref(one));
                        values.push(answer.and_then(|()| self.answer(0)));
                    }
                }
                Err(code) if metrics.len() == 1 => values.push(Err(code)),
                Err(code) => return Err(code),
            }
        }
        Ok(values)
    }

    fn call(
        &mut self,
        session: &Session,
        (first, second): (Buffer, Buffer),
        metrics: &[u16],
    ) -> Result<(), Code> {
        let asked = &mut *self.0;
        asked.version = sys::NVML_GPM_METRICS_GET_VERSION;
        asked.count = u32::try_from(metrics.len()).unwrap_or_default();
        (asked.first, asked.second) = (first.0, second.0);
        for (slot, metric) in asked.metrics.iter_mut().zip(metrics) {
            *slot = empty();
            slot.metricId = u32::from(*metric);
        }
        // The call sees the struct that it knows, whose array is no longer than this one.
        let asked: *mut sys::nvmlGpmMetricsGet_t = (&raw mut *asked).cast();
        nvml_call!(session.nvml(), nvmlGpmMetricsGet(asked))
    }

    fn answers(&self, count: usize) -> impl Iterator<Item = Result<f64, Code>> + '_ {
        (0..count).map(|at| self.answer(at))
    }

    fn answer(&self, at: usize) -> Result<f64, Code> {
        let metric = self.0.metrics.get(at).ok_or(Code::INSUFFICIENT_SIZE)?;
        Code::check(metric.nvmlReturn).map(|()| metric.value)
    }
}

/// A metric that a library which answers success and leaves it alone has no value for.
fn empty() -> sys::nvmlGpmMetric_t {
    let mut metric: sys::nvmlGpmMetric_t = zeroed();
    metric.value = f64::NAN;
    metric
}
