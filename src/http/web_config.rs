//! The web configuration in use: who may connect and how, replaced when its files change.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use arc_swap::{ArcSwap, ArcSwapOption};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use tokio_rustls::rustls::ServerConfig;

use super::app::Refusal;
use super::auth::Passwords;
use super::files::Files;
use super::rate_limit::{Bucket, Rate};
use super::tls;
use super::web_file::{Problem, WebFile};

/// What is wrong with a web configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct WebConfigError {
    /// The file.
    pub path: PathBuf,
    /// The line, where it is the YAML that is wrong.
    pub line: Option<u64>,
    /// In one line.
    pub problem: String,
}

impl fmt::Display for WebConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match self.line {
            Some(line) => write!(f, "web configuration {path}:{line}: {}", self.problem),
            None => write!(f, "web configuration {path}: {}", self.problem),
        }
    }
}

/// A web configuration: what its files last said.
pub struct WebConfig {
    path: Option<PathBuf>,
    current: ArcSwap<Loaded>,
    /// `None` without a file, and then there are no users either.
    passwords: Option<Passwords>,
    bucket: Bucket,
    /// Guards what the newest attempt read; held by whoever re-reads, never by a request.
    read: Mutex<Files>,
    error: ArcSwapOption<WebConfigError>,
}

/// What one state of the files says.
#[derive(Default)]
pub(super) struct Loaded {
    pub(super) tls: Option<Arc<ServerConfig>>,
    pub(super) users: BTreeMap<String, String>,
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    pub(super) rate: Option<Rate>,
}

impl WebConfig {
    /// Reads `path` and the files it names.
    pub fn load(path: &Path) -> Result<Self, WebConfigError> {
        let (files, loaded) = read(path);
        let no_random = |_| Problem { line: None, text: "no random numbers".to_owned() };
        let passwords = Passwords::new().map_err(no_random).map_err(|problem| at(path, problem))?;
        Ok(Self {
            path: Some(path.to_owned()),
            current: ArcSwap::from_pointee(loaded?),
            passwords: Some(passwords),
            read: Mutex::new(files),
            ..Self::plain()
        })
    }

    /// No file: plain HTTP for everyone.
    #[must_use]
    pub fn plain() -> Self {
        Self {
            path: None,
            current: ArcSwap::default(),
            passwords: None,
            bucket: Bucket::default(),
            read: Mutex::default(),
            error: ArcSwapOption::empty(),
        }
    }

    /// Whether connections are TLS. This is decided at the start: files that change it later
    /// are refused, or an emptied file would lay open what was encrypted.
    #[must_use]
    pub fn is_tls(&self) -> bool {
        self.current.load().tls.is_some()
    }

    /// Why the newest state of the files is not in use; `None` when it is.
    #[must_use]
    pub fn error(&self) -> Option<Arc<WebConfigError>> {
        self.error.load_full()
    }

    /// What holds now; one request or handshake sees one state.
    pub(super) fn now(&self) -> Arc<Loaded> {
        self.current.load_full()
    }

    /// Whether a request may pass.
    pub(super) async fn admit(&self, loaded: &Loaded, headers: &HeaderMap) -> Result<(), Refusal> {
        if loaded.rate.is_some_and(|rate| !self.bucket.allows(rate, Instant::now())) {
            return Err(Refusal::RateLimit);
        }
        if loaded.users.is_empty() {
            return Ok(());
        }
        match &self.passwords {
            Some(passwords) if passwords.accept(headers, &loaded.users).await => Ok(()),
            _ => Err(Refusal::Unauthorized),
        }
    }

    /// Re-reads the files if one has changed. What is wrong with them is logged once, and the
    /// configuration before stays in use. Blocks on the file system.
    pub fn refresh(&self) {
        let Some(path) = &self.path else { return };
        let mut files = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if !files.have_changed() {
            return;
        }
        let (newest, loaded) = read(path);
        *files = newest;
        let switched = |loaded: &Loaded| loaded.tls.is_some() != self.is_tls();
        let result = match loaded {
            Ok(loaded) if switched(&loaded) => {
                let text = "TLS cannot be switched on or off without a restart".to_owned();
                Err(at(path, Problem { line: None, text }))
            }
            other => other,
        };
        match result {
            Ok(loaded) => {
                tracing::info!(path = %path.display(), "web configuration re-read");
                self.current.store(Arc::new(loaded));
                self.error.store(None);
            }
            Err(error) => {
                tracing::error!(%error, "the web configuration before stays in use");
                self.error.store(Some(Arc::new(error)));
            }
        }
    }
}

impl fmt::Debug for WebConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebConfig").field("path", &self.path).finish_non_exhaustive()
    }
}

fn read(path: &Path) -> (Files, Result<Loaded, WebConfigError>) {
    let mut files = Files::beside(path);
    let loaded = interpret(path, &mut files).map_err(|problem| at(path, problem));
    (files, loaded)
}

fn interpret(path: &Path, files: &mut Files) -> Result<Loaded, Problem> {
    let unreadable = |text: String| Problem { line: None, text };
    let bytes = files.read(path).map_err(|error| unreadable(error.to_string()))?;
    let yaml = String::from_utf8(bytes).map_err(|_| unreadable("it is not UTF-8".to_owned()))?;
    let file = WebFile::parse(&yaml)?;
    let tls = match &file.tls_server_config {
        Some(section) => tls::config(section, file.http2(), files)?,
        None => None,
    };
    Ok(Loaded { tls, users: file.users()?, headers: file.headers()?, rate: file.rate()? })
}

fn at(path: &Path, problem: Problem) -> WebConfigError {
    WebConfigError { path: path.to_owned(), line: problem.line, problem: problem.text }
}
