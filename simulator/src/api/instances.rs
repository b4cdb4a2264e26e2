//! GPU instances and compute instances: the administrator's view of a board in MIG mode.

use nvml_wrapper_sys::bindings::{
    nvmlComputeInstanceInfo_t, nvmlComputeInstancePlacement_t, nvmlComputeInstanceProfileInfo_t,
    nvmlComputeInstanceProfileInfo_v2_t, nvmlComputeInstanceProfileInfo_v3_t,
    nvmlGpuInstanceInfo_t, nvmlGpuInstancePlacement_t, nvmlGpuInstanceProfileInfo_t,
    nvmlGpuInstanceProfileInfo_v2_t, nvmlGpuInstanceProfileInfo_v3_t,
};

use crate::call::device_api;
use crate::code::{Answer, INVALID_ARGUMENT, NOT_FOUND, NOT_SUPPORTED};
use crate::device::Device;
use crate::ffi::{Array, Handle, Out, chars, struct_version};
use crate::handle::{Kind, Target};
use crate::mig::{self, ComputeInstance, GpuInstance, Profile};

/// Compute slices of `NVML_COMPUTE_INSTANCE_PROFILE_*`.
const COMPUTE_SLICES: [u32; 8] = [1, 2, 3, 4, 7, 8, 6, 1];

fn profiles(device: &Device<'_>) -> Answer<[Profile; 7]> {
    let table = device.model.mig.as_deref().ok_or(NOT_SUPPORTED)?;
    mig::profiles(table).ok_or(NOT_SUPPORTED)
}

fn by_index(device: &Device<'_>, index: u32) -> Answer<Profile> {
    if index >= 17 {
        return Err(INVALID_ARGUMENT);
    }
    profiles(device)?.into_iter().find(|p| p.index == index).ok_or(NOT_SUPPORTED)
}

fn by_id(device: &Device<'_>, id: u32) -> Answer<Profile> {
    profiles(device)?.into_iter().find(|p| p.id == id).ok_or(NOT_SUPPORTED)
}

/// The instances, which only boards in MIG mode have.
fn instances<'a>(device: &Device<'a>) -> Answer<&'a [GpuInstance]> {
    device.gpu.mig.as_deref().ok_or(NOT_SUPPORTED)
}

fn put_profile_v(out: Out<nvmlGpuInstanceProfileInfo_v2_t>, p: Profile) -> Answer {
    let version = out.version()?;
    if version == struct_version::<nvmlGpuInstanceProfileInfo_v3_t>(3) {
        return out.cast().put(nvmlGpuInstanceProfileInfo_v3_t {
            version,
            id: p.id,
            sliceCount: p.slices,
            instanceCount: p.count,
            multiprocessorCount: p.multiprocessors,
            copyEngineCount: p.copy_engines,
            decoderCount: p.decoders,
            encoderCount: 0,
            jpegCount: p.jpegs,
            ofaCount: p.ofas,
            memorySizeMB: p.memory_mib,
            name: chars(&format!("MIG {}", p.name)),
            capabilities: 0,
        });
    }
    out.expect_version(2)?;
    out.put(nvmlGpuInstanceProfileInfo_v2_t {
        version,
        id: p.id,
        isP2pSupported: 0,
        sliceCount: p.slices,
        instanceCount: p.count,
        multiprocessorCount: p.multiprocessors,
        copyEngineCount: p.copy_engines,
        decoderCount: p.decoders,
        encoderCount: 0,
        jpegCount: p.jpegs,
        ofaCount: p.ofas,
        memorySizeMB: p.memory_mib,
        name: chars(&format!("MIG {}", p.name)),
    })
}

fn instance_handle(device: &Device<'_>, kind: Kind, gi: u32, ci: u32) -> Handle {
    let (gpu, generation) = (device.gpu.number, device.gpu.mig_generation);
    Target { kind, generation, gpu, gi, ci }.to_handle()
}

fn placements(device: &Device<'_>, id: u32) -> Answer<Vec<nvmlGpuInstancePlacement_t>> {
    let profile = by_id(device, id)?;
    let mut starts = profile.starts().to_vec();
    starts.sort_unstable();
    let place = |start| nvmlGpuInstancePlacement_t { start, size: profile.size };
    Ok(starts.into_iter().map(place).collect())
}

fn put_placements(
    device: &Device<'_>,
    id: u32,
    out: Array<nvmlGpuInstancePlacement_t>,
    count: Out<u32>,
) -> Answer {
    let list = placements(device, id)?;
    count.put(u32::try_from(list.len()).unwrap_or(0))?;
    if out.is_null() { Ok(()) } else { out.put_some(&list) }
}

