//! Who uses a GPU: the lists of running processes, with what samples and accounts tell of them.

use std::collections::{BTreeMap, BTreeSet};

use nvml_wrapper_sys::bindings as sys;

use super::accounting::Accounts;
use super::code::Code;
use super::field_values::Support;
use super::library::Session;
use super::list::{ROOM, fill};
use super::process_samples::{Newest, Sample, Samples};
use super::raw::{Handle, nvml_call};
use super::work::Work;
use crate::catalogue::Call;
use crate::sampler::owners::Owners;
use crate::sampler::snapshot::{ProcessMemory, ProcessUtilization, Processes};

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
    samples: Samples,
    accounts: Accounts,
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

impl Of<'_> {
    /// The GPU itself: in MIG mode NVML has neither samples nor accounts.
    const fn whole(&self) -> Option<Handle> {
        match self {
            Self::Whole(handle) => Some(*handle),
            Self::Instances(_) => None,
        }
    }
}

/// Memory in use by instance and process; `None` where NVML does not tell.
type Used = BTreeMap<(Option<u32>, u32), Option<u64>>;

impl Watch {
    /// What a GPU refuses in MIG mode it may give otherwise.
    pub(super) fn forget_refusals(&mut self) {
        self.whole = Default::default();
        self.instances = Default::default();
        self.samples = Samples::default();
        self.accounts.forget_refusals();
    }

    /// Reads what there is. What fails is noted and said in its place; it ends nothing.
    pub(super) fn read(&mut self, work: &mut Work<'_>, of: &Of<'_>) -> Processes {
        let running = self.running(work, of);
        let utilization = self.utilization(work, of);
        let accounted = work.request.accounting && self.accounts.read(work, of.whole());
        let mut pids = BTreeSet::new();
        pids.extend(running.iter().flat_map(Used::keys).map(|(_, pid)| *pid));
        pids.extend(utilization.iter().flat_map(BTreeMap::keys));
        pids.extend(self.accounts.running().filter(|_| accounted));
        self.owners.look_up(work.proc_root, pids);
        if accounted {
            work.accounting = self.accounts.told(&self.owners);
        }
        let memory = |((gpu_instance, pid), used_bytes)| ProcessMemory {
            pid,
            owner: self.owners.of(pid),
            used_bytes,
            gpu_instance,
        };
        let used = |(pid, sample): (u32, Sample)| ProcessUtilization {
            pid,
            owner: self.owners.of(pid),
            sm_percent: sample.sm,
            memory_percent: percent(sample.memory),
            encoder_percent: percent(sample.encoder),
            decoder_percent: percent(sample.decoder),
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
        self.samples.read(work, of.whole().ok_or(Code::NOT_SUPPORTED)?)
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
            work.note(list.function(), &answer);
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
                answer =
                    fill(ROOM, |count, infos| nvml_call!(nvml, $third(handle.0, count, infos)));
            }
            if matches!(answer, Err(Code::FUNCTION_NOT_FOUND)) {
                answer =
                    fill(ROOM, |count, infos| nvml_call!(nvml, $second(handle.0, count, infos)));
            }
            if matches!(answer, Err(Code::FUNCTION_NOT_FOUND)) {
                let answer =
                    fill(ROOM, |count, infos| nvml_call!(nvml, $first(handle.0, count, infos)));
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

/// Some drivers give what cannot be for engines that a process does not use.
const fn percent(value: u32) -> u32 {
    if value > 100 { 0 } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;

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
