//! How one GPU reaches the others.

use nvml_wrapper_sys::bindings as sys;

use super::code::Code;
use super::library::Session;
use super::raw::{Handle, nvml_call};

/// What is asked: `NVML_P2P_CAPS_INDEX_NVLINK`, as dcgm-exporter does.
const NVLINK: sys::nvmlGpuP2PCapsIndex_t = sys::nvmlGpuP2PCapsIndex_enum_NVML_P2P_CAPS_INDEX_NVLINK;

/// `nvmlDeviceGetP2PStatus` for each other GPU: its index and an `nvmlGpuP2PStatus_t`. One that
/// cannot be asked about is left out; the last code says why.
pub(super) fn read(
    session: &Session,
    handle: Handle,
    others: &[(u32, Handle)],
) -> (Vec<(u32, u32)>, Option<Code>) {
    let nvml = session.nvml();
    let mut failed = None;
    let mut found = Vec::with_capacity(others.len());
    for (index, other) in others {
        let mut status = 0;
        let answer =
            nvml_call!(nvml, nvmlDeviceGetP2PStatus(handle.0, other.0, NVLINK, &raw mut status));
        match answer {
            Ok(()) => found.push((*index, status)),
            Err(code) => failed = Some(code),
        }
    }
    (found, failed)
}
