//! XIDs in the kernel log. NVML does not tell of all of them: of 62, 79, 119 and 120, which are
//! among the worst, often nothing is heard but a line of the driver in `/dev/kmsg`.

mod line;

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use super::incidents::{Incidents, Source};
use crate::config::KernelLog;
use crate::telemetry::Telemetry;
use line::{Address, KernelXid};

/// One read gives one record, of this length at most (`CONSOLE_EXT_LOG_MAX` is 8192).
const RECORD: usize = 16 * 1024;

/// How often it is looked at: a blocked thread could not end, nor tell what it holds back.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// A line waits for so long, so that NVML's event of the same XID, which knows more, comes first.
const HOLD: Duration = Duration::from_secs(2);

/// At most so many different XIDs are held back at a time.
const HELD_MAX: usize = 256;

/// A log that could not be opened or read is tried again after this.
const RETRY: Duration = Duration::from_secs(60);

/// Starts the thread that follows the kernel log for as long as the process lives.
pub(super) fn start(
    KernelLog { path, wanted }: KernelLog,
    incidents: Arc<Incidents>,
    telemetry: Telemetry,
) -> std::io::Result<()> {
    // Of a log that nobody asked for it is no fault that it cannot be read.
    if wanted {
        telemetry.kernel_log(false);
    }
    let follower = Follower { path, incidents, telemetry, held: Vec::new() };
    thread::Builder::new().name("kernel-log".into()).spawn(move || follower.run()).map(drop)
}

struct Follower {
    path: PathBuf,
    incidents: Arc<Incidents>,
    telemetry: Telemetry,
    /// XIDs read, and when.
    held: Vec<(Instant, SystemTime, KernelXid)>,
}

impl Follower {
    fn run(mut self) {
        let mut said = String::new();
        loop {
            let problem = match open(&self.path) {
                Ok(log) => {
                    said.clear();
                    let path = self.path.display().to_string();
                    tracing::info!(path, "XIDs are read from the kernel log, too");
                    self.telemetry.kernel_log(true);
                    let problem = self.follow(log);
                    self.telemetry.kernel_log(false);
                    problem
                }
                Err(problem) => problem,
            };
            let problem = problem.to_string();
            if said != problem {
                let path = self.path.display().to_string();
                tracing::info!(
                    path,
                    problem,
                    "the kernel log cannot be read; XIDs that NVML does not tell of, such as 79 \
                     and 119, are missed"
                );
                said = problem;
            }
            thread::sleep(RETRY);
        }
    }

    /// Reads until it cannot any more.
    fn follow(&mut self, mut log: File) -> std::io::Error {
        let mut buffer = vec![0; RECORD];
        let mut rest = Vec::new();
        loop {
            match log.read(&mut buffer) {
                Ok(read @ 1..) => {
                    rest.extend_from_slice(&buffer[..read]);
                    self.take_lines(&mut rest);
                    continue;
                }
                Ok(0) => {}
                // Records were overwritten before they were read, or a signal came.
                Err(error)
                    if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::Interrupted) =>
                {
                    continue;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return error,
            }
            self.note();
            thread::sleep(LOOK_EVERY);
        }
    }

    /// Takes whole lines; one that does not end is let go of when it is longer than any can be.
    fn take_lines(&mut self, rest: &mut Vec<u8>) {
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = rest.drain(..=end).collect();
            let Some(xid) = line::parse(&String::from_utf8_lossy(&line)) else { continue };
            // A storm repeats itself, and must not push another code out.
            let is_held = self.held.iter().any(|(_, _, held)| *held == xid);
            if !is_held && self.held.len() < HELD_MAX {
                self.held.push((Instant::now(), SystemTime::now(), xid));
            }
        }
        if rest.len() > RECORD {
            rest.clear();
        }
    }

    /// Notes what has waited long enough.
    fn note(&mut self) {
        let due = self.held.partition_point(|(since, ..)| since.elapsed() >= HOLD);
        if due == 0 {
            return;
        }
        let places = self.incidents.places();
        for (_, at, xid) in self.held.drain(..due) {
            let KernelXid { address, instance, code } = xid;
            let Some((uuid, _)) =
                places.iter().find(|(_, pci)| Address::parse(pci) == Some(address))
            else {
                tracing::warn!(%address, xid = code, "XID in the kernel log of a GPU that NVML does not list");
                continue;
            };
            if self.incidents.xid(uuid, (instance, code), Source::KernelLog, at) {
                tracing::error!(uuid, gpu_instance = ?instance, xid = code, "XID in the kernel log");
            }
        }
    }
}

/// Opens the log behind what it holds: that is of before this process.
fn open(path: &Path) -> std::io::Result<File> {
    let nonblocking = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or_default();
    let mut log = OpenOptions::new().read(true).custom_flags(nonblocking).open(path)?;
    match log.seek(SeekFrom::End(0)) {
        // A pipe has no past.
        Err(error) if error.kind() != ErrorKind::NotSeekable => Err(error),
        _ => Ok(log),
    }
}
