//! Lists that NVML fills.

use super::code::Code;
use super::raw::{Plain, zeroed};

/// Room for so many processes is offered first: more than a GPU has, so that one call will do.
pub(super) const ROOM: usize = 128;

/// Room beside what was asked for, for processes that start meanwhile.
pub(super) const SPARE: usize = 16;

/// More than a node has processes: a larger answer is a driver's mistake.
pub(super) const ROOM_MAX: usize = 1 << 16;

/// So often is more room offered; a list that has grown again by then is left for this pass.
const TRIES: usize = 4;

/// A driver may take its entries for wider than they are (early ones of branch 535 do): there is
/// room for twice the bytes, so that even one that is not known to do so writes into the buffer.
const SLACK: usize = 2;

/// Lets a function of NVML fill a list: it is told the room there is, and tells how much it took,
/// or with `INSUFFICIENT_SIZE` how much it needs.
pub(super) fn fill<T: Plain + Copy>(
    mut room: usize,
    mut call: impl FnMut(*mut u32, *mut T) -> Result<(), Code>,
) -> Result<Vec<T>, Code> {
    for _ in 0..TRIES {
        let mut buffer = vec![zeroed::<T>(); room * SLACK];
        let mut count = u32::try_from(room).unwrap_or(u32::MAX);
        let answer = call(&raw mut count, buffer.as_mut_ptr());
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        match answer {
            Ok(()) => {
                buffer.truncate(count.min(room));
                return Ok(buffer);
            }
            Err(Code::INSUFFICIENT_SIZE) if count <= ROOM_MAX => room = count.max(room) + SPARE,
            Err(code) => return Err(code),
        }
    }
    Err(Code::INSUFFICIENT_SIZE)
}

#[cfg(test)]
mod tests {
    use nvml_wrapper_sys::bindings as sys;

    use super::*;

    fn info(pid: u32) -> sys::nvmlProcessInfo_v1_st {
        sys::nvmlProcessInfo_v1_st { pid, usedGpuMemory: 0 }
    }

    /// A driver with so many processes at each call, the last number for all calls after.
    fn filled(counts: &[u32]) -> (Result<Vec<u32>, Code>, usize) {
        let mut calls = 0;
        let answer = fill(ROOM, |room, infos: *mut sys::nvmlProcessInfo_v1_st| {
            let count = counts[calls.min(counts.len() - 1)];
            calls += 1;
            // SAFETY: `fill` passes a live number and room for as many entries as it says.
            unsafe {
                let had = room.replace(count);
                if count > had {
                    return Err(Code::INSUFFICIENT_SIZE);
                }
                for pid in 0..count {
                    infos.add(usize::try_from(pid).unwrap()).write(info(pid));
                }
            }
            Ok(())
        });
        (answer.map(|all| all.iter().map(|info| info.pid).collect()), calls)
    }

    #[test]
    fn a_list_takes_one_call_and_a_long_one_another() {
        assert_eq!(filled(&[0]), (Ok(vec![]), 1));
        assert_eq!(filled(&[128]), (Ok((0..128).collect()), 1));
        assert_eq!(filled(&[1000]), (Ok((0..1000).collect()), 2));
        assert_eq!(filled(&[200, 300]), (Ok((0..300).collect()), 3));
        assert_eq!(filled(&[200, 210]), (Ok((0..210).collect()), 2), "some more fit");
    }

    #[test]
    fn a_list_that_grows_for_ever_or_beyond_belief_is_given_up() {
        let growing = [1_000, 2_000, 3_000, 4_000, 5_000, 6_000];
        assert_eq!(filled(&growing), (Err(Code::INSUFFICIENT_SIZE), TRIES));
        assert_eq!(filled(&[u32::MAX]), (Err(Code::INSUFFICIENT_SIZE), 1));
    }
}
