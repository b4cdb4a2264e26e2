//! Who uses a GPU: the lists of running processes, and samples of what they did.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nvml_wrapper_sys::bindings as sys;

use super::code::{Code, Meaning};
use super::field_values::Support;
use super::library::Session;
use super::raw::{Handle, Plain, nvml_call, zeroed};
use super::work::Work;
use crate::catalogue::Call;
use crate::sampler::owners::Owners;
use crate::sampler::snapshot::{ProcessMemory, ProcessUtilization, Processes};

/// Room for so many processes is offered first: more than a GPU has, so that one call will do.
const ROOM: usize = 128;

/// Room beside what was asked for, for processes that start meanwhile.
const SPARE: usize = 16;

/// More than a node has processes: a larger answer is a driver's mistake.
const ROOM_MAX: usize = 1 << 16;

/// So often is more room offered; a list that has grown again by then is left for this pass.
const TRIES: usize = 4;

/// A driver may take its entries for wider than they are (see `is_wide`): there is room for twice
/// the bytes, so that even one that is not known to do so writes into the buffer.
const SLACK: usize = 2;

/// Samples older than this say nothing of now. The driver samples once a second.
const RECENT: Duration = Duration::from_secs(2);

/// `NVML_VALUE_NOT_AVAILABLE`.
const NOT_AVAILABLE: u64 = u64::MAX;

/// NVML's lists of running processes.
#[derive(Debug, Clone, Copy)]
enum List {
    Compute,
    Graphics,
    Mps,
}

const LISTS: [List; 3] = [List::Compute, List::Graphics, List::Mps];

/// What is remembered between passes of one GPU.
#[derive(Debug, Default)]
pub(super) struct Watch {
    /// Of `LISTS`, on the GPU itself and on its instances.
    whole: [Support; 3],
    instances: [Support; 3],
    utilization: Support,
    owners: Owners,
}

/// Whose processes to read.
#[derive(Debug)]
pub(super) enum Of<'a> {
    /// A GPU that is not in MIG mode.
    Whole(Handle),
    /// GPU instances, by their id with the handles of their compute instances, each of which
    /// lists its own processes.
    Instances(&'a [(u32, Vec<Handle>)]),
}

/// The newest sample of each process.
type Newest = BTreeMap<u32, sys::nvmlProcessUtilizationSample_st>;

/// Memory in use by instance and process; `None` where NVML does not tell.
type Used = BTreeMap<(Option<u32>, u32), Option<u64>>;

impl Watch {
    /// What a GPU refuses in MIG mode it may give otherwise.
    pub(super) fn forget_refusals(&mut self) {
        self.whole = Default::default();
        self.instances = Default::default();
        self.utilization = Support::default();
    }

    /// Reads what there is. What fails is noted and said in its place; it ends nothing.
    pub(super) fn read(&mut self, work: &mut Work<'_>, of: &Of<'_>) -> Processes {
        let running = self.running(work, of);
        let utilization = self.utilization(work, of);
        let mut pids = BTreeSet::new();
        pids.extend(running.iter().flat_map(Used::keys).map(|(_, pid)| *pid));
        pids.extend(utilization.iter().flat_map(BTreeMap::keys));
        self.owners.look_up(work.proc_root, pids);
        let memory = |((gpu_instance, pid), used_bytes)| ProcessMemory {
            pid,
            owner: self.owners.of(pid),
            used_bytes,
            gpu_instance,
        };
        let used =
            |(pid, sample): (u32, sys::nvmlProcessUtilizationSample_st)| ProcessUtilization {
                pid,
                owner: self.owners.of(pid),
                sm_percent: sample.smUtil,
                memory_percent: percent(sample.memUtil),
                encoder_percent: percent(sample.encUtil),
                decoder_percent: percent(sample.decUtil),
            };
        Processes {
            running: running.map(|all| all.into_iter().map(memory).collect()).map_err(Code::name),
            utilization: utilization
                .map(|all| all.into_iter().map(used).collect())
                .map_err(Code::name),
            visible: self.owners.visible(),
        }
    }

    fn running(&mut self, work: &mut Work<'_>, of: &Of<'_>) -> Result<Used, Code> {
        let mut used = Used::new();
        match of {
            Of::Whole(handle) => add(work, &mut self.whole, (None, *handle), &mut used)?,
            Of::Instances(all) => {
                for (id, handle) in all.iter().flat_map(|(id, of)| of.iter().map(|of| (*id, *of))) {
                    add(work, &mut self.instances, (Some(id), handle), &mut used)?;
                }
            }
        }
        Ok(used)
    }

