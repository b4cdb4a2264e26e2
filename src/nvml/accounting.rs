//! What the driver has accounted of processes over their life, also of those that have ended.
//!
//! Accounting mode is off unless an administrator turns it on, and can be turned on and off at any
//! time. The driver keeps some thousand accounts, one of a process number: of a number that is used
//! again it tells the account of the process that ended, and lists it twice, until the second one
//! ends, too. Of processes that have ended it tells only in the node's own process namespace.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use nvml_wrapper_sys::bindings as sys;

use super::code::Code;
use super::field_values::Support;
use super::list::{ROOM_MAX, SPARE, fill};
use super::raw::{Handle, nvml_call, zeroed};
use super::work::Work;
use crate::sampler::owners::Owners;
use crate::sampler::snapshot::Accounted;

/// So many accounts are kept: those of running processes, then the newest.
const KEPT: usize = 128;

/// So many are asked for in a pass.
const ASKED: usize = 128;

/// So many of them can be new, however many are known to run.
const NEW: usize = 32;

/// How many accounts a driver has if it does not say.
const BUFFER: u32 = 4_000;

/// `NVML_VALUE_NOT_AVAILABLE`.
const NOT_AVAILABLE: u64 = u64::MAX;

const MODE: &str = "nvmlDeviceGetAccountingMode";
const PIDS: &str = "nvmlDeviceGetAccountingPids";
const STATS: &str = "nvmlDeviceGetAccountingStats";
const SIZE: &str = "nvmlDeviceGetAccountingBufferSize";

/// What is remembered between passes of one GPU.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    mode: Support,
    pids: Support,
    stats: Support,
    /// For how many numbers there is room, so that one call will do.
    room: Option<usize>,
    book: Book,
}

impl Accounts {
    /// What a GPU refuses in MIG mode it may give otherwise.
    pub(super) fn forget_refusals(&mut self) {
        *self = Self { book: std::mem::take(&mut self.book), ..Self::default() };
    }

    /// Brings the accounts up to date; whether there are any. `None` is a GPU in MIG mode, in
    /// which the driver refuses to account.
    pub(super) fn read(&mut self, work: &mut Work<'_>, handle: Option<Handle>) -> bool {
        let on = handle.map_or(Ok(false), |handle| self.is_on(work, handle));
        if on == Ok(false) {
            self.book = Book::default();
        }
        on == Ok(true) && handle.is_some_and(|handle| self.read_from(work, handle).is_some())
    }

    fn read_from(&mut self, work: &mut Work<'_>, handle: Handle) -> Option<()> {
        let pids = self.list(work, handle)?;
        for pid in self.book.open(&pids) {
            let stats = stats(work, handle, pid);
            if let Err(Code::NOT_FOUND) = stats {
                // It was forgotten meanwhile.
                self.book.strike(pid);
                continue;
            }
            self.stats.learn(&stats);
            work.note(STATS, &stats);
            let Ok(stats) = stats else {
                // The others would fail, too.
                self.book.give_up();
                break;
            };
            self.book.enter(pid, &stats);
        }
        self.book.close();
        self.stats.refusal().is_none().then_some(())
    }

    /// Not asked where nothing would follow.
    fn is_on(&mut self, work: &mut Work<'_>, handle: Handle) -> Result<bool, Code> {
        let refused = [&self.mode, &self.pids, &self.stats].map(Support::refusal);
        if refused.iter().any(Option::is_some) {
            return Ok(false);
        }
        let mut mode = 0;
        let nvml = work.session.nvml();
        let answer = nvml_call!(nvml, nvmlDeviceGetAccountingMode(handle.0, &raw mut mode));
        self.mode.learn(&answer);
        work.note(MODE, &answer);
        answer.map(|()| mode != 0)
    }

