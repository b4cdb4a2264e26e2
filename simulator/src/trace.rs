//! The trace of calls, for tests that ask what a client called, how often and when.

use std::ffi::CString;
use std::fmt::Write as _;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

use crate::code::Code;
use crate::ffi::Argument;
use crate::note::complain;

/// The open trace file; -1 while there is none.
static FILE: AtomicI32 = AtomicI32::new(-1);

/// Opens the file that `NVML_SIM_TRACE` names.
pub(crate) fn open(path: &str) {
    let Ok(name) = CString::new(path) else { return };
    let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_APPEND | libc::O_CLOEXEC;
    // SAFETY: `name` is a valid C string.
    let fd = unsafe { libc::open(name.as_ptr(), flags, 0o644) };
    if fd < 0 {
        complain(format_args!("cannot open the trace {path}: {}", std::io::Error::last_os_error()));
    }
    FILE.store(fd, Relaxed);
}

/// Closes the file again.
pub(crate) fn close() {
    let fd = FILE.swap(-1, Relaxed);
    if fd >= 0 {
        // SAFETY: the descriptor is this module's own, and nobody finds it any more.
        unsafe { libc::close(fd) };
    }
}

/// Whether calls are traced.
pub(crate) fn on() -> bool {
    FILE.load(Relaxed) >= 0
}

/// Writes one line: milliseconds since load, thread, function, device, arguments, code.
pub(crate) fn call(name: &str, device: &str, arguments: &[&dyn Argument], code: Code) {
    let fd: RawFd = FILE.load(Relaxed);
    if fd < 0 {
        return;
    }
    let mut line = String::with_capacity(128);
    // SAFETY: a plain query.
    let thread = unsafe { libc::gettid() };
    let millis = crate::load::millis();
    let _ = write!(line, "{millis:.3} {thread} {name} {device}");
    for argument in arguments {
        argument.show(&mut line);
    }
    let _ = writeln!(line, " = {code}");
    // SAFETY: an open descriptor and a valid buffer. One write per line keeps lines of several
    // threads and processes apart; a full disk only loses lines.
    unsafe { libc::write(fd, line.as_ptr().cast(), line.len()) };
}