    /// Percent by process. NVML has none for GPUs in MIG mode, nor for instances.
    fn utilization(&mut self, work: &mut Work<'_>, of: &Of<'_>) -> Result<Newest, Code> {
        let Of::Whole(handle) = of else { return Err(Code::NOT_SUPPORTED) };
        if let Some(code) = self.utilization.refusal() {
            return Err(code);
        }
        let answer = match samples(work.session, *handle, recent()) {
            // No process has used the GPU.
            Err(Code::NOT_FOUND) => Ok(Vec::new()),
            other => other,
        };
        self.utilization.learn(&answer);
        note(work, "nvmlDeviceGetProcessUtilization", &answer);
        answer.map(newest)
    }
}

/// Adds the processes of one device. Lists overlap, as do those of compute instances should a
/// driver list the whole GPU instance: a process counts once, with the most that is said of it.
fn add(
    work: &mut Work<'_>,
    supports: &mut [Support; 3],
    (instance, handle): (Option<u32>, Handle),
    used: &mut Used,
) -> Result<(), Code> {
    for (list, support) in LISTS.into_iter().zip(supports) {
        let answer = if let Some(code) = support.refusal() {
            Err(code)
        } else {
            let answer = read(work.session, handle, list);
            support.learn(&answer);
            note(work, list.function(), &answer);
            answer
        };
        match answer {
            Ok(all) => {
                for (pid, bytes) in all {
                    let most = used.entry((instance, pid)).or_default();
                    *most = bytes.max(*most);
                }
            }
            // Where there are no such processes, none is missed.
            Err(_) if support.refusal().is_some() && !matches!(list, List::Compute) => {}
            Err(code) => return Err(code),
        }
    }
    Ok(())
}

/// Counts a failure. It is no reason to end the pass, whatever it is: the calls that rows need
/// will tell.
fn note<T>(work: &mut Work<'_>, call: &'static str, answer: &Result<T, Code>) {
    if let Err(code) = answer
        && code.meaning() != Meaning::Unsupported
    {
        work.aside.push((call, *code));
    }
}

impl List {
    /// The function that a failure is counted under, whichever version it was.
    fn function(self) -> &'static str {
        match self {
            Self::Compute => Call::ComputeProcesses,
            Self::Graphics => Call::GraphicsProcesses,
            Self::Mps => Call::MpsProcesses,
        }
        .function()
    }
}

/// One list of one device: process ids, and bytes where NVML tells them.
fn read(session: &Session, handle: Handle, list: List) -> Result<Vec<(u32, Option<u64>)>, Code> {
    let nvml = session.nvml();
    let wide = is_wide(&session.facts.driver_version);
    macro_rules! newest {
        ($third:ident, $second:ident, $first:ident) => {{
            let mut answer = Err(Code::FUNCTION_NOT_FOUND);
            if !wide {
                answer = fill(|count, infos| nvml_call!(nvml, $third(handle.0, count, infos)));
            }
            if matches!(answer, Err(Code::FUNCTION_NOT_FOUND)) {
                answer = fill(|count, infos| nvml_call!(nvml, $second(handle.0, count, infos)));
            }
            if matches!(answer, Err(Code::FUNCTION_NOT_FOUND)) {
                let answer = fill(|count, infos| nvml_call!(nvml, $first(handle.0, count, infos)));
                return answer.map(|all: Vec<sys::nvmlProcessInfo_v1_st>| {
                    all.iter().map(|info| (info.pid, bytes(info.usedGpuMemory))).collect()
                });
            }
            answer
        }};
    }
    let answer = match list {
        List::Compute => newest!(
            nvmlDeviceGetComputeRunningProcesses_v3,
            nvmlDeviceGetComputeRunningProcesses_v2,
            nvmlDeviceGetComputeRunningProcesses
        ),
        List::Graphics => newest!(
            nvmlDeviceGetGraphicsRunningProcesses_v3,
            nvmlDeviceGetGraphicsRunningProcesses_v2,
            nvmlDeviceGetGraphicsRunningProcesses
        ),
        List::Mps => newest!(
            nvmlDeviceGetMPSComputeRunningProcesses_v3,
            nvmlDeviceGetMPSComputeRunningProcesses_v2,
            nvmlDeviceGetMPSComputeRunningProcesses
        ),
    };
    answer.map(|all: Vec<sys::nvmlProcessInfo_v2_st>| {
        all.iter().map(|info| (info.pid, bytes(info.usedGpuMemory))).collect()
    })
}

