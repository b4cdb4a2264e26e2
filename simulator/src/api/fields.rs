//! Many values in one call.

use std::fmt::Write as _;

use nvml_wrapper_sys::bindings::nvmlFieldValue_t;

use crate::call::{Function, On, device};
use crate::code::{Code, INVALID_ARGUMENT, SUCCESS};
use crate::ffi::{Argument, Array, Handle};
use crate::field::{self, ALL};

/// The ids and scopes of a request, for the trace.
struct Request {
    values: Array<nvmlFieldValue_t>,
    count: i32,
}

impl Argument for Request {
    fn missing(&self) -> bool {
        self.values.is_null()
    }

    fn show(&self, line: &mut String) {
        for i in 0..usize::try_from(self.count).unwrap_or(0) {
            let Ok(value) = self.values.at(i) else { return };
            line.push(if i == 0 { ' ' } else { ',' });
            let _ = match value.scopeId {
                0 => write!(line, "{}", value.fieldId),
                ALL => write!(line, "{}@all", value.fieldId),
                scope => write!(line, "{}@{scope}", value.fieldId),
            };
        }
    }
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetFieldValues(
    handle: Handle,
    count: i32,
    values: Array<nvmlFieldValue_t>,
) -> Code {
    static FUNCTION: Function = Function { name: "nvmlDeviceGetFieldValues", on: On::Any };
    device(&FUNCTION, handle, &[&Request { values, count }], &mut |device| {
        if count < 0 {
            return Err(INVALID_ARGUMENT);
        }
        let now = device.world.clock.wall_micros(device.now).cast_signed();
        for i in 0..usize::try_from(count).unwrap_or(0) {
            let mut slot = values.at(i)?;
            let id = slot.fieldId;
            let answer = match device.world.faults.field(device.gpu.number, id) {
                Some(SUCCESS) | None => field::value(device, id, slot.scopeId),
                Some(code) => Err(code),
            };
            match answer {
                Ok(value) => {
                    slot.nvmlReturn = SUCCESS;
                    if let Some((value, kind)) = value.encode() {
                        slot.value = value;
                        slot.valueType = kind;
                        slot.timestamp = now;
                        slot.latencyUsec = 20 + i64::from(id % 7);
                    }
                }
                Err(code) => slot.nvmlReturn = code,
            }
            values.set(i, slot)?;
        }
        Ok(())
    })
}