device_api! {
    Gpu nvmlDeviceGetGpuInstanceProfileInfo(
        device, profile: u32, info: Out<nvmlGpuInstanceProfileInfo_t>,
    ) {
        let p = by_index(device, profile)?;
        info.put(nvmlGpuInstanceProfileInfo_t {
            id: p.id,
            isP2pSupported: 0,
            sliceCount: p.slices,
            instanceCount: p.count,
            multiprocessorCount: p.multiprocessors,
            copyEngineCount: p.copy_engines,
            decoderCount: p.decoders,
            encoderCount: 0,
            jpegCount: p.jpegs,
            ofaCount: p.ofas,
            memorySizeMB: p.memory_mib,
        })
    }

    Gpu nvmlDeviceGetGpuInstanceProfileInfoV(
        device, profile: u32, info: Out<nvmlGpuInstanceProfileInfo_v2_t>,
    ) {
        put_profile_v(info, by_index(device, profile)?)
    }

    Gpu nvmlDeviceGetGpuInstanceProfileInfoByIdV(
        device, profile: u32, info: Out<nvmlGpuInstanceProfileInfo_v2_t>,
    ) {
        put_profile_v(info, by_id(device, profile)?)
    }

    Gpu nvmlDeviceGetGpuInstancePossiblePlacements_v2(
        device, profile: u32, places: Array<nvmlGpuInstancePlacement_t>, count: Out<u32>,
    ) {
        put_placements(device, profile, places, count)
    }

    Gpu nvmlDeviceGetGpuInstancePossiblePlacements(
        device, profile: u32, places: Array<nvmlGpuInstancePlacement_t>, count: Out<u32>,
    ) {
        put_placements(device, profile, places, count)
    }

    Gpu nvmlDeviceGetGpuInstanceRemainingCapacity(device, profile: u32, count: Out<u32>) {
        let used = instances(device)?;
        count.put(mig::remaining(&by_id(device, profile)?, used))
    }

    Gpu nvmlDeviceGetGpuInstances(
        device, profile: u32, list: Array<Handle>, count: Out<u32>,
    ) {
        let profile = by_id(device, profile)?;
        let found: Vec<Handle> = instances(device)?
            .iter()
            .filter(|gi| gi.profile == profile)
            .map(|gi| instance_handle(device, Kind::GpuInstance, gi.id, 0))
            .collect();
        count.put(u32::try_from(found.len()).unwrap_or(0))?;
        list.put_some(&found)
    }

    Gpu nvmlDeviceGetGpuInstanceById(device, id: u32, handle: Out<Handle>) {
        let gi = instances(device)?.iter().find(|gi| gi.id == id).ok_or(NOT_FOUND)?;
        handle.put(instance_handle(device, Kind::GpuInstance, gi.id, 0))
    }

    GpuInstance nvmlGpuInstanceGetInfo(device, info: Out<nvmlGpuInstanceInfo_t>) {
        let gi = device.instance()?;
        info.put(nvmlGpuInstanceInfo_t {
            device: device.gpu.handle().pointer(),
            id: gi.id,
            profileId: gi.profile.id,
            placement: nvmlGpuInstancePlacement_t { start: gi.start, size: gi.profile.size },
        })
    }
}

/// The profile of compute instances of a size in a GPU instance.
fn compute_profile(
    gi: &GpuInstance,
    index: u32,
    engines: u32,
) -> Answer<nvmlComputeInstanceProfileInfo_t> {
    if index >= 8 || engines != 0 {
        return Err(INVALID_ARGUMENT);
    }
    let slices = COMPUTE_SLICES[index as usize];
    if slices > gi.profile.slices || index > 4 {
        return Err(NOT_SUPPORTED);
    }
    Ok(nvmlComputeInstanceProfileInfo_t {
        id: index,
        sliceCount: slices,
        instanceCount: gi.profile.slices / slices,
        multiprocessorCount: gi.profile.multiprocessors * slices / gi.profile.slices,
        sharedCopyEngineCount: gi.profile.copy_engines,
        sharedDecoderCount: gi.profile.decoders,
        sharedEncoderCount: 0,
        sharedJpegCount: gi.profile.jpegs,
        sharedOfaCount: gi.profile.ofas,
    })
}

fn compute_name(gi: &GpuInstance, slices: u32) -> String {
    if slices == gi.profile.slices {
        format!("MIG {}", gi.profile.name)
    } else {
        format!("MIG {slices}c.{}", gi.profile.name)
    }
}

fn profile_id(ci: &ComputeInstance) -> u32 {
    (0..).zip(COMPUTE_SLICES).find(|(_, s)| *s == ci.slices).map_or(0, |(id, _)| id)
}

/// What compute instances told of themselves before they told their place.
#[repr(C)]
#[derive(Clone, Copy)]
struct ComputeInstanceInfoV1 {
    device: Handle,
    instance: Handle,
    id: u32,
    profile: u32,
}

