//! Finding devices.

use nvml_wrapper_sys::bindings::{nvmlPciInfo_t, nvmlUUID_v1_t};

use crate::call::{device_getters, system_api};
use crate::code::{Answer, GPU_IS_LOST, INVALID_ARGUMENT, NOT_FOUND};
use crate::device::Device;
use crate::ffi::{Handle, In, Out};
use crate::gpu::Gpu;
use crate::handle::{Kind, Target};
use crate::scenario::parse_bus_id;
use crate::world::World;

fn count(world: &World) -> u32 {
    u32::try_from(world.attached().count()).unwrap_or(u32::MAX)
}

fn by_index(world: &World, index: u32, function: &str) -> Answer<Handle> {
    let gpu = world.attached().nth(index as usize).ok_or(INVALID_ARGUMENT)?;
    open(world, gpu, function)
}

fn by_bus_id(world: &World, id: &str, function: &str) -> Answer<Handle> {
    let wanted = parse_bus_id(id).ok_or(INVALID_ARGUMENT)?;
    let gpu = world.attached().find(|g| g.id.pci == wanted).ok_or(NOT_FOUND)?;
    open(world, gpu, function)
}

/// The handle of a GPU, unless it is lost or the caller may not have it: an error that a control
/// file puts on a lookup by its name is met here, for only now it is known which GPU is meant.
fn open(world: &World, gpu: &Gpu, function: &str) -> Answer<Handle> {
    if let Some(code) = world.faults.named_error(function, gpu.number) {
        return Err(code);
    }
    if gpu.lost { Err(GPU_IS_LOST) } else { Ok(gpu.handle()) }
}

fn by_uuid(world: &World, uuid: &str, function: &str) -> Answer<Handle> {
    for gpu in world.attached() {
        if gpu.uuid() == uuid {
            return open(world, gpu, function);
        }
        if !uuid.starts_with("MIG-") {
            continue;
        }
        for gi in gpu.mig.iter().flatten() {
            for ci in &gi.compute {
                let (kind, generation) = (Kind::Mig, gpu.mig_generation);
                let target = Target { kind, generation, gpu: gpu.number, gi: gi.id, ci: ci.id };
                if Device::new(world, target)?.uuid() == uuid {
                    return Ok(target.to_handle());
                }
            }
        }
    }
    Err(NOT_FOUND)
}

system_api! {
    nvmlDeviceGetCount_v2(world, number: Out<u32>) { number.put(count(world)) }

    nvmlDeviceGetCount(world, number: Out<u32>) { number.put(count(world)) }

    nvmlDeviceGetHandleByIndex_v2(world, index: u32, device: Out<Handle>) {
        device.put(by_index(world, index, "nvmlDeviceGetHandleByIndex_v2")?)
    }

    nvmlDeviceGetHandleByIndex(world, index: u32, device: Out<Handle>) {
        device.put(by_index(world, index, "nvmlDeviceGetHandleByIndex")?)
    }

    nvmlDeviceGetHandleByPciBusId_v2(world, id: In, device: Out<Handle>) {
        device.put(by_bus_id(world, id.get()?, "nvmlDeviceGetHandleByPciBusId_v2")?)
    }

    nvmlDeviceGetHandleByPciBusId(world, id: In, device: Out<Handle>) {
        device.put(by_bus_id(world, id.get()?, "nvmlDeviceGetHandleByPciBusId")?)
    }

    nvmlDeviceGetHandleByUUID(world, uuid: In, device: Out<Handle>) {
        device.put(by_uuid(world, uuid.get()?, "nvmlDeviceGetHandleByUUID")?)
    }

    nvmlDeviceGetHandleByUUIDV(world, uuid: Out<nvmlUUID_v1_t>, device: Out<Handle>) {
        uuid.expect_version(1)?;
        let uuid = uuid.get()?;
        if uuid.type_ != 1 {
            return Err(INVALID_ARGUMENT);
        }
        // SAFETY: type 1 says that the caller filled the ASCII form; any bytes are characters.
        let text = unsafe { uuid.value.str_ };
        let text: Vec<u8> = text.iter().map_while(|c| u8::try_from(*c).ok().filter(|b| *b != 0)).collect();
        device.put(by_uuid(world, &String::from_utf8_lossy(&text), "nvmlDeviceGetHandleByUUIDV")?)
    }

    nvmlDeviceGetHandleBySerial(world, serial: In, device: Out<Handle>) {
        let wanted: u64 = serial.get()?.parse().map_err(|_| NOT_FOUND)?;
        let has_serial = |gpu: &&Gpu| world.models[gpu.model].serial;
        let gpu = world.attached().filter(has_serial).find(|g| g.id.serial == wanted);
        device.put(open(world, gpu.ok_or(NOT_FOUND)?, "nvmlDeviceGetHandleBySerial")?)
    }

    nvmlGetExcludedDeviceCount(_world, number: Out<u32>) { number.put(0) }

    nvmlUnitGetCount(_world, number: Out<u32>) { number.put(0) }

    nvmlDeviceQueryDrainState(world, pci: Out<nvmlPciInfo_t>, state: Out<u32>) {
        let pci = pci.get()?;
        let wanted = [pci.domain, pci.bus, pci.device];
        world.attached().find(|g| g.id.pci == wanted).ok_or(NOT_FOUND)?;
        state.put(0)
    }
}

device_getters! {
    Any nvmlDeviceGetIndex: u32 = |device| if let Some((_, ci)) = device.part {
        ci.slot
    } else {
        let number = device.gpu.number;
        let index = device.world.attached().position(|g| g.number == number);
        index.and_then(|i| u32::try_from(i).ok()).ok_or(INVALID_ARGUMENT)?
    };
}
