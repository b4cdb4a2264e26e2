//! The exporter as a process.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, LazyLock, Mutex};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::{Call, Page, until};

const BINARY: &str = env!("CARGO_BIN_EXE_nvml-exporter");

/// The simulator's library beside the binary. Cargo builds the binary for these tests by itself,
/// but not a library of another package.
static SIMULATOR: LazyLock<PathBuf> = LazyLock::new(|| {
    let directory = Path::new(BINARY).parent().unwrap();
    let release = directory.file_name().is_some_and(|name| name == "release");
    let status = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--package", "nvml-simulator"])
        .args(release.then_some("--release"))
        .arg("--target-dir")
        .arg(directory.parent().unwrap())
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env_remove("RUSTFLAGS")
        .status()
        .unwrap();
    assert!(status.success(), "the simulator does not build");
    let library = directory.join("libnvml_simulator.so");
    assert!(library.exists(), "{} is not there", library.display());
    library
});

/// The simulator's library.
pub(crate) fn simulator() -> &'static Path {
    &SIMULATOR
}

/// An exporter that is to be started.
#[derive(Debug)]
pub(crate) struct Setup {
    args: Vec<String>,
    env: Vec<(String, String)>,
    directory: TempDir,
}

impl Setup {
    /// No arguments, and an environment of which only `PATH` and `NODE_NAME=node-a` are set. The
    /// simulator, if it is loaded, reads a control file and writes a trace.
    pub(crate) fn bare() -> Self {
        let _ = simulator();
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name).display().to_string();
        let env = [
            ("PATH".to_owned(), std::env::var("PATH").unwrap_or_default()),
            ("NODE_NAME".to_owned(), "node-a".to_owned()),
            ("NVML_SIM_CONTROL".to_owned(), path("control")),
            ("NVML_SIM_TRACE".to_owned(), path("trace")),
        ];
        Self { args: Vec::new(), env: env.into(), directory }
    }

    /// A listener on loopback at any port, passes as fast as they may be, and nothing of this
    /// machine's kernel log.
    pub(crate) fn new() -> Self {
        Self::bare()
            .args(["--address=127.0.0.1:0", "--collect-interval=100ms"])
            .env("NVML_EXPORTER_KERNEL_LOG", "none")
    }

    /// On the simulator.
    pub(crate) fn simulate(scenario: &str) -> Self {
        Self::new().args(["--simulate", scenario])
    }

    /// The scenario's clock stands still, so that all values do.
    pub(crate) fn frozen(self) -> Self {
        self.env("NVML_SIM_CLOCK", "frozen")
    }

    pub(crate) fn args<T: Into<String>>(mut self, args: impl IntoIterator<Item = T>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.env.retain(|(known, _)| known != name);
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn without_env(mut self, name: &str) -> Self {
        self.env.retain(|(known, _)| known != name);
        self
    }

    /// The path of the test's own directory.
    pub(crate) fn directory(&self) -> String {
        self.directory.path().display().to_string()
    }

    /// Writes a file into the test's own directory; its path.
    pub(crate) fn file(&self, name: &str, content: &str) -> String {
        let path = self.directory.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.display().to_string()
    }

    /// With a counters file of this content.
    pub(crate) fn counters(self, content: &str) -> Self {
        let path = self.file("counters.csv", content);
        self.args(["--collectors", &path])
    }

    /// With commands that the simulator obeys from its first call on.
    pub(crate) fn control(self, commands: &[&str]) -> Self {
        append(&self.directory.path().join("control"), commands);
        self
    }

    /// Starts it and waits until it listens.
    pub(crate) fn start(self) -> Exporter {
        let mut exporter = self.spawn();
        exporter.address =
            until("the address in the log", || listening(&exporter.log()).pop(), || exporter.log());
        exporter
    }

    /// Starts it and waits until its first pass is over.
    pub(crate) fn ready(self) -> Exporter {
        let exporter = self.start();
        exporter.until_ready();
        exporter
    }

    /// Runs it to its end: exit code, standard output, standard error.
    pub(crate) fn run(self) -> (i32, String, String) {
        let mut exporter = self.spawn();
        let status = exporter.wait();
        (status.code().unwrap_or(-1), exporter.output(), exporter.log())
    }

    pub(crate) fn spawn(self) -> Exporter {
        let mut child = Command::new(BINARY)
            .args(&self.args)
            .env_clear()
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .current_dir(self.directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (log, output) = (gather(child.stderr.take()), gather(child.stdout.take()));
        let address = SocketAddr::from(([0, 0, 0, 0], 0));
        Exporter { child, address, log, output, directory: self.directory }
    }
}

/// Lines that a thread gathers from a pipe.
#[derive(Debug, Default)]
struct Gathered {
    text: Arc<Mutex<String>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

fn gather(pipe: Option<impl std::io::Read + Send + 'static>) -> Gathered {
    let text = Arc::new(Mutex::new(String::new()));
    let sink = Arc::clone(&text);
    let thread = std::thread::spawn(move || {
        for line in BufReader::new(pipe.unwrap()).lines().map_while(Result::ok) {
            let mut text = sink.lock().unwrap();
            text.push_str(&line);
            text.push('\n');
        }
    });
    Gathered { text, thread: Some(thread) }
}

/// The addresses that the log names.
fn listening(log: &str) -> Vec<SocketAddr> {
    log.lines()
        .filter_map(|line| line.split_once("listening address="))
        .filter_map(|(_, address)| address.trim_matches('"').parse().ok())
        .collect()
}

/// A running exporter; killed when dropped.
#[derive(Debug)]
pub(crate) struct Exporter {
    child: Child,
    pub(crate) address: SocketAddr,
    log: Gathered,
    output: Gathered,
    directory: TempDir,
}

/// An HTTP response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: ureq::http::HeaderMap,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

impl Exporter {
    /// What it has written to standard error.
    pub(crate) fn log(&self) -> String {
        self.log.text.lock().unwrap().clone()
    }

    /// What it has written to standard output.
    pub(crate) fn output(&self) -> String {
        self.output.text.lock().unwrap().clone()
    }

    /// The path of a file in the test's own directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Replaces a file in the test's own directory.
    pub(crate) fn write(&self, name: &str, content: &str) {
        std::fs::write(self.path(name), content).unwrap();
    }

    /// Tells the simulator something.
    pub(crate) fn control(&self, commands: &[&str]) {
        append(&self.path("control"), commands);
    }

    /// The NVML calls so far.
    pub(crate) fn trace(&self) -> Vec<Call> {
        let text = std::fs::read_to_string(self.path("trace")).unwrap_or_default();
        // The last line may be half written.
        let complete = text.rfind('\n').map_or("", |end| &text[..end]);
        complete.lines().map(Call::parse).collect()
    }

    pub(crate) fn get(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        get(self.address, path, headers)
    }

    /// The page, which must be there and be well formed.
    pub(crate) fn scrape(&self) -> Page {
        let answer = self.get("/metrics", &[]);
        assert_eq!(answer.status, 200, "{}", answer.body);
        Page::parse(&answer.body).unwrap_or_else(|error| panic!("{error}\n{}", answer.body))
    }

    /// Scrapes until the page is as wanted.
    pub(crate) fn until(&self, what: &str, wanted: impl Fn(&Page) -> bool) -> Page {
        until(
            what,
            || Some(self.scrape()).filter(&wanted),
            || format!("{}\n{}", self.scrape().text, self.log()),
        )
    }

    /// Waits for the first pass to be over.
    pub(crate) fn until_ready(&self) -> Page {
        until(
            "a first pass",
            || (self.get("/readyz", &[]).status == 200).then_some(()),
            || self.log(),
        );
        self.scrape()
    }

    /// Waits until every GPU has been read so often that rates are there too.
    pub(crate) fn until_settled(&self) -> Page {
        self.until_ready();
        self.until_passes(3)
    }

    /// Waits until the GPUs have been read `more` times again.
    pub(crate) fn until_passes(&self, more: u32) -> Page {
        let passes = |page: &Page| page.sum("nvml_exporter_pass_duration_seconds_count");
        let page = self.scrape();
        let gpus = page.samples("nvml_exporter_device_up").count();
        let wanted = passes(&page) + f64::from(more) * gpus as f64;
        self.until("further passes", |page| passes(page) >= wanted)
    }

    pub(crate) fn until_log(&self, text: &str) {
        until(text, || self.log().contains(text).then_some(()), || self.log());
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// The names of its threads but those of the HTTP server's runtime, which come and go with
    /// whoever scrapes at the moment.
    pub(crate) fn threads(&self) -> Vec<String> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        let mut names: Vec<String> = tasks
            // A thread may end between being listed and being read.
            .filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")).ok())
            .map(|name| name.trim_end().to_owned())
            .filter(|name| name != "http")
            .collect();
        names.sort();
        names
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits for its end, until which both pipes have been read.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        let status =
            until("the end", || self.child.try_wait().unwrap(), || "it runs on".to_owned());
        for gathered in [&mut self.log, &mut self.output] {
            if let Some(thread) = gathered.thread.take() {
                thread.join().unwrap();
            }
        }
        status
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One request on a connection of its own.
pub(crate) fn get(address: SocketAddr, path: &str, headers: &[(&str, &str)]) -> Answer {
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .timeout_global(Some(super::HUNG))
        .build()
        .into();
    let mut request = agent.get(format!("http://{address}{path}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let mut response = request.call().unwrap();
    let body = response.body_mut().with_config().limit(64 << 20).read_to_string().unwrap();
    Answer { status: response.status().as_u16(), headers: response.headers().clone(), body }
}

/// Whole lines at once: the simulator reads a line when it is complete.
fn append(path: &Path, lines: &[&str]) {
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
    let text: String = lines.iter().flat_map(|line| [*line, "\n"]).collect();
    file.write_all(text.as_bytes()).unwrap();
}