fn bytes(used: u64) -> Option<u64> {
    (used != NOT_AVAILABLE).then_some(used)
}

/// Drivers 535.43 to 535.86 gave version 3 of the lists entries of 32 bytes instead of 24; 535.98
/// took that back. Their version 2 is as ever.
fn is_wide(driver: &str) -> bool {
    let mut numbers = driver.split('.').map(str::parse::<u32>);
    let major = numbers.next();
    major == Some(Ok(535)) && numbers.next().is_some_and(|minor| minor.is_ok_and(|n| n < 98))
}

fn samples(
    session: &Session,
    handle: Handle,
    since: u64,
) -> Result<Vec<sys::nvmlProcessUtilizationSample_st>, Code> {
    fill(|count, samples| {
        nvml_call!(session.nvml(), nvmlDeviceGetProcessUtilization(handle.0, samples, count, since))
    })
}

/// From which time on samples say something of now, in the microseconds since 1970 by the CPU's
/// clock that NVML stamps them with. It is a window and not what the last pass saw last, since
/// passes may be closer together than the driver's samples: a process would be idle every other
/// pass.
fn recent() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.saturating_sub(RECENT).as_micros()).unwrap_or(u64::MAX)
}

/// The newest sample of each process: nvml.h promises one a process and period, of processes
/// that did something in it, so that a mean over samples would be too high. Samples that cannot
/// be, which some drivers give, are left out.
fn newest(mut samples: Vec<sys::nvmlProcessUtilizationSample_st>) -> Newest {
    samples.retain(|sample| sample.pid != 0 && sample.smUtil <= 100);
    samples.sort_by_key(|sample| sample.timeStamp);
    samples.into_iter().map(|sample| (sample.pid, sample)).collect()
}

/// Some drivers give what cannot be for engines that a process does not use.
const fn percent(value: u32) -> u32 {
    if value > 100 { 0 } else { value }
}

/// Lets a function of NVML fill a list: it is told the room there is, and tells how much it took,
/// or with `INSUFFICIENT_SIZE` how much it needs.
fn fill<T: Plain + Copy>(
    mut call: impl FnMut(*mut u32, *mut T) -> Result<(), Code>,
) -> Result<Vec<T>, Code> {
    let mut room = ROOM;
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
    use super::*;

    fn info(pid: u32) -> sys::nvmlProcessInfo_v1_st {
        sys::nvmlProcessInfo_v1_st { pid, usedGpuMemory: 0 }
    }

    /// A driver with so many processes at each call, the last number for all calls after.
    fn filled(counts: &[u32]) -> (Result<Vec<u32>, Code>, usize) {
        let mut calls = 0;
        let answer = fill(|room, infos: *mut sys::nvmlProcessInfo_v1_st| {
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

    #[test]
    fn the_newest_sample_of_a_process_counts_if_it_can_be() {
        let sample = |pid, time, percent| sys::nvmlProcessUtilizationSample_st {
            pid,
            timeStamp: time,
            smUtil: percent,
            memUtil: 0,
            encUtil: 0,
            decUtil: 0,
        };
        let all = vec![sample(1, 5, 10), sample(2, 3, 20), sample(1, 4, 90), sample(2, 9, 4_000)];
        let found = |all| -> Vec<(u32, u32)> {
            newest(all).into_iter().map(|(pid, sample)| (pid, sample.smUtil)).collect()
        };
        assert_eq!(found(all), [(1, 10), (2, 20)]);
        assert_eq!(found(vec![sample(0, 1, 50)]), []);
    }

    #[test]
    fn only_early_drivers_of_branch_535_have_wide_entries() {
        for (driver, wide) in [
            ("535.43.02", true),
            ("535.86.05", true),
            ("535.98", false),
            ("535.230.02", false),
            ("530.41.03", false),
            ("570.86.15", false),
            ("535", false),
            ("", false),
        ] {
            assert_eq!(is_wide(driver), wide, "{driver}");
        }
    }
}
