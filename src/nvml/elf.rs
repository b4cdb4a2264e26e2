//! Whether a library's file is there as a whole.
//!
//! The dynamic linker maps a file and trusts its headers: of one that is still being copied, as a
//! driver container does while the exporter waits for it, the missing end kills the process.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// Size of a 64-bit ELF header and of a program header.
const HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;

/// Offsets in the header: of the program headers' place, their number, and of the section
/// headers' place, their size and number.
const E_PHOFF: usize = 32;
const E_PHNUM: usize = 56;
const E_SHOFF: usize = 40;
const E_SHENTSIZE: usize = 58;
const E_SHNUM: usize = 60;

/// Offsets in a program header.
const P_OFFSET: usize = 8;
const P_FILESZ: usize = 32;

/// Whether the file is shorter than its own headers say. What is no 64-bit little-endian ELF file
/// is left for the dynamic linker to refuse.
pub(super) fn is_cut_off(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| cut_off(&file).unwrap_or(false))
}

fn cut_off(file: &File) -> Option<bool> {
    let length = file.metadata().ok().filter(std::fs::Metadata::is_file)?.len();
    let mut header = [0; HEADER];
    file.read_exact_at(&mut header, 0).ok()?;
    if header[..6] != *b"\x7fELF\x02\x01" {
        return None;
    }
    let sections = u64::from(short(&header, E_SHENTSIZE)?) * u64::from(short(&header, E_SHNUM)?);
    if long(&header, E_SHOFF)?.checked_add(sections)? > length {
        return Some(true);
    }
    let mut place = long(&header, E_PHOFF)?;
    for _ in 0..short(&header, E_PHNUM)? {
        let mut program = [0; PROGRAM_HEADER];
        if file.read_exact_at(&mut program, place).is_err() {
            return Some(true);
        }
        if long(&program, P_OFFSET)?.checked_add(long(&program, P_FILESZ)?)? > length {
            return Some(true);
        }
        place += PROGRAM_HEADER as u64;
    }
    Some(false)
}

fn short(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2)?.try_into().ok().map(u16::from_le_bytes)
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::is_cut_off;

    #[test]
    fn a_library_that_is_still_being_copied_is_cut_off() {
        let whole = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        for (length, expected) in [
            (whole.len(), false),
            (whole.len() - 1, true),
            (whole.len() / 2, true),
            (5000, true),
            (10, false),
            (0, false),
        ] {
            std::fs::write(file.path(), &whole[..length]).unwrap();
            assert_eq!(is_cut_off(file.path()), expected, "{length} of {} bytes", whole.len());
        }
    }
}
