//! What processes did of late: the driver's samples, from whichever of two functions gives them.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nvml_wrapper_sys::bindings as sys;

use super::code::Code;
use super::field_values::Support;
use super::library::Session;
use super::list::{ROOM, fill};
use super::raw::{Handle, nvml_call, version_of};
use super::work::Work;

/// Samples older than this say nothing of now. The driver samples once a second.
const RECENT: Duration = Duration::from_secs(2);

/// The newest sample of each process.
pub(super) type Newest = BTreeMap<u32, Sample>;

/// A sample of one process, whichever function told it. Percent of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sample {
    pub(super) pid: u32,
    /// Microseconds since 1970, by the CPU's clock.
    time: u64,
    pub(super) sm: u32,
    pub(super) memory: u32,
    pub(super) encoder: u32,
    pub(super) decoder: u32,
}

/// What is remembered between passes of one GPU: which function answers.
#[derive(Debug, Default)]
pub(super) struct Samples {
    first: Support,
    second: Support,
}

impl Samples {
    /// `nvmlDeviceGetProcessUtilization` is older than any driver that can be served; some boards
    /// refuse it and give the same by `nvmlDeviceGetProcessesUtilizationInfo`, from R550 on.
    pub(super) fn read(&mut self, work: &mut Work<'_>, handle: Handle) -> Result<Newest, Code> {
        let (session, since) = (work.session, recent());
        let first = ask(work, ("nvmlDeviceGetProcessUtilization", &mut self.first), || {
            by_pointer(session, handle, since)
        });
        let answer = match first {
            Err(Code::NOT_SUPPORTED | Code::FUNCTION_NOT_FOUND) => {
                let name = "nvmlDeviceGetProcessesUtilizationInfo";
                let second =
                    ask(work, (name, &mut self.second), || by_struct(session, handle, since));
                // Where there is no second one, the first said why.
                if second == Err(Code::FUNCTION_NOT_FOUND) { first } else { second }
            }
            other => other,
        };
        answer.map(newest)
    }
}

/// Makes a call unless it is known to be refused.
fn ask(
    work: &mut Work<'_>,
    (name, support): (&'static str, &mut Support),
    call: impl FnOnce() -> Result<Vec<Sample>, Code>,
) -> Result<Vec<Sample>, Code> {
    if let Some(code) = support.refusal() {
        return Err(code);
    }
    let answer = match call() {
        // No process has used the GPU.
        Err(Code::NOT_FOUND) => Ok(Vec::new()),
        other => other,
    };
    support.learn(&answer);
    work.note(name, &answer);
    answer
}

fn by_pointer(session: &Session, handle: Handle, since: u64) -> Result<Vec<Sample>, Code> {
    let all = fill(ROOM, |count, samples| {
        nvml_call!(session.nvml(), nvmlDeviceGetProcessUtilization(handle.0, samples, count, since))
    })?;
    let sample = |one: sys::nvmlProcessUtilizationSample_st| Sample {
        pid: one.pid,
        time: one.timeStamp,
        sm: one.smUtil,
        memory: one.memUtil,
        encoder: one.encUtil,
        decoder: one.decUtil,
    };
    Ok(all.into_iter().map(sample).collect())
}

/// The count goes in and comes back in the struct.
fn by_struct(session: &Session, handle: Handle, since: u64) -> Result<Vec<Sample>, Code> {
    let all = fill(ROOM, |count, samples| {
        let mut info = sys::nvmlProcessesUtilizationInfo_v1_t {
            version: version_of::<sys::nvmlProcessesUtilizationInfo_v1_t>(1),
            // SAFETY: `fill` passes a live number, here and below.
            processSamplesCount: unsafe { count.read() },
            lastSeenTimeStamp: since,
            procUtilArray: samples,
        };
        let info = &raw mut info;
        let answer =
            nvml_call!(session.nvml(), nvmlDeviceGetProcessesUtilizationInfo(handle.0, info));
        // SAFETY: as above; `info` is alive.
        unsafe { count.write((*info).processSamplesCount) };
        answer
    })?;
    let sample = |one: sys::nvmlProcessUtilizationInfo_v1_t| Sample {
        pid: one.pid,
        time: one.timeStamp,
        sm: one.smUtil,
        memory: one.memUtil,
        encoder: one.encUtil,
        decoder: one.decUtil,
    };
    Ok(all.into_iter().map(sample).collect())
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
fn newest(mut samples: Vec<Sample>) -> Newest {
    samples.retain(|sample| sample.pid != 0 && sample.sm <= 100);
    samples.sort_by_key(|sample| sample.time);
    samples.into_iter().map(|sample| (sample.pid, sample)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_sample_of_a_process_counts_if_it_can_be() {
        let sample = |pid, time, sm| Sample { pid, time, sm, memory: 0, encoder: 0, decoder: 0 };
        let all = vec![sample(1, 5, 10), sample(2, 3, 20), sample(1, 4, 90), sample(2, 9, 4_000)];
        let found = |all| -> Vec<(u32, u32)> {
            newest(all).into_iter().map(|(pid, sample)| (pid, sample.sm)).collect()
        };
        assert_eq!(found(all), [(1, 10), (2, 20)]);
        assert_eq!(found(vec![sample(0, 1, 50)]), []);
    }
}
