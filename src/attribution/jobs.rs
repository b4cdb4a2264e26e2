//! Jobs of a batch system, from the files that its prolog writes (`--hpc-job-mapping-dir`).
//!
//! A file is named after a GPU's index, for a MIG instance with `.` and the GPU instance id behind
//! it, and has a job on each line. dcgm-exporter reads the same files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use super::device_id::number;

/// Bytes that a file may have.
pub const FILE_BYTES: u64 = 64 * 1024;

/// Jobs that a file may name: each is a series of every metric of the device.
pub const FILE_JOBS: usize = 256;

/// Jobs by GPU index and, for a MIG device, GPU instance id.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Jobs(pub BTreeMap<(u32, Option<u32>), Vec<String>>);

impl Jobs {
    /// The jobs of a device, in the file's order.
    #[must_use]
    pub fn of(&self, gpu: u32, gpu_instance: Option<u32>) -> &[String] {
        self.0.get(&(gpu, gpu_instance)).map_or(&[], Vec::as_slice)
    }
}

/// Reads the directory again and again, and complains of each file once.
#[derive(Debug)]
pub struct JobReader {
    directory: PathBuf,
    /// What could not be read last time.
    failing: BTreeSet<PathBuf>,
}

#[derive(Debug, thiserror::Error)]
enum JobFileError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("it has more than {FILE_BYTES} bytes")]
    TooLong,
    #[error("it names more than {FILE_JOBS} jobs")]
    TooMany,
    #[error("it is not UTF-8")]
    NotText,
}

impl JobReader {
    /// A reader of this directory.
    #[must_use]
    pub fn new(directory: PathBuf) -> Self {
        Self { directory, failing: BTreeSet::new() }
    }

    /// What the files say now. What cannot be read says nothing: other files count all the same.
    pub fn read(&mut self) -> Jobs {
        let mut failed = BTreeSet::new();
        let mut jobs = Jobs::default();
        match entries(&self.directory) {
            Ok(found) => {
                for (device, path) in found {
                    match read_file(&path) {
                        Ok(Some(names)) => _ = jobs.0.insert(device, names),
                        Ok(None) => (),
                        Err(error) => {
                            if !self.failing.contains(&path) {
                                let file = path.display();
                                tracing::warn!(%file, %error, "cannot read a job file");
                            }
                            failed.insert(path);
                        }
                    }
                }
            }
            Err(error) => {
                if !self.failing.contains(&self.directory) {
                    let directory = self.directory.display();
                    tracing::warn!(
                        %directory, %error,
                        "no jobs: cannot read the directory of --hpc-job-mapping-dir"
                    );
                }
                failed.insert(self.directory.clone());
            }
        }
        self.failing = failed;
        jobs
    }
}

type Device = (u32, Option<u32>);

/// The directory's entries that are named after a device.
fn entries(directory: &Path) -> io::Result<Vec<(Device, PathBuf)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if let Some(device) = entry.file_name().to_str().and_then(device) {
            found.push((device, entry.path()));
        }
    }
    Ok(found)
}

/// `<index>` or `<index>.<GPU instance id>`.
fn device(name: &str) -> Option<Device> {
    match name.split_once('.') {
        None => Some((number(name)?, None)),
        Some((gpu, instance)) => Some((number(gpu)?, Some(number(instance)?))),
    }
}

