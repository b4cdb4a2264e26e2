//! Symbols that an older driver lacks.
//!
//! A client finds out what a driver can do by looking symbols up. So a symbol that is not there
//! must really not be found: the library overwrites the first letter of its name in its own dynamic
//! string table, and puts it back when a scenario has the symbol again.

use std::ffi::{c_int, c_void};
use std::sync::Mutex;

use crate::note::complain;

/// The dynamic string table.
struct Table {
    start: *mut u8,
    length: usize,
    /// How the segment that it lies in is mapped.
    protection: c_int,
}

/// One writer at a time.
static LOCK: Mutex<()> = Mutex::new(());

/// What stands in place of the `n` of a hidden `nvml...` name.
const HIDDEN: u8 = b'-';

/// Hides exactly the symbols that `hidden` says, and shows all others.
pub(crate) fn hide(hidden: &dyn Fn(&str) -> bool) {
    let _guard = LOCK.lock();
    let Some(table) = own_string_table() else { return };
    if let Err(e) = rewrite(&table, hidden) {
        complain(format_args!("cannot hide symbols: {e}"));
    }
}

fn rewrite(table: &Table, hidden: &dyn Fn(&str) -> bool) -> std::io::Result<()> {
    // SAFETY: the dynamic linker mapped `length` bytes at `start`, and they stay mapped as long as
    // this code does.
    let bytes = unsafe { std::slice::from_raw_parts(table.start, table.length) };
    let mut changes = Vec::new();
    let mut offset = 0;
    for name in bytes.split(|b| *b == 0) {
        if name.len() > 4 && &name[1..4] == b"vml" && (name[0] == b'n' || name[0] == HIDDEN) {
            let rest = std::str::from_utf8(&name[1..]).unwrap_or_default();
            let wanted = if hidden(&format!("n{rest}")) { HIDDEN } else { b'n' };
            if name[0] != wanted {
                changes.push((offset, wanted));
            }
        }
        offset += name.len() + 1;
    }
    if changes.is_empty() {
        return Ok(());
    }
    // SAFETY: a plain query.
    let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
    let slack = table.start.addr() % page;
    let length = table.length + slack;
    // SAFETY: the pages hold the string table and its neighbours in a segment of this library, which
    // may hold code too: what could be done with them can be done all the time. They are writable
    // for the loop below only, in which nothing but bytes of the string table is written; lookups
    // that run meanwhile see the old byte or the new one.
    unsafe {
        let first = table.start.sub(slack).cast::<c_void>();
        if libc::mprotect(first, length, table.protection | libc::PROT_WRITE) != 0 {
            return Err(std::io::Error::last_os_error());
        }
        for (offset, byte) in changes {
            table.start.add(offset).write_volatile(byte);
        }
        libc::mprotect(first, length, table.protection);
    }
    Ok(())
}

/// Finds the dynamic string table of the object this code lies in.
fn own_string_table() -> Option<Table> {
    let mut found: Option<Table> = None;
    // SAFETY: `visit` gets back the pointer to `found` that is passed here, during the call only.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut found).cast()) };
    found
}

unsafe extern "C" fn visit(
    info: *mut libc::dl_phdr_info,
    _size: libc::size_t,
    found: *mut c_void,
) -> c_int {
    // SAFETY: the dynamic linker passes a valid `info`, whose program headers are mapped, and
    // `found` is the pointer given in `own_string_table`.
    let (info, headers, found) = unsafe {
        let info = &*info;
        let headers = std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum));
        (info, headers, &mut *found.cast::<Option<Table>>())
    };
    let base = to_usize(info.dlpi_addr);
    let here = hide as *const () as usize;
    let segment_of = |address: usize| {
        headers.iter().find(|h| {
            let start = base.wrapping_add(to_usize(h.p_vaddr));
            h.p_type == libc::PT_LOAD && (start..start + to_usize(h.p_memsz)).contains(&address)
        })
    };
    if segment_of(here).is_none() {
        return 0;
    }
    if let Some(dynamic) = headers.iter().find(|h| h.p_type == libc::PT_DYNAMIC) {
        let entries = base.wrapping_add(to_usize(dynamic.p_vaddr)) as *const [usize; 2];
        // SAFETY: the dynamic section of a loaded object, ended by a `DT_NULL` entry.
        let table = unsafe { string_table(entries, base) };
        *found = table.and_then(|(start, length)| {
            let flags = segment_of(start)?.p_flags;
            let protection = [
                (libc::PF_R, libc::PROT_READ),
                (libc::PF_W, libc::PROT_WRITE),
                (libc::PF_X, libc::PROT_EXEC),
            ];
            let protection =
                protection.iter().filter(|(f, _)| flags & f != 0).fold(0, |all, (_, p)| all | p);
            Some(Table { start: start as *mut u8, length, protection })
        });
    }
    1
}

/// Reads `DT_STRTAB` and `DT_STRSZ`: where the table is, and how long.
///
/// # Safety
/// `entry` is the dynamic section of an object loaded at `base`.
unsafe fn string_table(mut entry: *const [usize; 2], base: usize) -> Option<(usize, usize)> {
    const DT_NULL: usize = 0;
    const DT_STRTAB: usize = 5;
    const DT_STRSZ: usize = 10;
    let (mut start, mut length) = (None, None);
    loop {
        // SAFETY: the caller's promise; the loop ends at DT_NULL.
        let [tag, value] = unsafe { *entry };
        match tag {
            DT_NULL => break,
            DT_STRTAB => start = Some(value),
            DT_STRSZ => length = Some(value),
            _ => {}
        }
        // SAFETY: not yet at DT_NULL, so there is a next entry.
        entry = unsafe { entry.add(1) };
    }
    // glibc writes the absolute address into the section, other C libraries leave the relative one.
    let start = start.map(|s| if s < base { s + base } else { s })?;
    Some((start, length?))
}

#[expect(clippy::cast_possible_truncation, reason = "addresses of this process")]
fn to_usize(value: u64) -> usize {
    value as usize
}
