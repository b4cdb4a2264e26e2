//! The files that a web configuration is made of, and whether they have changed since.

use std::fmt::Display;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

use super::web_file::{Problem, Text};

/// Reads files and remembers their stamps. Each stamp is taken before the reading: a file that
/// changes in between is read once more, not once too few.
#[derive(Debug, Default)]
pub(super) struct Files {
    base: PathBuf,
    stamps: Vec<Stamp>,
}

/// What changes when a file does, through symbolic links too (Kubernetes swaps those).
#[derive(Debug, PartialEq, Eq)]
struct Stamp {
    path: PathBuf,
    /// Device, inode, size, modification and change time; `None` when there is no file.
    identity: Option<[i64; 7]>,
}

impl Stamp {
    fn of(path: &Path) -> Self {
        let identity = fs::metadata(path).ok().map(|m| {
            let signed = |number: u64| number.cast_signed();
            let (device, inode, size) = (signed(m.dev()), signed(m.ino()), signed(m.size()));
            [device, inode, size, m.mtime(), m.mtime_nsec(), m.ctime(), m.ctime_nsec()]
        });
        Self { path: path.to_owned(), identity }
    }
}

impl Files {
    /// Relative paths start where `file` lies.
    pub(super) fn beside(file: &Path) -> Self {
        let base = file.parent().unwrap_or(Path::new("")).to_owned();
        Self { base, stamps: Vec::new() }
    }

    pub(super) fn read(&mut self, path: &Path) -> io::Result<Vec<u8>> {
        self.stamps.push(Stamp::of(path));
        fs::read(path)
    }

    pub(super) fn have_changed(&self) -> bool {
        self.stamps.iter().any(|stamp| Stamp::of(&stamp.path) != *stamp)
    }

    /// A value that may stand in the configuration itself or in a file of its own.
    pub(super) fn inline_or_file(
        &mut self,
        key: &'static str,
        inline: Option<&Text>,
        file: Option<&Text>,
    ) -> Result<Option<Source>, Problem> {
        let given = |text: Option<&Text>| text.filter(|text| !text.value.is_empty()).cloned();
        match (given(inline), given(file)) {
            (None, None) => Ok(None),
            (Some(at), None) => {
                let bytes = at.value.clone().into_bytes();
                Ok(Some(Source { bytes, name: key.to_owned(), at }))
            }
            (None, Some(at)) => {
                let path = self.base.join(&at.value);
                let name = format!("{key}_file {}", path.display());
                match self.read(&path) {
                    Ok(bytes) => Ok(Some(Source { bytes, name, at })),
                    Err(error) => Err(Problem::at(&at, format!("{name}: {error}"))),
                }
            }
            (Some(_), Some(at)) => {
                Err(Problem::at(&at, format!("{key} and {key}_file exclude each other")))
            }
        }
    }
}

/// Bytes and where they came from. Not `Debug`: they may be a private key.
pub(super) struct Source {
    pub(super) bytes: Vec<u8>,
    name: String,
    at: Text,
}

impl Source {
    pub(super) fn problem(&self, error: impl Display) -> Problem {
        Problem::at(&self.at, format!("{}: {error}", self.name))
    }
}
