//! What each path answers.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nvml_exporter::exposition::page::Body;
use nvml_exporter::exposition::{Encoding, Format};
use nvml_exporter::http::{DeviceLine, Limits, Status};

use crate::support::{Server, app, page};

#[test]
fn metrics_hands_out_the_page() {
    let server = Server::start(app(page("a 1\n"), Limits::default()));
    let answer = server.get("/metrics", &[]);
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    assert_eq!(answer.header("content-length"), Some("4"));
    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(answer.text(), "a 1\n");
}

/// Case 92.
#[test]
fn health_says_what_dcgm_exporter_says() {
    let app = app(page("a 1\n"), Limits::default());
    let (pages, status) = (app.pages.clone(), app.status.clone());
    let server = Server::start(app);
    let check = |body: &str, available: &str, reloading: Option<&str>| {
        let answer = server.get("/health", &[]);
        assert_eq!((answer.status, answer.text()), (200, body));
        assert_eq!(answer.header("x-registry-available"), Some(available));
        assert_eq!(answer.header("x-reload-in-progress"), reloading);
    };
    check("OK", "true", None);
    let mut reloading = Status::default();
    reloading.config.reloading = true;
    status.store(reloading.into());
    check("OK", "true", Some("true"));
    pages.publish(page(""));
    status.store(Status::default().into());
    check("OK - reload in progress", "false", Some("true"));
}

#[test]
fn head_is_get_without_the_body() {
    let server = Server::start(app(page("a 1\n"), Limits::default()));
    for path in ["/", "/metrics", "/health", "/livez", "/readyz"] {
        let (get, head) = (server.get(path, &[]), server.ask("HEAD", path, &[]));
        assert_eq!((head.status, head.body.len()), (200, 0), "{path}");
        assert_eq!(head.header("content-length").unwrap(), get.body.len().to_string(), "{path}");
        assert_eq!(head.header("content-type"), get.header("content-type"), "{path}");
    }
}

#[test]
fn other_methods_and_paths_are_refused() {
    let server = Server::start(app(page("a 1\n"), Limits::default()));
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"] {
        let answer = server.ask(method, "/metrics", &[]);
        assert_eq!((answer.status, answer.header("allow")), (405, Some("GET,HEAD")), "{method}");
    }
    for path in ["/metric", "/metrics/", "/-/reload", "/debug/pprof/"] {
        let answer = server.get(path, &[]);
        assert_eq!((answer.status, answer.text()), (404, "404 page not found\n"), "{path}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
    }
    assert_eq!(server.get("/metrics?collect[]=gpu", &[]).status, 200);
}

#[test]
fn encodings_are_made_once_for_each_page() {
    let text = "a 1\n".repeat(10_000);
    let app = app(page(text.clone()), Limits::default());
    let pages = app.pages.clone();
    let server = Server::start(app);
    let plain = server.get("/metrics", &["Accept-Encoding: br"]);
    assert_eq!((plain.text(), plain.header("content-encoding")), (text.as_str(), None));
    assert_eq!(plain.header("vary"), Some("Accept-Encoding"));
    assert!(!pages.wanted(Format::Text, Encoding::Gzip));

    let gzip = server.get("/metrics", &["Accept-Encoding: gzip"]);
    assert_eq!(gzip.header("content-encoding"), Some("gzip"));
    assert_eq!(gzip.header("content-length").unwrap(), gzip.body.len().to_string());
    let mut unpacked = String::new();
    flate2::read::GzDecoder::new(&gzip.body[..]).read_to_string(&mut unpacked).unwrap();
    assert_eq!(unpacked, text);
    assert!(pages.wanted(Format::Text, Encoding::Gzip));
    assert!(!pages.wanted(Format::OpenMetrics, Encoding::Gzip));
    let kept = pages.current().text.ready(Encoding::Gzip).unwrap();
    assert_eq!(gzip.body, kept);

    // What was asked for is made before the next page is there to be asked for.
    pages.publish(page(text.clone()));
    let next = pages.current();
    assert!(next.text.ready(Encoding::Gzip).is_some() && next.text.ready(Encoding::Zstd).is_none());

    let zstd = server.get("/metrics", &["Accept-Encoding: gzip;q=0.5, zstd"]);
    assert_eq!(zstd.header("content-encoding"), Some("zstd"));
    assert_eq!(zstd::stream::decode_all(&zstd.body[..]).unwrap(), text.as_bytes());

    let none = server.get("/metrics", &["Accept-Encoding: br, identity;q=0"]);
    assert_eq!(none.status, 406);
}

