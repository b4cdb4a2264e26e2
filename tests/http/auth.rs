//! Basic authentication, headers and rate limit from the web configuration file.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use nvml_exporter::http::{Limits, Refusal};

use crate::pki::{Ca, Client, Web};
use crate::support::{Answer, until};

fn users(list: &[(&str, &str)]) -> String {
    let mut yaml = "basic_auth_users:\n".to_owned();
    for (name, password) in list {
        let hash = bcrypt::hash(password, 4).unwrap();
        yaml = format!("{yaml}  {name}: {hash}\n");
    }
    yaml
}

fn basic(credentials: &str) -> String {
    format!("Authorization: Basic {}", STANDARD.encode(credentials))
}

fn assert_refused(answer: &Answer) {
    assert_eq!((answer.status, answer.text()), (401, "Unauthorized\n"));
    assert_eq!(answer.header("www-authenticate"), Some("Basic realm=\"nvml-exporter\""));
    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
}

/// Cases 94 and 96: every path is behind the password, pprof's too, which is not there.
#[test]
fn every_path_needs_the_password() {
    let web = Web::new(&users(&[("prometheus", "secret"), ("other", "word")]));
    let (server, _, recorder) = web.serve(Limits::default());
    let paths = ["/", "/metrics", "/health", "/livez", "/readyz", "/debug/pprof/", "/nothing"];
    for path in paths {
        assert_refused(&server.get(path, &[]));
        for wrong in ["prometheus:wrong", "nobody:secret", "prometheus:", ":", "prometheus:word"] {
            assert_refused(&server.get(path, &[&basic(wrong)]));
        }
        assert_refused(&server.get(path, &["Authorization: Bearer secret"]));
        assert_refused(&server.get(path, &["Authorization: Basic secret"]));
    }
    assert_eq!(recorder.refusals(), vec![Refusal::Unauthorized; paths.len() * 8]);
    assert_eq!(recorder.scrapes(), []);
    for right in ["prometheus:secret", "other:word"] {
        assert_eq!(server.get("/metrics", &[&basic(right)]).text(), "a 1\n");
        assert_eq!(server.get("/health", &[&basic(right)]).text(), "OK");
        assert_eq!(server.get("/debug/pprof/", &[&basic(right)]).status, 404);
    }
}

/// Case 96, with TLS.
#[test]
fn passwords_work_over_tls() {
    let ca = Ca::new();
    let web = Web::with_tls(&ca, &users(&[("a", "b")]));
    let (server, ..) = web.serve(Limits::default());
    let client = Client::trusting(&ca);
    assert_refused(&client.get(&server, "/metrics", &[]).unwrap());
    assert_eq!(client.get(&server, "/metrics", &[&basic("a:b")]).unwrap().text(), "a 1\n");
}

#[test]
fn users_change_without_a_restart() {
    let web = Web::new(&users(&[("a", "old")]));
    let (server, config, _) = web.serve(Limits::default());
    let status = |credentials: &str| server.get("/metrics", &[&basic(credentials)]).status;
    assert_eq!((status("a:old"), status("a:new")), (200, 401));
    web.write("web.yml", "basic_auth_users: {a: plain}\n");
    until(|| config.error().is_some());
    assert_eq!(config.error().unwrap().line, Some(1));
    assert_eq!(status("a:old"), 200);
    web.write("web.yml", &users(&[("a", "new")]));
    until(|| status("a:new") == 200);
    assert_eq!((status("a:old"), config.error()), (401, None));
}

#[test]
fn headers_are_added_to_every_answer() {
    let headers = "http_server_config:\n  headers:\n    X-Frame-Options: deny\n    \
        Strict-Transport-Security: max-age=1\n    Content-Security-Policy: default-src 'self'\n";
    let web = Web::new(&format!("{headers}{}", users(&[("a", "b")])));
    let (server, ..) = web.serve(Limits::default());
    for answer in [server.get("/", &[&basic("a:b")]), server.get("/metrics", &[])] {
        assert_eq!(answer.header("x-frame-options"), Some("deny"));
        assert_eq!(answer.header("strict-transport-security"), Some("max-age=1"));
        assert_eq!(answer.header("content-security-policy"), Some("default-src 'self'"));
    }
}

#[test]
fn requests_over_the_rate_get_429() {
    let web = Web::new("rate_limit: {interval: 1h, burst: 2}\n");
    let (server, _, recorder) = web.serve(Limits::default());
    let statuses = [(); 4].map(|()| server.get("/metrics", &[]).status);
    assert_eq!(statuses, [200, 200, 429, 429]);
    assert_eq!(server.get("/", &[]).text(), "Too Many Requests\n");
    assert_eq!(recorder.refusals(), [Refusal::RateLimit; 3]);
}
