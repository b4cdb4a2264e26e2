//! Multi-instance GPUs: finding the instances.

use nvml_wrapper_sys::bindings::nvmlDeviceAttributes_t;

use crate::call::{device_api, device_getters};
use crate::code::{INVALID_ARGUMENT, NOT_FOUND, NOT_SUPPORTED};
use crate::device::Device;
use crate::ffi::{Handle, Out};
use crate::handle::{Kind, Target};
use crate::mig::SLOTS;

/// The instances of a MIG device.
fn ids(device: &Device<'_>) -> Result<(u32, u32), u32> {
    device.part.map(|(gi, ci)| (gi.id, ci.id)).ok_or(INVALID_ARGUMENT)
}

fn attributes(device: &Device<'_>) -> Result<nvmlDeviceAttributes_t, u32> {
    let Some((gi, ci)) = device.part else { return Err(NOT_SUPPORTED) };
    let profile = gi.profile;
    Ok(nvmlDeviceAttributes_t {
        multiprocessorCount: profile.multiprocessors * ci.slices / profile.slices,
        sharedCopyEngineCount: profile.copy_engines,
        sharedDecoderCount: profile.decoders,
        sharedEncoderCount: 0,
        sharedJpegCount: profile.jpegs,
        sharedOfaCount: profile.ofas,
        gpuInstanceSliceCount: profile.slices,
        computeInstanceSliceCount: ci.slices,
        memorySizeMB: profile.memory_mib,
    })
}

device_api! {
    Gpu nvmlDeviceGetMigMode(device, current: Out<u32>, pending: Out<u32>) {
        if device.model.mig.is_none() {
            return Err(NOT_SUPPORTED);
        }
        let on = u32::from(device.gpu.mig.is_some());
        current.put(on)?;
        pending.put(on)
    }

    Gpu nvmlDeviceGetMigDeviceHandleByIndex(device, index: u32, handle: Out<Handle>) {
        let gpu = device.gpu;
        if device.model.mig.is_none() {
            return Err(NOT_SUPPORTED);
        }
        let instances = gpu.mig.as_ref().ok_or(NOT_FOUND)?;
        if index >= SLOTS {
            return Err(INVALID_ARGUMENT);
        }
        let mut all = instances.iter().flat_map(|gi| gi.compute.iter().map(move |ci| (gi, ci)));
        let (gi, ci) = all.find(|(_, ci)| ci.slot == index).ok_or(NOT_FOUND)?;
        let (kind, generation) = (Kind::Mig, gpu.mig_generation);
        let target = Target { kind, generation, gpu: gpu.number, gi: gi.id, ci: ci.id };
        handle.put(target.to_handle())
    }

    Mig nvmlDeviceGetDeviceHandleFromMigDeviceHandle(device, parent: Out<Handle>) {
        parent.put(device.gpu.handle())
    }
}

device_getters! {
    Any nvmlDeviceIsMigDeviceHandle: u32 = |device| u32::from(device.part.is_some());
    Mig nvmlDeviceGetGpuInstanceId: u32 = |device| ids(device)?.0;
    Mig nvmlDeviceGetComputeInstanceId: u32 = |device| ids(device)?.1;
    Gpu nvmlDeviceGetMaxMigDeviceCount: u32 = |device| device.gpu.mig.as_ref().map_or(0, |_| SLOTS);
    Any nvmlDeviceGetAttributes_v2: nvmlDeviceAttributes_t = |device| attributes(device)?;
    Any nvmlDeviceGetAttributes: nvmlDeviceAttributes_t = |device| attributes(device)?;
}
