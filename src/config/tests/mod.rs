//! Tables of command lines and environments, and what must come of them.

mod dcgm;
mod docs;
mod duration;
mod flags;
mod own;
mod selector;
mod yaml;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use super::{Config, Machine, Stop, load};

/// A machine of which all is known.
#[derive(Debug, Default)]
pub(super) struct Imagined {
    environment: BTreeMap<String, String>,
    files: BTreeMap<String, String>,
    nameless: bool,
}

impl Machine for Imagined {
    fn environment(&self, name: &str) -> Option<String> {
        self.environment.get(name).cloned()
    }

    fn host_name(&self) -> Result<String, String> {
        if self.nameless { Err("it is empty".to_owned()) } else { Ok("box".to_owned()) }
    }

    fn read(&self, path: &Path) -> io::Result<String> {
        let text = path.to_str().and_then(|path| self.files.get(path));
        text.cloned().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }

    fn exists(&self, path: &Path) -> bool {
        path.to_str().is_some_and(|path| self.files.contains_key(path))
    }
}

/// A machine whose environment is given as `NAME=value` words.
pub(super) fn machine(environment: &str) -> Imagined {
    let pairs = environment.split_whitespace().map(|pair| pair.split_once('=').unwrap());
    Imagined {
        environment: pairs.map(|(name, text)| (name.to_owned(), text.to_owned())).collect(),
        ..Imagined::default()
    }
}

impl Imagined {
    /// The same machine with one more file.
    pub(super) fn with(mut self, path: &str, text: &str) -> Self {
        self.files.insert(path.to_owned(), text.to_owned());
        self
    }

    /// What comes of a command line, given as words.
    pub(super) fn load(&self, words: &str) -> Result<Config, Stop> {
        let argv = std::iter::once("nvml-exporter").chain(words.split_whitespace());
        load(argv, self)
    }

    /// The configuration that must come of it.
    pub(super) fn config(&self, words: &str) -> Config {
        match self.load(words) {
            Ok(config) => config,
            Err(stop) => panic!("{words}: {stop}"),
        }
    }

    /// The mistakes that must be found, one a line.
    pub(super) fn mistakes(&self, words: &str) -> String {
        match self.load(words) {
            Ok(_) => panic!("{words}: accepted"),
            Err(stop) => {
                assert_eq!(stop.exit_code(), 1, "{words}");
                stop.to_string()
            }
        }
    }
}

/// The configuration that must come of a command line and an environment.
pub(super) fn config(words: &str, environment: &str) -> Config {
    machine(environment).config(words)
}

/// The mistakes that must be found, one a line.
pub(super) fn mistakes(words: &str, environment: &str) -> String {
    machine(environment).mistakes(words)
}
