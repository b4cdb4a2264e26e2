//! How GPUs lie to each other and to the CPUs.

use crate::call::{device_api, system_api};
use crate::code::{Answer, INVALID_ARGUMENT};
use crate::device::Device;
use crate::ffi::{Array, Handle, Out};
use crate::gpu::Gpu;
use crate::handle::Kind;
use crate::world::World;

/// `NVML_TOPOLOGY_NODE`: on the same NUMA node.
const SAME_NODE: u32 = 40;
/// `NVML_TOPOLOGY_SYSTEM`: across NUMA nodes.
const ACROSS: u32 = 50;

/// CPUs of a NUMA node.
const CPUS_PER_NODE: u32 = 56;

fn other(world: &World, handle: Handle) -> Answer<&Gpu> {
    let target = world.resolve(handle)?;
    if target.kind == Kind::Device { Ok(&world.gpus[target.gpu]) } else { Err(INVALID_ARGUMENT) }
}

fn level(a: &Gpu, b: &Gpu) -> u32 {
    match () {
        () if a.number == b.number => 0,
        () if a.id.numa_node == b.id.numa_node => SAME_NODE,
        () => ACROSS,
    }
}

fn cpus(device: &Device<'_>) -> std::ops::Range<u32> {
    let first = device.gpu.id.numa_node * CPUS_PER_NODE;
    first..first + CPUS_PER_NODE
}

/// A bit set in words of 64.
fn bits(set: impl Iterator<Item = u32>, words: u32) -> Vec<u64> {
    let mut mask = vec![0u64; words.min(64) as usize];
    for bit in set {
        if let Some(word) = mask.get_mut(bit as usize / 64) {
            *word |= 1 << (bit % 64);
        }
    }
    mask
}

device_api! {
    Gpu nvmlDeviceGetTopologyCommonAncestor(device, second: Handle, path: Out<u32>) {
        path.put(level(device.gpu, other(device.world, second)?))
    }

    Gpu nvmlDeviceGetTopologyNearestGpus(
        device, wanted: u32, count: Out<u32>, devices: Array<Handle>,
    ) {
        let world = device.world;
        let near: Vec<Handle> = world
            .attached()
            .filter(|g| g.number != device.gpu.number && level(device.gpu, g) == wanted)
            .map(Gpu::handle)
            .collect();
        if devices.is_null() {
            return count.put(u32::try_from(near.len()).unwrap_or(0));
        }
        devices.put_list(count, &near)
    }

    Gpu nvmlDeviceGetP2PStatus(device, second: Handle, capability: u32, status: Out<u32>) {
        let second = other(device.world, second)?;
        if capability > 4 {
            return Err(INVALID_ARGUMENT);
        }
        let linked = device.model.nvlink.is_some() && second.model == device.gpu.model;
        let divided = device.gpu.mig.is_some() || second.mig.is_some();
        status.put(match capability {
            _ if device.gpu.number == second.number => 0,
            2 | 3 if !linked => 5,
            _ if divided => 2,
            _ => 0,
        })
    }

    Gpu nvmlDeviceOnSameBoard(device, second: Handle, same: Out<i32>) {
        same.put(i32::from(other(device.world, second)?.number == device.gpu.number))
    }

    Gpu nvmlDeviceGetCpuAffinity(device, words: u32, set: Array<u64>) {
        set.put_some(&bits(cpus(device), words))
    }

    Gpu nvmlDeviceGetCpuAffinityWithinScope(device, words: u32, set: Array<u64>, scope: u32) {
        if scope > 1 {
            return Err(INVALID_ARGUMENT);
        }
        set.put_some(&bits(cpus(device), words))
    }

    Gpu nvmlDeviceGetMemoryAffinity(device, words: u32, set: Array<u64>, scope: u32) {
        if scope > 1 {
            return Err(INVALID_ARGUMENT);
        }
        set.put_some(&bits(std::iter::once(device.gpu.id.numa_node), words))
    }
}

system_api! {
    nvmlSystemGetTopologyGpuSet(world, cpu: u32, count: Out<u32>, devices: Array<Handle>) {
        let near: Vec<Handle> = world
            .attached()
            .filter(|g| g.id.numa_node == cpu / CPUS_PER_NODE)
            .map(Gpu::handle)
            .collect();
        if devices.is_null() {
            return count.put(u32::try_from(near.len()).unwrap_or(0));
        }
        devices.put_list(count, &near)
    }
}
