//! Waiting for what happens.

use std::time::{Duration, Instant};

use nvml_wrapper_sys::bindings::nvmlEventData_t;

use crate::call::{Function, On, change_device, device_getters, enter, system_api};
use crate::code::{Answer, Code, GPU_IS_LOST, INVALID_ARGUMENT, NOT_SUPPORTED, SUCCESS, TIMEOUT};
use crate::device::Device;
use crate::events::Event;
use crate::ffi::{Argument, Handle, Out};

/// The events a board can tell of: memory errors, P-states, XIDs, clocks, MIG changes.
fn supported(device: &Device<'_>) -> u64 {
    let memory_errors = if device.ecc_on().is_ok() { 0x3 } else { 0 };
    let mig = if device.model.mig.is_some() { 0x100 } else { 0 };
    0x4 | 0x8 | 0x10 | memory_errors | mig
}

device_getters! {
    Gpu nvmlDeviceGetSupportedEventTypes: u64 = |device| supported(device);
}

system_api! {
    nvmlEventSetCreate(world, set: Out<Handle>) {
        let handle = world.events.create();
        set.put(handle)
    }

    nvmlEventSetFree(world, set: Handle) { world.events.free(set) }
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceRegisterEvents(handle: Handle, types: u64, set: Handle) -> Code {
    static FUNCTION: Function = Function { name: "nvmlDeviceRegisterEvents", on: On::Gpu };
    change_device(&FUNCTION, handle, &[&types, &set], &mut |world, target| {
        if types & !supported(&Device::new(world, target)?) != 0 {
            return Err(NOT_SUPPORTED);
        }
        world.events.get(set)?.watch(target.gpu, types);
        Ok(())
    })
}

/// What `nvmlEventSetWait` knew before instances.
#[repr(C)]
#[derive(Clone, Copy)]
struct EventDataV1 {
    device: Handle,
    types: u64,
    data: u64,
}

#[unsafe(no_mangle)]
extern "C" fn nvmlEventSetWait_v2(set: Handle, data: Out<nvmlEventData_t>, timeout: u32) -> Code {
    wait("nvmlEventSetWait_v2", set, &data, timeout, &mut |event, device| {
        data.put(nvmlEventData_t {
            device: device.pointer(),
            eventType: event.types,
            eventData: event.data,
            gpuInstanceId: event.instance.0,
            computeInstanceId: event.instance.1,
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlEventSetWait(set: Handle, data: Out<EventDataV1>, timeout: u32) -> Code {
    wait("nvmlEventSetWait", set, &data, timeout, &mut |event, device| {
        data.put(EventDataV1 { device, types: event.types, data: event.data })
    })
}

/// Waits, with the lock free meanwhile.
fn wait(
    name: &str,
    set: Handle,
    data: &dyn Argument,
    timeout: u32,
    deliver: &mut dyn FnMut(Event, Handle) -> Answer,
) -> Code {
    let end = Instant::now() + Duration::from_millis(u64::from(timeout));
    let code = take(name, set, data, end, deliver).err().unwrap_or(SUCCESS);
    if crate::trace::on() {
        crate::trace::call(name, "-", &[&set, &timeout], code);
    }
    code
}

/// Takes an event, as soon as there is one. Once all are taken, a lost GPU in the set is an error.
fn take(
    name: &str,
    set: Handle,
    data: &dyn Argument,
    end: Instant,
    deliver: &mut dyn FnMut(Event, Handle) -> Answer,
) -> Answer {
    let mut guard = enter(name, None)?;
    loop {
        let world = guard.world()?;
        world.poll();
        world.check_session()?;
        if data.missing() {
            return Err(INVALID_ARGUMENT);
        }
        let events = world.events.get(set)?;
        if let Some(event) = events.take() {
            return deliver(event, world.gpus[event.gpu].handle());
        }
        if events.watched.iter().any(|(gpu, _)| world.gpus[*gpu].lost) {
            return Err(GPU_IS_LOST);
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(TIMEOUT);
        }
        guard = guard.wait(left);
    }
}
