//! What the landing page and the probes say of the exporter: plain data, replaced as a whole.

use std::time::{Duration, Instant};

/// The exporter as people see it at `/` and probes at `/readyz` and `/health`.
#[derive(Debug, Clone, Default)]
pub struct Status {
    /// The program's version.
    pub version: String,
    /// The scenario's name when all data is simulated.
    pub simulated: Option<String>,
    /// One line on NVML and the driver, or on why they are not there.
    pub library: String,
    /// One line for each device, in order.
    pub devices: Vec<DeviceLine>,
    /// When the newest pass ended. A pass that finds no library counts: that, too, is known then.
    pub last_pass: Option<Instant>,
    /// Passes since the start.
    pub passes: u64,
    /// How old the newest pass may be before the exporter is no longer ready; `None`: any age.
    pub stale_after: Option<Duration>,
    /// The configuration in use.
    pub config: ConfigStatus,
}

/// One device on the landing page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeviceLine {
    /// `GPU 0`, `GPU 0 / 1g.10gb 7`.
    pub name: String,
    /// `NVIDIA H200`.
    pub model: String,
    /// `GPU-…` or `MIG-…`.
    pub uuid: String,
    /// Whether it answers.
    pub up: bool,
    /// `up`, or why not.
    pub state: String,
}

/// The configuration in use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfigStatus {
    /// Where it came from, for people.
    pub source: String,
    /// A reload is under way; the old configuration serves meanwhile.
    pub reloading: bool,
    /// Why the last reload failed; the configuration before it stays in use.
    pub error: Option<String>,
}

impl Status {
    /// Why the exporter is not ready at `now`; `None` when it is.
    #[must_use]
    pub fn not_ready(&self, now: Instant) -> Option<String> {
        let Some(last) = self.last_pass else {
            return Some("the first pass over the GPUs has not ended yet".to_owned());
        };
        let age = now.saturating_duration_since(last);
        let bound = self.stale_after?;
        (age > bound).then(|| {
            format!(
                "the last pass over the GPUs ended {} s ago, more than {} s",
                age.as_secs(),
                bound.as_secs()
            )
        })
    }
}