device_api! {
    GpuInstance nvmlGpuInstanceGetComputeInstanceProfileInfo(
        device, index: u32, engines: u32, info: Out<nvmlComputeInstanceProfileInfo_t>,
    ) {
        info.put(compute_profile(device.instance()?, index, engines)?)
    }

    GpuInstance nvmlGpuInstanceGetComputeInstanceProfileInfoV(
        device, index: u32, engines: u32, info: Out<nvmlComputeInstanceProfileInfo_v2_t>,
    ) {
        let gi = device.instance()?;
        let p = compute_profile(gi, index, engines)?;
        let version = info.version()?;
        let v2 = nvmlComputeInstanceProfileInfo_v2_t {
            version,
            id: p.id,
            sliceCount: p.sliceCount,
            instanceCount: p.instanceCount,
            multiprocessorCount: p.multiprocessorCount,
            sharedCopyEngineCount: p.sharedCopyEngineCount,
            sharedDecoderCount: p.sharedDecoderCount,
            sharedEncoderCount: p.sharedEncoderCount,
            sharedJpegCount: p.sharedJpegCount,
            sharedOfaCount: p.sharedOfaCount,
            name: chars(&compute_name(gi, p.sliceCount)),
        };
        let v3 = struct_version::<nvmlComputeInstanceProfileInfo_v3_t>(3);
        if version != v3 {
            info.expect_version(2)?;
        }
        info.put(v2)?;
        if version == v3 {
            // The third version only appends its capabilities.
            info.tail::<u32>().put_some(&[0])?;
        }
        Ok(())
    }

    GpuInstance nvmlGpuInstanceGetComputeInstanceRemainingCapacity(
        device, profile: u32, count: Out<u32>,
    ) {
        let gi = device.instance()?;
        let wanted = *COMPUTE_SLICES.get(profile as usize).ok_or(INVALID_ARGUMENT)?;
        let used: u32 = gi.compute.iter().map(|c| c.slices).sum();
        count.put((gi.profile.slices - used) / wanted)
    }

    GpuInstance nvmlGpuInstanceGetComputeInstancePossiblePlacements(
        device, profile: u32, places: Array<nvmlComputeInstancePlacement_t>, count: Out<u32>,
    ) {
        let gi = device.instance()?;
        let size = *COMPUTE_SLICES.get(profile as usize).ok_or(INVALID_ARGUMENT)?;
        let list: Vec<_> = (0..gi.profile.slices / size)
            .map(|i| nvmlComputeInstancePlacement_t { start: i * size, size })
            .collect();
        count.put(u32::try_from(list.len()).unwrap_or(0))?;
        if places.is_null() { Ok(()) } else { places.put_some(&list) }
    }

    GpuInstance nvmlGpuInstanceGetComputeInstances(
        device, profile: u32, list: Array<Handle>, count: Out<u32>,
    ) {
        let gi = device.instance()?;
        let found: Vec<Handle> = gi
            .compute
            .iter()
            .filter(|ci| profile_id(ci) == profile)
            .map(|ci| instance_handle(device, Kind::ComputeInstance, gi.id, ci.id))
            .collect();
        count.put(u32::try_from(found.len()).unwrap_or(0))?;
        list.put_some(&found)
    }

    GpuInstance nvmlGpuInstanceGetComputeInstanceById(device, id: u32, handle: Out<Handle>) {
        let gi = device.instance()?;
        let ci = gi.compute.iter().find(|ci| ci.id == id).ok_or(NOT_FOUND)?;
        handle.put(instance_handle(device, Kind::ComputeInstance, gi.id, ci.id))
    }

    ComputeInstance nvmlComputeInstanceGetInfo_v2(device, info: Out<nvmlComputeInstanceInfo_t>) {
        let (gi, ci) = device.part.ok_or(INVALID_ARGUMENT)?;
        info.put(nvmlComputeInstanceInfo_t {
            device: device.gpu.handle().pointer(),
            gpuInstance: instance_handle(device, Kind::GpuInstance, gi.id, 0).pointer(),
            id: ci.id,
            profileId: profile_id(ci),
            placement: nvmlComputeInstancePlacement_t { start: ci.start, size: ci.slices },
        })
    }

    ComputeInstance nvmlComputeInstanceGetInfo(device, info: Out<ComputeInstanceInfoV1>) {
        let (gi, ci) = device.part.ok_or(INVALID_ARGUMENT)?;
        info.put(ComputeInstanceInfoV1 {
            device: device.gpu.handle(),
            instance: instance_handle(device, Kind::GpuInstance, gi.id, 0),
            id: ci.id,
            profile: profile_id(ci),
        })
    }
}
