//! A running exporter, and what the kernel says of it.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::Selection;
use crate::http;
use crate::shell::{self, Outcome};

const SCENARIO: &str = "dense-16x7";
/// A value that each GPU has; a page with it is a page with readings.
const SIGN_OF_LIFE: &str = "\nDCGM_FI_DEV_GPU_TEMP{";
/// One a GPU.
const DEVICES: &str = "nvml_exporter_device_up{";
/// Counts one observation a pass and GPU, over all GPUs.
const PASSES: &str = "nvml_exporter_pass_duration_seconds_count";
/// How long the first page may take before a run fails.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// Killed when dropped.
#[derive(Debug)]
pub(super) struct Exporter {
    child: Child,
    pub(super) port: u16,
}

/// What a process has used so far.
#[derive(Debug, Clone, Copy)]
pub(super) struct Usage {
    pub(super) cpu: Duration,
    pub(super) resident: u64,
    pub(super) resident_peak: u64,
    pub(super) passes: u64,
}

impl Exporter {
    pub(super) fn start(selection: &Selection, interval: Duration) -> Outcome<Self> {
        Self::start_with(selection, interval, &[])
    }

    /// With something in its environment.
    pub(super) fn start_with(
        selection: &Selection,
        interval: Duration,
        environment: &[(&str, &Path)],
    ) -> Outcome<Self> {
        let port = free_port().map_err(|error| format!("no free port: {error}"))?;
        let mut command = Command::new(shell::target().join("release/nvml-exporter"));
        command
            .args(["--simulate", SCENARIO, "--log-level=error"])
            .arg(format!("--address=127.0.0.1:{port}"))
            .arg(format!("--collect-interval={}ms", interval.as_millis()))
            .args(selection.arguments)
            .envs(environment.iter().copied())
            .stdout(Stdio::null());
        if let Some(file) = &selection.file {
            command.arg("--collectors").arg(file);
        }
        let child = command.spawn().map_err(|error| format!("cannot run the exporter: {error}"))?;
        Ok(Self { child, port })
    }

    /// Asks until a page has readings.
    pub(super) fn first_page(&self) -> Outcome<String> {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            match http::get(self.port, "/metrics") {
                Ok(page) if page.contains(SIGN_OF_LIFE) => return Ok(page),
                _ => std::thread::sleep(LOOK_EVERY),
            }
        }
        Err(format!("no page with readings within {} s", PATIENCE.as_secs()))
    }

    pub(super) fn usage(&self) -> Outcome<Usage> {
        let page =
            http::get(self.port, "/metrics").map_err(|error| format!("/metrics: {error}"))?;
        let status = self.proc("status")?;
        let bytes = |key| kibibytes(&status, key).map(|count| count * 1024);
        Ok(Usage {
            cpu: self.cpu()?,
            resident: bytes("VmRSS:")?,
            resident_peak: bytes("VmHWM:")?,
            passes: passes(&page)?,
        })
    }

    /// What has been used once so many passes were made. Fails when the exporter does not keep up.
    pub(super) fn after(&self, passes: u64, interval: Duration) -> Outcome<Usage> {
        let rounds = u32::try_from(passes).unwrap_or(u32::MAX);
        let until = Instant::now() + interval * rounds * 2 + PATIENCE;
        while Instant::now() < until {
            let usage = self.usage()?;
            if usage.passes >= passes {
                return Ok(usage);
            }
            std::thread::sleep(interval * 10);
        }
        Err(format!("fewer than {passes} passes in twice their time"))
    }

    /// CPU time of all threads, in user and kernel mode.
    pub(super) fn cpu(&self) -> Outcome<Duration> {
        let stat = self.proc("stat")?;
        // The name in parentheses may have blanks; utime and stime are fields 14 and 15.
        let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        let ticks: Vec<u64> = after_name
            .split_whitespace()
            .skip(11)
            .take(2)
            .filter_map(|text| text.parse().ok())
            .collect();
        let [user, system] = ticks[..] else { return Err("/proc/PID/stat is odd".to_owned()) };
        let seconds = (user + system) as f64 / rustix::param::clock_ticks_per_second() as f64;
        Ok(Duration::from_secs_f64(seconds))
    }

    /// CPU time of the threads whose names begin so.
    pub(super) fn threads(&self, names: &[&str]) -> Outcome<Duration> {
        let path = format!("/proc/{}/task", self.child.id());
        let tasks = fs::read_dir(&path).map_err(|error| format!("{path}: {error}"))?;
        let mut nanoseconds = 0;
        for task in tasks.flatten() {
            // One that has ended meanwhile is none of those that stay.
            let read = |file: &str| fs::read_to_string(task.path().join(file)).unwrap_or_default();
            if names.iter().any(|name| read("comm").starts_with(name)) {
                let text = read("schedstat");
                let cpu = text.split_whitespace().next().and_then(|cpu| cpu.parse::<u64>().ok());
                nanoseconds += cpu.ok_or_else(|| format!("{path} has no schedstat"))?;
            }
        }
        Ok(Duration::from_nanos(nanoseconds))
    }

    fn proc(&self, file: &str) -> Outcome<String> {
        let path = format!("/proc/{}/{file}", self.child.id());
        fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Free a moment ago, which is enough here.
fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

fn kibibytes(status: &str, key: &str) -> Outcome<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(key));
    line.and_then(|rest| rest.trim().strip_suffix(" kB")?.parse().ok())
        .ok_or_else(|| format!("/proc/PID/status has no {key}"))
}

/// Passes over all GPUs: the histogram counts each GPU's alone.
fn passes(page: &str) -> Outcome<u64> {
    let count = |line: &str| line.rsplit_once(' ')?.1.parse::<u64>().ok();
    let observed = page.lines().find(|line| line.starts_with(PASSES)).and_then(count);
    let gpus = page.lines().filter(|line| line.starts_with(DEVICES)).count() as u64;
    match (observed, gpus) {
        (Some(observed), 1..) => Ok(observed / gpus),
        _ => Err(format!("the page lacks {PASSES} or {DEVICES}")),
    }
}
