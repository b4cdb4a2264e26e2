//! What one client may take from the others.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::Duration;

use nvml_exporter::exposition::{Encoding, Format};
use nvml_exporter::http::{Limits, Refusal};

use crate::support::{Answer, Server, app, drain, page, recorded, request, until};

const SHORT: Duration = Duration::from_millis(200);

/// More than the kernel buffers between two sockets on loopback.
fn huge() -> Vec<u8> {
    b"dcgm 1\n".repeat(10_000_000)
}

/// Asks for the page and does not read the answer beyond its first bytes.
fn stuck(server: &Server) -> (TcpStream, String) {
    let mut stream = server.connect();
    stream.write_all(request("GET", "/metrics", &[]).as_bytes()).unwrap();
    let mut first = [0; 12];
    stream.read_exact(&mut first).unwrap();
    (stream, String::from_utf8(first.to_vec()).unwrap())
}

#[test]
fn a_request_that_trickles_in_is_cut_off() {
    let limits = Limits { read_timeout: SHORT, ..Limits::default() };
    let (server, recorder) = recorded(page("a 1\n"), limits);
    let mut silent = server.connect();
    let mut slow = server.connect();
    slow.write_all(b"GET /metrics HTTP/1.1\r\n").unwrap();
    let ended = thread::scope(|scope| {
        let mut trickle = slow.try_clone().unwrap();
        scope.spawn(move || {
            while trickle.write_all(b"X: 1\r\n").is_ok() {
                thread::sleep(Duration::from_millis(20));
            }
        });
        drain(&mut slow)
    });
    assert_eq!((ended, drain(&mut silent)), (vec![], vec![]));
    assert_eq!(recorder.refusals(), [Refusal::SlowRequest; 2]);
}

#[test]
fn an_idle_connection_outlives_the_read_timeout() {
    let limits = Limits { read_timeout: SHORT, ..Limits::default() };
    let (server, recorder) = recorded(page("a 1\n"), limits);
    let mut stream = server.connect();
    for _ in 0..3 {
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut bytes = vec![0; 512];
        let size = stream.read(&mut bytes).unwrap();
        assert_eq!(Answer::parse(&bytes[..size]).text(), "a 1\n");
        thread::sleep(2 * SHORT);
    }
    assert_eq!(recorder.refusals(), []);
    assert_eq!(recorder.scrapes(), [(Format::Text, Encoding::Identity); 3]);
}

#[test]
fn an_idle_connection_ends_without_complaint() {
    let limits = Limits { idle_timeout: SHORT, ..Limits::default() };
    let (server, recorder) = recorded(page("a 1\n"), limits);
    let mut stream = server.connect();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    assert_eq!(Answer::parse(&drain(&mut stream)).text(), "a 1\n");
    assert_eq!(recorder.refusals(), []);
}

#[test]
fn a_reader_that_does_not_read_is_cut_off() {
    let limits = Limits { write_timeout: SHORT, ..Limits::default() };
    let (server, recorder) = recorded(page(huge()), limits);
    let (mut stream, head) = stuck(&server);
    assert_eq!(head, "HTTP/1.1 200");
    recorder.wait_for(Refusal::SlowReader);
    assert!(drain(&mut stream).len() < huge().len());
}

#[test]
fn large_heads_get_431() {
    let server = Server::start(app(page("a 1\n"), Limits::default()));
    let long = format!("X-Long: {}", "x".repeat(20 * 1024));
    assert_eq!(server.get("/metrics", &[&long]).status, 431);
    assert_eq!(server.get("/metrics", &["X-Short: x"; 100]).status, 431);
    let path = format!("/metrics?{}", "x".repeat(20 * 1024));
    assert!(matches!(server.get(&path, &[]).status, 414 | 431));
}

#[test]
fn large_bodies_get_413() {
    let server = Server::start(app(page("a 1\n"), Limits::default()));
    for header in ["Content-Length: 1000000000", "Transfer-Encoding: chunked"] {
        assert_eq!(server.get("/metrics", &[header]).status, 413, "{header}");
    }
    assert_eq!(server.get("/metrics", &["Content-Length: 0"]).status, 200);
}

/// Case 101: a reader that is stuck counts until the write timeout, a page shared by all.
#[test]
fn of_twenty_scrapes_at_once_four_get_503() {
    let (server, recorder) = recorded(page(huge()), Limits::default());
    let admitted: Vec<_> = (0..16).map(|_| stuck(&server)).collect();
    assert!(admitted.iter().all(|(_, head)| head == "HTTP/1.1 200"));
    for _ in 0..4 {
        let answer = server.get("/metrics", &[]);
        assert_eq!(answer.status, 503);
        assert_eq!(answer.text(), "scrape concurrency limit reached\n");
    }
    assert_eq!(recorder.refusals(), [Refusal::Scrapes; 4]);
    assert_eq!(server.get("/health", &[]).text(), "OK");
    drop(admitted);
    until(|| server.ask("HEAD", "/metrics", &[]).status == 200);
}

#[test]
fn idle_connections_give_way() {
    let limits = Limits { connections: 8, ..Limits::default() };
    let (server, recorder) = recorded(page("a 1\n"), limits);
    let mut idle: Vec<_> = (0..100).map(|_| server.connect()).collect();
    assert_eq!(server.get("/metrics", &[]).text(), "a 1\n");
    assert!(recorder.refusals().iter().all(|why| *why == Refusal::Evicted));
    // The first to come is the first to go.
    assert!(drain(&mut idle[0]).is_empty());
}

#[test]
fn busy_connections_do_not_give_way() {
    let limits = Limits { connections: 2, ..Limits::default() };
    let (server, recorder) = recorded(page(huge()), limits);
    let busy = [stuck(&server), stuck(&server)];
    let mut third = server.connect();
    assert!(drain(&mut third).is_empty());
    recorder.wait_for(Refusal::Connections);
    drop(busy);
    until(|| {
        let mut stream = server.connect();
        let sent = stream.write_all(request("HEAD", "/metrics", &[]).as_bytes());
        sent.is_ok() && drain(&mut stream).starts_with(b"HTTP/1.1 200")
    });
}

/// Case 91.
#[test]
fn clients_that_leave_early_do_no_harm() {
    let server = Server::start(app(page(huge()), Limits::default()));
    for bytes in ["", "G", "GET /metrics HTTP/1.1\r\n", &request("GET", "/metrics", &[])] {
        for half in [false, true] {
            let mut stream = server.connect();
            stream.write_all(bytes.as_bytes()).unwrap();
            if half {
                stream.shutdown(Shutdown::Write).unwrap();
            }
        }
    }
    drop(stuck(&server));
    let answer = server.get("/metrics", &[]);
    assert_eq!((answer.status, answer.body.len()), (200, huge().len()));
}

#[test]
fn noise_gets_400_or_nothing() {
    let server = Server::start(app(page("a 1\n"), Limits::default()));
    for noise in [&b"\x16\x03\x01\x02\x00\x01"[..], b"\r\n\r\n\0\0\0\0", b"PRI * HTTP/2.0\r\n\r\n"]
    {
        let mut stream = server.connect();
        match stream.write_all(noise) {
            Ok(()) | Err(_) => stream.shutdown(Shutdown::Write).unwrap_or_default(),
        }
        let mut bytes = Vec::new();
        match stream.read_to_end(&mut bytes) {
            Ok(_) => assert!(bytes.is_empty() || bytes.starts_with(b"HTTP/1.1 400"), "{noise:?}"),
            Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
        }
    }
    assert_eq!(server.get("/metrics", &[]).status, 200);
}