    fn list(&mut self, work: &mut Work<'_>, handle: Handle) -> Option<Vec<u32>> {
        let room = *self.room.get_or_insert_with(|| room(work, handle));
        let nvml = work.session.nvml();
        let answer = fill(room, |count, pids| {
            nvml_call!(nvml, nvmlDeviceGetAccountingPids(handle.0, count, pids))
        });
        self.pids.learn(&answer);
        work.note(PIDS, &answer);
        answer.ok()
    }

    /// The processes that run by the accounts.
    pub(super) fn running(&self) -> impl Iterator<Item = u32> {
        self.book.running().map(|entry| entry.account.pid)
    }

    /// The accounts by process number. Whose a process is, is remembered beyond its end.
    pub(super) fn told(&mut self, owners: &Owners) -> Vec<Accounted> {
        for account in self.book.entries.values_mut().map(|entry| &mut entry.account) {
            if account.running {
                account.owner = owners.of(account.pid).or_else(|| account.owner.take());
            }
        }
        self.book.entries.values().map(|entry| entry.account.clone()).collect()
    }
}

fn room(work: &mut Work<'_>, handle: Handle) -> usize {
    let mut size = BUFFER;
    let nvml = work.session.nvml();
    let answer = nvml_call!(nvml, nvmlDeviceGetAccountingBufferSize(handle.0, &raw mut size));
    work.note(SIZE, &answer);
    let size = if answer.is_ok() { size } else { BUFFER };
    // Those that run may come on top.
    usize::try_from(size).unwrap_or(ROOM_MAX).min(ROOM_MAX) + ASKED + SPARE
}

fn stats(work: &Work<'_>, handle: Handle, pid: u32) -> Result<sys::nvmlAccountingStats_st, Code> {
    let mut stats = zeroed();
    let nvml = work.session.nvml();
    nvml_call!(nvml, nvmlDeviceGetAccountingStats(handle.0, pid, &raw mut stats)).map(|()| stats)
}

/// The accounts that are kept, and whose need not be asked for again.
#[derive(Debug, Default)]
struct Book {
    /// How many times it was opened.
    pass: u64,
    /// How often a number is in the driver's list.
    listed: HashMap<u32, usize>,
    /// The same as of when its account was asked for. What is told of a process that has ended
    /// does not change until its number is used again.
    seen: HashMap<u32, usize>,
    entries: BTreeMap<u32, Entry>,
}

#[derive(Debug)]
struct Entry {
    account: Accounted,
    /// The pass in which it was asked for.
    asked: u64,
}

impl Book {
    fn running(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values().filter(|entry| entry.account.running)
    }

    /// Forgets what the driver no longer lists; whose accounts to ask for.
    fn open(&mut self, pids: &[u32]) -> Vec<u32> {
        self.pass += 1;
        self.listed.clear();
        for pid in pids {
            *self.listed.entry(*pid).or_default() += 1;
        }
        self.seen.retain(|pid, _| self.listed.contains_key(pid));
        self.entries.retain(|pid, _| self.listed.contains_key(pid));
        let mut running: Vec<_> =
            self.running().map(|entry| (entry.asked, entry.account.pid)).collect();
        running.sort_unstable();
        let is_running = |pid: &u32| self.entries.get(pid).is_some_and(|one| one.account.running);
        let is_new = |pid: &u32| !is_running(pid) && self.seen.get(pid) != self.listed.get(pid);
        // The newest are listed last.
        let mut new: Vec<u32> = Vec::new();
        for pid in pids.iter().rev().filter(|pid| is_new(pid)) {
            if new.len() == ASKED {
                break;
            }
            if !new.contains(pid) {
                new.push(*pid);
            }
        }
        let rest = new.split_off(new.len().min(NEW));
        let running = running.into_iter().map(|(_, pid)| pid);
        new.into_iter().chain(running).chain(rest).take(ASKED).collect()
    }

