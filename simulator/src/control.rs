//! The control file: commands that arrive while a client runs.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::fd::AsRawFd as _;

use crate::grammar::{self, Command};
use crate::note::complain;

/// A control file and how far it has been read. Nothing watches it: each API call looks whether it
/// has grown.
#[derive(Debug, Default)]
pub(crate) struct Control {
    path: Option<String>,
    file: Option<File>,
    read: u64,
    line: usize,
}

impl Control {
    /// A reader at the beginning of the file, which need not be there yet.
    pub(crate) fn new(path: Option<String>) -> Self {
        Self { path, ..Self::default() }
    }

    /// Whether there is a file to look at.
    pub(crate) fn has_file(&self) -> bool {
        self.path.is_some()
    }

    /// The commands of all lines that were completed since the last look.
    pub(crate) fn poll(&mut self) -> Vec<Command> {
        let Some(path) = &self.path else { return Vec::new() };
        if self.file.is_none() {
            self.file = File::open(path).ok();
        }
        let Some(file) = &mut self.file else { return Vec::new() };
        let length = length(file);
        if length < self.read {
            // Somebody wrote the file anew.
            (self.read, self.line) = (0, 0);
        }
        if length == self.read {
            return Vec::new();
        }
        let mut bytes = Vec::new();
        let read = file.seek(SeekFrom::Start(self.read)).and_then(|_| file.read_to_end(&mut bytes));
        if let Err(e) = read {
            complain(format_args!("cannot read {path}: {e}"));
            return Vec::new();
        }
        let Some(end) = bytes.iter().rposition(|b| *b == b'\n') else { return Vec::new() };
        let text = String::from_utf8_lossy(&bytes[..end]);
        let mut commands = Vec::new();
        for line in text.split('\n') {
            self.line += 1;
            match grammar::parse(line) {
                Ok(command) => commands.extend(command),
                Err(message) => complain(format_args!("{path}:{}: {message}", self.line)),
            }
        }
        self.read += end as u64 + 1;
        commands
    }
}

/// The length of an open file, by the cheapest call there is.
fn length(file: &File) -> u64 {
    let mut stat = std::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: an open descriptor, and room for the answer.
    let code = unsafe { libc::fstat(file.as_raw_fd(), stat.as_mut_ptr()) };
    if code != 0 {
        return 0;
    }
    // SAFETY: the call succeeded, so it filled the struct.
    u64::try_from(unsafe { stat.assume_init() }.st_size).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn only_complete_lines_count_and_each_once() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("control");
        let mut control = Control::new(Some(path.to_string_lossy().into_owned()));
        assert!(control.poll().is_empty(), "the file may be absent at first");
        let mut file = File::create(&path).unwrap();
        write!(file, "gpu 0 lost\nnonsense\ngpu 1 lo").unwrap();
        assert_eq!(control.poll().len(), 1);
        assert!(control.poll().is_empty());
        writeln!(file, "st").unwrap();
        assert_eq!(control.poll().len(), 1);
        assert!(control.poll().is_empty());
        std::fs::write(&path, "gpu 2 lost\n").unwrap();
        assert_eq!(control.poll().len(), 1, "a file that was written anew is read anew");
    }
}