#[test]
fn openmetrics_only_when_on_and_asked_for() {
    const ASK: &str = "Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5";
    let both = || {
        let mut both = page("text 1\n");
        both.openmetrics = Some(Body::new("open 1\n# EOF\n".into()));
        both
    };
    let off = Server::start(app(both(), Limits::default()));
    assert_eq!(off.get("/metrics", &[ASK]).text(), "text 1\n");

    let mut app = app(both(), Limits::default());
    app.openmetrics = true;
    let on = Server::start(app);
    let answer = on.get("/metrics", &[ASK]);
    assert_eq!(answer.text(), "open 1\n# EOF\n");
    let open = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert_eq!(answer.header("content-type"), Some(open));
    assert_eq!(answer.header("vary"), Some("Accept, Accept-Encoding"));
    assert_eq!(on.get("/metrics", &[]).text(), "text 1\n");
}

#[test]
fn probes_say_why() {
    let mut app = app(page("a 1\n"), Limits::default());
    let stuck = Arc::new(AtomicBool::new(false));
    let says = stuck.clone();
    app.liveness = Arc::new(move || {
        let stuck = says.load(Ordering::Relaxed);
        if stuck { Err("the sampling loop has not moved for 60 s".to_owned()) } else { Ok(()) }
    });
    let status = app.status.clone();
    let server = Server::start(app);
    let check = |paths: &[&str], code: u16, text: &str| {
        for path in paths {
            let answer = server.get(path, &[]);
            assert_eq!((answer.status, answer.text()), (code, text), "{path}");
        }
    };
    let (live, ready) = (["/livez", "/healthz", "/-/healthy"], ["/readyz", "/-/ready"]);
    check(&live, 200, "ok\n");
    check(&ready, 200, "ready\n");
    stuck.store(true, Ordering::Relaxed);
    check(&live, 503, "the sampling loop has not moved for 60 s\n");
    status.store(Status::default().into());
    check(&ready, 503, "not ready: the first pass over the GPUs has not ended yet\n");
    check(&["/health"], 200, "OK");
}

#[test]
fn readiness_ends_with_a_pass_too_old() {
    let start = Instant::now();
    let bound = Duration::from_secs(90);
    let status = Status { last_pass: Some(start), stale_after: Some(bound), ..Status::default() };
    assert_eq!(status.not_ready(start + bound), None);
    let late = status.not_ready(start + bound + Duration::from_secs(5));
    let text = "the last pass over the GPUs ended 95 s ago, more than 90 s";
    assert_eq!(late.as_deref(), Some(text));
}

/// Case 93, as far as it concerns an exporter without pprof.
#[test]
fn landing_page_is_self_contained_and_escaped() {
    let app = app(page("a 1\n"), Limits::default());
    let device = DeviceLine {
        name: "GPU 0".into(),
        model: "<script>&\"".into(),
        uuid: "GPU-1".into(),
        up: false,
        state: "down: timeout".into(),
    };
    app.status.store(Arc::new(Status {
        version: "1.2.3".into(),
        simulated: Some("eight-h100".into()),
        devices: vec![device],
        ..Status::default()
    }));
    let server = Server::start(app);
    let answer = server.get("/", &[]);
    assert_eq!(answer.header("content-type"), Some("text/html; charset=utf-8"));
    assert!(answer.header("content-security-policy").unwrap().contains("default-src 'none'"));
    let html = answer.text();
    for part in [
        "<title>GPU Exporter",
        "1.2.3",
        "SIMULATED DATA: scenario “eight-h100”",
        "&lt;script&gt;&amp;&quot;",
        "down: timeout",
        "href=\"metrics\"",
        "href=\"health\"",
    ] {
        assert!(html.contains(part), "{part} is not in {html}");
    }
    for part in ["<script", "http://", "https://", "pprof"] {
        assert!(!html.contains(part), "{part} is in {html}");
    }
}
