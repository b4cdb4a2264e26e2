//! What the simulator itself costs a client, for benchmarks that ask what the client's own work
//! costs: CPU time of all calls, in a file that both map.

use std::ffi::CString;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering::Relaxed};

use crate::note::complain;

/// Where nanoseconds are added up; null while nobody asks.
static NANOSECONDS: AtomicPtr<AtomicU64> = AtomicPtr::new(null_mut());

/// What asking for the CPU time once costs. A call does so twice, and half of each is outside of
/// what it measures.
static ASKING: AtomicU64 = AtomicU64::new(0);

/// So often is it asked to find that out.
const ROUNDS: u64 = 10_000;

const SIZE: usize = size_of::<AtomicU64>();

/// Maps the file that `NVML_SIM_COST` names: eight bytes, a number in the machine's byte order.
pub(crate) fn open(path: &str) {
    let Ok(name) = CString::new(path) else { return };
    // SAFETY: `name` is a valid C string, the descriptor is this function's own, and the mapping,
    // which is never undone, is as large as the file.
    let mapping = unsafe {
        let fd = libc::open(name.as_ptr(), libc::O_RDWR | libc::O_CREAT | libc::O_CLOEXEC, 0o644);
        let size = libc::off_t::try_from(SIZE).unwrap_or(8);
        if fd < 0 || libc::ftruncate(fd, size) != 0 {
            libc::MAP_FAILED
        } else {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let mapping = libc::mmap(null_mut(), SIZE, access, libc::MAP_SHARED, fd, 0);
            libc::close(fd);
            mapping
        }
    };
    if mapping == libc::MAP_FAILED {
        complain(format_args!("cannot map {path}: {}", std::io::Error::last_os_error()));
    } else {
        let from = cpu_nanoseconds();
        let to = (0..ROUNDS).fold(from, |_, _| cpu_nanoseconds());
        ASKING.store(to.saturating_sub(from) / ROUNDS, Relaxed);
        NANOSECONDS.store(mapping.cast(), Relaxed);
    }
}

/// A call under way, whose CPU time counts when it ends.
pub(crate) struct Meter {
    from: Option<u64>,
}

impl Meter {
    pub(crate) fn start() -> Self {
        Self { from: (!NANOSECONDS.load(Relaxed).is_null()).then(cpu_nanoseconds) }
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        let Some(from) = self.from else { return };
        // SAFETY: once it is not null it points to a mapping that stays.
        if let Some(total) = unsafe { NANOSECONDS.load(Relaxed).as_ref() } {
            let spent = cpu_nanoseconds().saturating_sub(from);
            total.fetch_add(spent + ASKING.load(Relaxed), Relaxed);
        }
    }
}

fn cpu_nanoseconds() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec that the call fills.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    let part = |value: i64| u64::try_from(value).unwrap_or(0);
    part(time.tv_sec) * 1_000_000_000 + part(time.tv_nsec)
}
