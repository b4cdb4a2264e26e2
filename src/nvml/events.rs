//! XIDs from NVML's event set: one thread blocked in the wait.

use nvml_wrapper_sys::bindings as sys;

use super::code::Code;
use super::library::Session;
use super::raw::{Handle, nvml_call, zeroed};

/// An id in an event that names no instance.
const NO_INSTANCE: u32 = u32::MAX;

/// `nvmlEventTypeXidCriticalError`.
const XID: u64 = 8;

/// How long one wait blocks: the bound on how late the thread notices that it should end.
const WAIT_MS: u32 = 500;

/// One XID.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct XidEvent {
    /// The UUID of the GPU.
    pub uuid: String,
    /// The GPU instance, if NVML attributes the XID to one or to a compute instance of it.
    pub gpu_instance: Option<u32>,
    /// The XID; 999 is NVML's "unknown".
    pub xid: u64,
}

/// An event set with all GPUs that could be registered on it.
#[derive(Debug)]
pub struct XidWatch<'a> {
    session: &'a Session,
    set: sys::nvmlEventSet_t,
    gpus: Vec<(Handle, String)>,
}

impl<'a> XidWatch<'a> {
    /// Registers each GPU for XIDs. One that refuses is left out; with none there is no watch.
    pub fn new(session: &'a Session, gpus: &[(Handle, String)]) -> Result<Self, Code> {
        let nvml = session.nvml();
        let mut set = std::ptr::null_mut();
        nvml_call!(nvml, nvmlEventSetCreate(&raw mut set))?;
        let mut watch = Self { session, set, gpus: Vec::new() };
        let mut refused = Code::NOT_SUPPORTED;
        for (handle, uuid) in gpus {
            // The wrapper's version frees the set when one GPU does not support an event.
            match nvml_call!(nvml, nvmlDeviceRegisterEvents(handle.0, XID, set)) {
                Ok(()) => watch.gpus.push((*handle, uuid.clone())),
                Err(code) => refused = code,
            }
        }
        if watch.gpus.is_empty() { Err(refused) } else { Ok(watch) }
    }

    /// The UUIDs of the GPUs watched.
    pub fn watched(&self) -> impl Iterator<Item = &str> {
        self.gpus.iter().map(|(_, uuid)| uuid.as_str())
    }

    /// Waits for the next XID; `None` when nothing happened for a while.
    pub fn wait(&self) -> Result<Option<XidEvent>, Code> {
        let mut data: sys::nvmlEventData_st = zeroed();
        let nvml = self.session.nvml();
        let answer = match nvml_call!(nvml, nvmlEventSetWait_v2(self.set, &raw mut data, WAIT_MS)) {
            Err(Code::FUNCTION_NOT_FOUND) => {
                // The older call does not know instances and leaves their ids alone.
                data.gpuInstanceId = NO_INSTANCE;
                nvml_call!(nvml, nvmlEventSetWait(self.set, &raw mut data, WAIT_MS))
            }
            other => other,
        };
        match answer {
            Ok(()) => Ok(self.event(&data)),
            Err(Code::TIMEOUT) => Ok(None),
            Err(code) => Err(code),
        }
    }

    fn event(&self, data: &sys::nvmlEventData_st) -> Option<XidEvent> {
        if data.eventType & XID == 0 {
            return None;
        }
        let (_, uuid) = self.gpus.iter().find(|(handle, _)| handle.0 == data.device)?;
        Some(XidEvent {
            uuid: uuid.clone(),
            gpu_instance: (data.gpuInstanceId != NO_INSTANCE).then_some(data.gpuInstanceId),
            xid: data.eventData,
        })
    }
}

impl Drop for XidWatch<'_> {
    fn drop(&mut self) {
        // Nothing is left to do about a set that cannot be freed.
        let _ = nvml_call!(self.session.nvml(), nvmlEventSetFree(self.set));
    }
}
