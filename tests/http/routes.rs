//! What each path answers.

use nvml_exporter::http::{Limits, Status};

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