/// The jobs that a file names, each once; `None` for a directory, and for a file that is gone.
fn read_file(path: &Path) -> Result<Option<Vec<String>>, JobFileError> {
    let gone = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    // Opening a pipe would wait for a writer.
    let is_file = match fs::metadata(path) {
        Ok(metadata) => metadata.is_file(),
        Err(error) if gone(&error) => false,
        Err(error) => return Err(error.into()),
    };
    if !is_file {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    match File::open(path) {
        Ok(file) => _ = file.take(FILE_BYTES + 1).read_to_end(&mut bytes)?,
        Err(error) if gone(&error) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    if bytes.len() as u64 > FILE_BYTES {
        return Err(JobFileError::TooLong);
    }
    let text = String::from_utf8(bytes).map_err(|_| JobFileError::NotText)?;
    let mut jobs: Vec<String> = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        if !jobs.iter().any(|job| job == line) {
            jobs.push(line.to_owned());
        }
        if jobs.len() > FILE_JOBS {
            return Err(JobFileError::TooMany);
        }
    }
    Ok(Some(jobs).filter(|jobs| !jobs.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(files: &[(&str, &str)]) -> Vec<String> {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(directory.path().join(name), text).unwrap();
        }
        shown(&JobReader::new(directory.path().to_owned()).read())
    }

    fn shown(jobs: &Jobs) -> Vec<String> {
        let line = |((gpu, instance), jobs): (&Device, &Vec<String>)| match instance {
            None => format!("{gpu}: {}", jobs.join(", ")),
            Some(instance) => format!("{gpu}.{instance}: {}", jobs.join(", ")),
        };
        jobs.0.iter().map(line).collect()
    }

    /// dcgm-exporter's cases 84, 85 and 86.
    #[test]
    fn each_line_is_a_job_of_the_device_that_the_file_is_named_after() {
        let found = read(&[("0", "job-1\n"), ("1", "job-2\r\njob 3"), ("3.0", "job-4\njob-4\n")]);
        assert_eq!(found, ["0: job-1", "1: job-2, job 3", "3.0: job-4"]);
    }

    /// dcgm-exporter's case 87.
    #[test]
    fn case_87_other_names_and_directories_are_ignored() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["1e5", "NaN", "+3", ".5", "5.", "1.2.3", "abc", "01", "99999999999", "-1"] {
            fs::write(directory.path().join(name), "job").unwrap();
        }
        fs::create_dir(directory.path().join("0")).unwrap();
        assert_eq!(JobReader::new(directory.path().to_owned()).read(), Jobs::default());
    }

    /// dcgm-exporter's case 88, where it has a label without a value.
    #[test]
    fn case_88_an_empty_line_is_no_job() {
        assert_eq!(
            read(&[("0", "\njob-1\n\n  \njob-2\n"), ("1", ""), ("2", "\n")]),
            ["0: job-1, job-2"]
        );
    }

    #[test]
    fn a_file_that_cannot_be_read_hides_no_other() {
        let many: Vec<String> = (0..=FILE_JOBS).map(|number| number.to_string()).collect();
        let long = "x".repeat(usize::try_from(FILE_BYTES).unwrap() + 1);
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::write(path("0"), many.join("\n")).unwrap();
        fs::write(path("1"), long).unwrap();
        fs::write(path("2"), [0xff, 0xfe]).unwrap();
        std::os::unix::fs::symlink(path("3"), path("3")).unwrap();
        fs::write(path("4"), "job-1").unwrap();
        let mut reader = JobReader::new(directory.path().to_owned());
        assert_eq!(shown(&reader.read()), ["4: job-1"]);
        let failing: Vec<PathBuf> = reader.failing.iter().cloned().collect();
        assert_eq!(failing, [path("0"), path("1"), path("2"), path("3")]);
        fs::write(path("0"), "job-2").unwrap();
        assert_eq!(shown(&reader.read()), ["0: job-2", "4: job-1"]);
        assert_eq!(reader.failing.len(), 3);
    }

    #[test]
    fn a_directory_may_come_later() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("jobs");
        let mut reader = JobReader::new(path.clone());
        assert_eq!(reader.read(), Jobs::default());
        assert_eq!(reader.failing.len(), 1);
        fs::create_dir(&path).unwrap();
        fs::write(path.join("0"), "job-1").unwrap();
        assert_eq!(shown(&reader.read()), ["0: job-1"]);
        assert!(reader.failing.is_empty());
    }
}