    /// Enters what the driver told.
    fn enter(&mut self, pid: u32, stats: &sys::nvmlAccountingStats_st) {
        let former = self.entries.remove(&pid).map(|entry| entry.account);
        let same = former.filter(|former| former.start == stats.startTime);
        let account = account(pid, stats, same);
        self.entries.insert(pid, Entry { account, asked: self.pass });
        self.seen.insert(pid, self.listed.get(&pid).copied().unwrap_or_default());
    }

    fn strike(&mut self, pid: u32) {
        self.entries.remove(&pid);
        self.seen.remove(&pid);
    }

    /// Takes out what is out of date: running processes whose accounts could not be asked for.
    fn give_up(&mut self) {
        let stale = |entry: &Entry| entry.account.running && entry.asked != self.pass;
        let stale: Vec<u32> =
            self.entries.iter().filter(|(_, one)| stale(one)).map(|(pid, _)| *pid).collect();
        for pid in stale {
            self.strike(pid);
        }
    }

    /// Takes out what is too much.
    fn close(&mut self) {
        let mut all: Vec<_> = self.entries.values().map(|entry| &entry.account).collect();
        all.sort_unstable_by_key(|account| Reverse((account.running, account.start, account.pid)));
        let excess: Vec<u32> = all.into_iter().skip(KEPT).map(|account| account.pid).collect();
        for pid in excess {
            self.entries.remove(&pid);
        }
    }
}

fn account(pid: u32, stats: &sys::nvmlAccountingStats_st, former: Option<Accounted>) -> Accounted {
    let running = stats.isRunning != 0;
    Accounted {
        pid,
        start: stats.startTime,
        owner: former.and_then(|former| former.owner),
        running,
        max_memory_bytes: known(stats.maxMemoryUsage),
        sm_percent: percent(stats.gpuUtilization),
        memory_percent: percent(stats.memoryUtilization),
        took: known(stats.time).filter(|_| !running).map(Duration::from_millis),
    }
}

fn known(value: u64) -> Option<u64> {
    (value != NOT_AVAILABLE).then_some(value)
}

