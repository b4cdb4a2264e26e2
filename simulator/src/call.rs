//! The way of every call: control file, faults, handle, rules, answer, trace.

use std::time::Duration;

use crate::code::{Answer, Code, INVALID_ARGUMENT, NOT_SUPPORTED, SUCCESS};
use crate::cost::Meter;
use crate::device::Device;
use crate::ffi::{Argument, Handle};
use crate::handle::{Kind, Target};
use crate::trace;
use crate::world::{Guard, World};

/// An exported function, as far as all functions are alike.
pub(crate) struct Function {
    pub(crate) name: &'static str,
    pub(crate) on: On,
}

/// What handles a function takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum On {
    /// GPUs and MIG devices.
    Any,
    /// GPUs only.
    Gpu,
    /// GPUs only, and `NOT_SUPPORTED` while they are in MIG mode.
    WholeGpu,
    /// MIG devices only.
    Mig,
    /// GPU instances only.
    GpuInstance,
    /// Compute instances only.
    ComputeInstance,
}

/// A call on a device that reads.
pub(crate) fn device(
    function: &Function,
    handle: Handle,
    arguments: &[&dyn Argument],
    body: &mut dyn FnMut(&Device<'_>) -> Answer,
) -> Code {
    change_device(function, handle, arguments, &mut |world, target| {
        body(&Device::new(world, target)?)
    })
}

/// A call on a device that may change the world.
pub(crate) fn change_device(
    function: &Function,
    handle: Handle,
    arguments: &[&dyn Argument],
    body: &mut dyn FnMut(&mut World, Target) -> Answer,
) -> Code {
    let _meter = Meter::start();
    let code = to_code(on_device(function, handle, arguments, body));
    if trace::on() {
        trace::call(function.name, &label(handle), arguments, code);
    }
    code
}

/// A call without a device, which needs a session.
pub(crate) fn system(
    name: &str,
    arguments: &[&dyn Argument],
    body: &mut dyn FnMut(&mut World) -> Answer,
) -> Code {
    bare(name, arguments, &mut |world| {
        world.check_session()?;
        if arguments.iter().any(|a| a.missing()) {
            return Err(INVALID_ARGUMENT);
        }
        body(world)
    })
}

/// A call that works without a session.
pub(crate) fn bare(
    name: &str,
    arguments: &[&dyn Argument],
    body: &mut dyn FnMut(&mut World) -> Answer,
) -> Code {
    let _meter = Meter::start();
    let code = to_code(enter(name, None).and_then(|mut guard| body(guard.world()?)));
    if trace::on() {
        trace::call(name, "-", arguments, code);
    }
    code
}

fn on_device(
    function: &Function,
    handle: Handle,
    arguments: &[&dyn Argument],
    body: &mut dyn FnMut(&mut World, Target) -> Answer,
) -> Answer {
    let mut guard = enter(function.name, Target::from_handle(handle).map(|t| t.gpu))?;
    let world = guard.world()?;
    world.check_session()?;
    let target = world.resolve(handle)?;
    if arguments.iter().any(|a| a.missing()) {
        return Err(INVALID_ARGUMENT);
    }
    let gpu = &world.gpus[target.gpu];
    match (function.on, target.kind) {
        (On::Any, Kind::Device | Kind::Mig)
        | (On::Gpu, Kind::Device)
        | (On::Mig, Kind::Mig)
        | (On::GpuInstance, Kind::GpuInstance)
        | (On::ComputeInstance, Kind::ComputeInstance) => {}
        (On::WholeGpu, Kind::Device) if gpu.mig.is_none() => {}
        (On::Gpu | On::WholeGpu, Kind::Device | Kind::Mig) => return Err(NOT_SUPPORTED),
        _ => return Err(INVALID_ARGUMENT),
    }
    let model = &world.models[gpu.model];
    let listed = model.unsupported.binary_search_by(|n| n.as_str().cmp(function.name)).is_ok();
    if listed || gpu.unsupported.iter().any(|n| n == function.name) {
        return Err(NOT_SUPPORTED);
    }
    body(world, target)
}

/// Takes the lock, once the faults in force let the call through. While they do not, the lock is
/// free: other threads, on other GPUs, must not wait too.
pub(crate) fn enter(name: &str, gpu: Option<usize>) -> Answer<Guard> {
    let mut delayed = false;
    let mut guard = Guard::lock()?;
    loop {
        let world = guard.world()?;
        world.poll();
        if world.faults.hangs(name, gpu) {
            guard = guard.wait(Duration::MAX);
        } else if let Some(latency) = world.faults.latency(name, gpu).filter(|_| !delayed) {
            delayed = true;
            drop(guard);
            std::thread::sleep(latency);
            guard = Guard::lock()?;
        } else {
            return world.faults.error(name, gpu).map_or(Ok(guard), Err);
        }
    }
}

fn to_code(answer: Answer) -> Code {
    answer.err().unwrap_or(SUCCESS)
}

fn label(handle: Handle) -> String {
    match Target::from_handle(handle) {
        Some(Target { kind: Kind::Device, gpu, .. }) => format!("gpu{gpu}"),
        Some(Target { kind: Kind::GpuInstance, gpu, gi, .. }) => format!("gpu{gpu}/gi{gi}"),
        Some(Target { gpu, gi, ci, .. }) => format!("gpu{gpu}/gi{gi}/ci{ci}"),
        None => format!("{:#x}", handle.0),
    }
}

/// Exports functions on a device. The name before the function says which devices it takes (see
/// [`On`]), the first name in the parentheses is the device in the body.
macro_rules! device_api {
    ($(
        $(#[$meta:meta])*
        $on:ident $name:ident($device:ident $(, $argument:ident : $type:ty)* $(,)?) $body:block
    )*) => {$(
        $(#[$meta])*
        #[unsafe(no_mangle)]
        extern "C" fn $name(handle: $crate::ffi::Handle $(, $argument: $type)*) -> $crate::code::Code {
            static FUNCTION: $crate::call::Function = $crate::call::Function {
                name: stringify!($name),
                on: $crate::call::On::$on,
            };
            $crate::call::device(
                &FUNCTION,
                handle,
                &[$(&$argument as &dyn $crate::ffi::Argument),*],
                &mut |$device: &$crate::device::Device<'_>| $body,
            )
        }
    )*};
}

/// Exports functions that return one value of a device: `name: type = |device| value`.
macro_rules! device_getters {
    ($( $on:ident $name:ident: $type:ty = |$device:ident| $value:expr; )*) => {
        $crate::call::device_api! {$(
            $on $name($device, value: $crate::ffi::Out<$type>) { value.put($value) }
        )*}
    };
}

/// Exports functions without a device that need a session.
macro_rules! system_api {
    ($(
        $(#[$meta:meta])*
        $name:ident($world:ident $(, $argument:ident : $type:ty)* $(,)?) $body:block
    )*) => {$(
        $(#[$meta])*
        #[unsafe(no_mangle)]
        extern "C" fn $name($($argument: $type),*) -> $crate::code::Code {
            $crate::call::system(
                stringify!($name),
                &[$(&$argument as &dyn $crate::ffi::Argument),*],
                &mut |$world: &mut $crate::world::World| $body,
            )
        }
    )*};
}

pub(crate) use {device_api, device_getters, system_api};
