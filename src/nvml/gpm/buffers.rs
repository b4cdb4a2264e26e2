//! The sample buffers of a session, which NVML allocates and wants back.

use std::sync::{Mutex, MutexGuard, PoisonError};

use nvml_wrapper::Nvml;
use nvml_wrapper_sys::bindings as sys;

use crate::nvml::Code;
use crate::nvml::raw::nvml_call;

/// A sample buffer. It means nothing after it was freed or its session ended; who keeps one lets
/// go of it then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Buffer(pub(super) sys::nvmlGpmSample_t);

// SAFETY: NVML's objects may be used from any thread (nvml.h, "NVML API Reference"), a sample by
// one at a time: each is used by the thread of one GPU only. It is never dereferenced here.
unsafe impl Send for Buffer {}

/// All buffers of a session that are not freed yet. Readers forget theirs when a session ends
/// under them, so that it is the session that frees them.
#[derive(Debug, Default)]
pub(in crate::nvml) struct Buffers(Mutex<Vec<Buffer>>);

impl Buffers {
    pub(super) fn allocate(&self, nvml: &Nvml) -> Result<Buffer, Code> {
        let mut raw: sys::nvmlGpmSample_t = std::ptr::null_mut();
        nvml_call!(nvml, nvmlGpmSampleAlloc(&raw mut raw))?;
        let buffer = Buffer(raw);
        self.all().push(buffer);
        Ok(buffer)
    }

    /// Frees a buffer, once.
    pub(super) fn free(&self, nvml: &Nvml, buffer: Buffer) {
        let mut all = self.all();
        let Some(position) = all.iter().position(|known| *known == buffer) else { return };
        all.swap_remove(position);
        drop(all);
        // Nothing is left to do about a buffer that cannot be freed.
        let _ = nvml_call!(nvml, nvmlGpmSampleFree(buffer.0));
    }

    /// Frees what is left, at the end of the session.
    pub(in crate::nvml) fn free_all(&self, nvml: &Nvml) {
        let all = std::mem::take(&mut *self.all());
        for buffer in all {
            let _ = nvml_call!(nvml, nvmlGpmSampleFree(buffer.0));
        }
    }

    fn all(&self) -> MutexGuard<'_, Vec<Buffer>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
