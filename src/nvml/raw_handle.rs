//! A device handle that may travel between threads.

use nvml_wrapper_sys::bindings::nvmlDevice_t;

/// A device handle as NVML gave it. It means nothing after the session that gave it ends, and
/// NVML answers `INVALID_ARGUMENT` for one whose device is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handle(pub(super) nvmlDevice_t);

// SAFETY: NVML is thread-safe and its handles may be used from any thread (nvml.h, "NVML API
// Reference"); the exporter never dereferences one.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}
