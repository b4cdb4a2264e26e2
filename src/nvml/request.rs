//! What GPUs are asked for.

use std::sync::Arc;

use crate::catalogue::{Plan, Selection};
use crate::config::DeviceSelector;

/// What every GPU is asked for; replaced as a whole when the configuration changes.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches")]
pub struct Request {
    /// The rows that samples refer to.
    pub selection: Arc<Selection>,
    /// The calls that these rows need.
    pub plan: Plan,
    /// Which GPUs and instances are rows.
    pub devices: DeviceSelector,
    /// DCGM's zeros where a board has no sensor (`--dcgm-quirks`).
    pub quirks: bool,
    /// Whether to ask where MIG instances lie: no row needs it.
    pub placements: bool,
    /// Whether to ask who uses the GPU: no row needs it.
    pub processes: bool,
    /// Whether to ask what the driver has accounted of processes; `processes` is asked, too.
    pub accounting: bool,
}
