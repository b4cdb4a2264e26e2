//! A server to talk to, and a client that shows every byte.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use bytes::Bytes;
use nvml_exporter::exposition::page::{Body, Page};
use nvml_exporter::exposition::{Encoding, Format};
use nvml_exporter::http::{self, App, Limits, Listeners, Observe, PageStore, Refusal, Status};
use tokio::sync::oneshot;

/// After this long a test has hung.
pub(crate) const HUNG: Duration = Duration::from_secs(20);

/// A server on its own runtime; dropped, it shuts down and panics if it does not end.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub(crate) fn start(app: App) -> Self {
        Self::on(http::bind(&["127.0.0.1:0"]).unwrap(), app)
    }

    pub(crate) fn on(listeners: Listeners, app: App) -> Self {
        let address = listeners.addresses()[0];
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()
                .unwrap();
            let shutdown = async { stopped.await.unwrap_or_default() };
            runtime.block_on(http::serve(listeners, app, shutdown)).unwrap();
        });
        Self { address, stop: Some(stop), thread: Some(thread) }
    }

    pub(crate) fn stop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
    }

    pub(crate) fn wait(&mut self) {
        until(|| self.thread.as_ref().is_none_or(JoinHandle::is_finished));
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(HUNG)).unwrap();
        stream.set_write_timeout(Some(HUNG)).unwrap();
        stream
    }

    /// One request on a connection of its own; `head` is what follows the method.
    pub(crate) fn get(&self, path: &str, headers: &[&str]) -> Answer {
        self.ask("GET", path, headers)
    }

    pub(crate) fn ask(&self, method: &str, path: &str, headers: &[&str]) -> Answer {
        let mut stream = self.connect();
        stream.write_all(request(method, path, headers).as_bytes()).unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        Answer::parse(&bytes)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
        if self.thread.is_some() && !std::thread::panicking() {
            self.wait();
        }
    }
}

/// The bytes of a request that asks for the connection to be closed after it.
pub(crate) fn request(method: &str, path: &str, headers: &[&str]) -> String {
    let mut text = format!("{method} {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n");
    for header in headers {
        text.push_str(header);
        text.push_str("\r\n");
    }
    text + "\r\n"
}

/// A response, taken apart.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn parse(bytes: &[u8]) -> Self {
        let end = bytes.windows(4).position(|w| w == b"\r\n\r\n").expect("no end of head");
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let mut lines = head.split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers = lines
            .map(|line| line.split_once(": ").unwrap())
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        Self { status, headers, body: bytes[end + 4..].to_vec() }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(n, _)| n == name);
        let value = found.next().map(|(_, value)| value.as_str());
        assert!(found.next().is_none(), "header {name} is there twice");
        value
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

/// A page whose text is `text`.
pub(crate) fn page(text: impl Into<Bytes>) -> Page {
    let body = Body::new;
    Page { text: body(text.into()), openmetrics: None }
}

/// An app with one pass behind it and `page` to serve.
pub(crate) fn app(page: Page, limits: Limits) -> App {
    let pages = PageStore::default();
    pages.publish(page);
    let status = Status { last_pass: Some(Instant::now()), passes: 1, ..Status::default() };
    App::new(pages, Arc::new(ArcSwap::from_pointee(status)), limits)
}

/// Remembers what the server says it did.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    refusals: Mutex<Vec<Refusal>>,
    scrapes: Mutex<Vec<(Format, Encoding)>>,
}

impl Observe for Recorder {
    fn scraped(&self, format: Format, encoding: Encoding) {
        self.scrapes.lock().unwrap().push((format, encoding));
    }

    fn refused(&self, why: Refusal) {
        self.refusals.lock().unwrap().push(why);
    }
}

impl Recorder {
    pub(crate) fn scrapes(&self) -> Vec<(Format, Encoding)> {
        self.scrapes.lock().unwrap().clone()
    }

    pub(crate) fn refusals(&self) -> Vec<Refusal> {
        self.refusals.lock().unwrap().clone()
    }

    pub(crate) fn wait_for(&self, why: Refusal) {
        until(|| self.refusals().contains(&why));
    }
}

/// Waits for a condition that has to come true.
pub(crate) fn until(condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < HUNG, "what was waited for does not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A server over `page` that tells the recorder.
pub(crate) fn recorded(page: Page, limits: Limits) -> (Server, Arc<Recorder>) {
    let recorder = Arc::new(Recorder::default());
    let mut app = app(page, limits);
    app.observer = recorder.clone();
    (Server::start(app), recorder)
}

/// Reads until the server closes or resets the connection.
pub(crate) fn drain(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
            unreachable!("the server keeps the connection open")
        }
        _ => bytes,
    }
}
