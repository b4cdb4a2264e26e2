//! Pages that change and servers that end, under load.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use nvml_exporter::http::Limits;

use crate::support::{Answer, HUNG, Server, app, page, request, until};

/// Case 99.
#[test]
fn every_answer_is_one_whole_page() {
    let of = |n: u32| page(format!("value {n}\n").repeat(2000));
    let app = app(of(0), Limits { scrapes: 64, ..Limits::default() });
    let pages = app.pages.clone();
    let server = Server::start(app);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let scrapers: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    for _ in 0..100 {
                        let answer = server.get("/metrics", &[]);
                        let first = answer.text().lines().next().unwrap();
                        assert_eq!(answer.text().lines().filter(|l| *l == first).count(), 2000);
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            for n in 0.. {
                if done.load(Ordering::Relaxed) {
                    break;
                }
                pages.publish(of(n));
            }
        });
        let ended = scrapers.into_iter().map(|s| s.join().is_ok()).collect::<Vec<_>>();
        done.store(true, Ordering::Relaxed);
        assert_eq!(ended, [true; 4]);
    });
}

#[test]
fn answers_under_way_are_finished() {
    let text = "a 1\n".repeat(10_000_000);
    let limits = Limits { shutdown_grace: HUNG, ..Limits::default() };
    let mut server = Server::start(app(page(text.clone()), limits));
    let mut idle = server.connect();
    let mut stream = server.connect();
    stream.write_all(request("GET", "/metrics", &[]).as_bytes()).unwrap();
    let mut bytes = vec![0; 4096];
    stream.read_exact(&mut bytes).unwrap();
    server.stop();
    // The idle connection ends at once, and with the listener closed nobody else gets in.
    assert_eq!(idle.read(&mut [0]).unwrap_or(0), 0);
    until(|| TcpStream::connect(server.address).is_err());
    stream.read_to_end(&mut bytes).unwrap();
    assert_eq!(Answer::parse(&bytes).body.len(), text.len());
    server.wait();
}

#[test]
fn stuck_clients_do_not_hold_up_the_end() {
    let limits = Limits {
        // Without the cut at the end of the grace time this would outlast the test.
        write_timeout: 10 * HUNG,
        read_timeout: 10 * HUNG,
        ..Limits::default()
    };
    let mut server = Server::start(app(page("a 1\n".repeat(10_000_000)), limits));
    let mut stuck = server.connect();
    stuck.write_all(request("GET", "/metrics", &[]).as_bytes()).unwrap();
    stuck.read_exact(&mut [0; 12]).unwrap();
    let mut half = server.connect();
    half.write_all(b"GET /metrics").unwrap();
    server.stop();
    server.wait();
}