/// `NVML_VALUE_NOT_AVAILABLE` is more than there can be.
fn percent(value: u32) -> Option<u32> {
    (value <= 100).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a driver tells of a process: when it started, and for how long it was there.
    fn stats(start: u64, time: Option<u64>) -> sys::nvmlAccountingStats_st {
        sys::nvmlAccountingStats_st {
            gpuUtilization: 50,
            memoryUtilization: u32::MAX,
            maxMemoryUsage: u64::MAX,
            time: time.unwrap_or(0),
            startTime: start,
            isRunning: u32::from(time.is_none()),
            reserved: [0; 5],
        }
    }

    /// A pass on a driver that lists these processes, each told by `tell`; whose were asked for.
    fn pass(
        book: &mut Book,
        listed: &[u32],
        tell: impl Fn(u32) -> sys::nvmlAccountingStats_st,
    ) -> Vec<u32> {
        let asked = book.open(listed);
        for pid in &asked {
            book.enter(*pid, &tell(*pid));
        }
        book.close();
        asked
    }

    fn ended(pid: u32) -> sys::nvmlAccountingStats_st {
        stats(pid.into(), Some(1_500))
    }

    fn running(pid: u32) -> sys::nvmlAccountingStats_st {
        stats(pid.into(), None)
    }

    fn kept(book: &Book) -> Vec<u32> {
        book.entries.keys().copied().collect()
    }

    #[test]
    fn what_is_not_available_is_not_there_nor_is_the_time_of_a_running_process() {
        let told = account(7, &running(3), None);
        assert_eq!((told.sm_percent, told.memory_percent), (Some(50), None));
        assert_eq!((told.max_memory_bytes, told.took, told.start), (None, None, 3));
        assert_eq!(account(7, &ended(3), None).took, Some(Duration::from_millis(1_500)));
        let unknown = sys::nvmlAccountingStats_st { time: u64::MAX, ..ended(3) };
        assert_eq!(account(7, &unknown, None).took, None);
    }

    #[test]
    fn a_process_is_asked_for_while_it_runs_and_once_after_its_end() {
        let mut book = Book::default();
        let state = |over: bool| move |pid| if pid == 2 && over { ended(2) } else { running(pid) };
        assert_eq!(pass(&mut book, &[1, 2], state(false)), [2, 1]);
        assert_eq!(pass(&mut book, &[1, 2], state(true)), [1, 2]);
        assert_eq!(pass(&mut book, &[1, 2], state(true)), [1]);
        assert_eq!(kept(&book), [1, 2]);
        assert!(pass(&mut book, &[2], state(true)).is_empty());
        assert_eq!(kept(&book), [2], "the driver has forgotten the other");
    }

    #[test]
    fn a_number_that_is_used_again_is_asked_for_when_the_list_shows_it() {
        let mut book = Book::default();
        assert_eq!(pass(&mut book, &[5], ended), [5]);
        book.entries.get_mut(&5).unwrap().account.owner = Some(std::sync::Arc::default());
        // Another one runs, of which nothing is told.
        assert_eq!(pass(&mut book, &[5, 5], ended), [5]);
        assert!(book.entries[&5].account.owner.is_some(), "the same process");
        assert!(pass(&mut book, &[5, 5], ended).is_empty());
        assert_eq!(pass(&mut book, &[5], |_| stats(900, Some(1))), [5]);
        let account = &book.entries[&5].account;
        assert_eq!((account.start, account.owner.is_none()), (900, true), "another process");
    }

    #[test]
    fn a_full_driver_is_read_bit_by_bit_and_the_newest_are_kept() {
        let mut book = Book::default();
        let all: Vec<u32> = (1..=4_000).collect();
        // Not in the order of their start.
        let tell = |pid| stats(u64::from(pid * 7 % 4_001), Some(1));
        let mut passes = 0;
        loop {
            let asked = pass(&mut book, &all, tell).len();
            assert!(asked <= ASKED && book.entries.len() <= KEPT);
            if asked == 0 {
                break;
            }
            passes += 1;
        }
        assert_eq!(passes, 4_000_usize.div_ceil(ASKED));
        let mut starts: Vec<u64> = book.entries.values().map(|one| one.account.start).collect();
        starts.sort_unstable();
        assert_eq!(starts, (3_873..=4_000).collect::<Vec<u64>>());
    }

    #[test]
    fn running_processes_come_before_those_that_ended_and_none_is_asked_for_ever() {
        let mut book = Book::default();
        let all: Vec<u32> = (1..=300).collect();
        // The oldest run; the others have ended.
        let tell = |pid| if pid <= 120 { running(pid) } else { ended(pid) };
        for _ in 0..10 {
            assert!(pass(&mut book, &all, tell).len() <= ASKED);
        }
        let expected: Vec<u32> = (1..=120).chain(293..=300).collect();
        assert_eq!(kept(&book), expected);
        assert_eq!(pass(&mut book, &all, tell), (1..=120).collect::<Vec<u32>>());
        // New ones are asked for first, but not so many that the others go stale.
        let more: Vec<u32> = (1..=600).collect();
        let asked = book.open(&more);
        assert_eq!(asked.iter().filter(|pid| **pid > 300).count(), NEW);
        assert_eq!(asked.len(), ASKED);
    }

    #[test]
    fn after_a_failure_running_processes_are_out_and_asked_for_again() {
        let mut book = Book::default();
        let tell = |pid| if pid == 3 { ended(3) } else { running(pid) };
        pass(&mut book, &[1, 2, 3], tell);
        let asked = book.open(&[1, 2, 3]);
        assert_eq!(asked, [1, 2]);
        book.enter(1, &running(1));
        book.give_up();
        assert_eq!(kept(&book), [1, 3]);
        assert_eq!(book.open(&[1, 2, 3]), [2, 1]);
    }
}
