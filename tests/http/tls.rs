//! TLS from the web configuration file.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use hyper::body::Body as _;
use hyper_util::rt::{TokioExecutor, TokioIo};
use nvml_exporter::http::{Limits, Refusal};
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ProtocolVersion;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::version::{TLS12, TLS13};

use crate::pki::{Ca, Client, Web};
use crate::support::{Recorder, Server, app, drain, page, request, until};

/// Case 95.
#[test]
fn https_is_served_and_plain_http_turned_away() {
    let ca = Ca::new();
    let (server, _, recorder) = Web::with_tls(&ca, "").serve(Limits::default());
    for version in [&TLS12, &TLS13] {
        let answer = Client::trusting(&ca).only(version).get(&server, "/metrics", &[]).unwrap();
        assert_eq!((answer.status, answer.text()), (200, "a 1\n"));
    }
    for method in ["GET", "HEAD", "POST"] {
        let mut plain = server.connect();
        plain.write_all(request(method, "/metrics", &[]).as_bytes()).unwrap();
        let go = "HTTP/1.0 400 Bad Request\r\n\r\n\
            Client sent an HTTP request to an HTTPS server.\n";
        assert_eq!(String::from_utf8(drain(&mut plain)).unwrap(), go, "{method}");
    }
    let mut noise = server.connect();
    noise.write_all(b"\0\0\0\0").unwrap();
    assert!(drain(&mut noise).is_empty());
    drop(server.connect());
    until(|| recorder.refusals().len() == 4);
    assert_eq!(recorder.refusals(), [Refusal::Handshake; 4]);
}

#[test]
fn versions_are_bounded() {
    let ca = Ca::new();
    let cases = [("min_version: TLS13", &TLS13, &TLS12), ("max_version: TLS12", &TLS12, &TLS13)];
    for (yaml, spoken, refused) in cases {
        let (server, ..) = Web::with_tls(&ca, &format!("  {yaml}\n")).serve(Limits::default());
        let get = |version| Client::trusting(&ca).only(version).get(&server, "/", &[]);
        assert_eq!(get(spoken).unwrap().status, 200, "{yaml}");
        assert!(get(refused).is_err(), "{yaml}");
    }
}

#[test]
fn ciphers_and_curves_are_chosen() {
    let ca = Ca::new();
    let yaml = "  max_version: TLS12\n  curve_preferences: [CurveP384]\n  \
        cipher_suites: [TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, TLS_AES_128_GCM_SHA256]\n";
    let (server, ..) = Web::with_tls(&ca, yaml).serve(Limits::default());
    let stream = Client::trusting(&ca).connect(&server).unwrap();
    let suite = stream.conn.negotiated_cipher_suite().unwrap().suite();
    assert_eq!(format!("{suite:?}"), "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256");
    let group = stream.conn.negotiated_key_exchange_group().unwrap().name();
    assert_eq!(format!("{group:?}"), "secp384r1");
    assert_eq!(stream.conn.protocol_version(), Some(ProtocolVersion::TLSv1_2));
}

#[test]
fn http2_is_offered_unless_switched_off() {
    let ca = Ca::new();
    let mut client = Client::trusting(&ca);
    client.alpn = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let cases = [("", &b"h2"[..]), ("http_server_config:\n  http2: false\n", b"http/1.1")];
    for (yaml, chosen) in cases {
        let (server, ..) = Web::with_tls(&ca, yaml).serve(Limits::default());
        let stream = client.connect(&server).unwrap();
        assert_eq!(stream.conn.alpn_protocol(), Some(chosen), "{yaml}");
    }
}

type Sender = hyper::client::conn::http2::SendRequest<Body>;

async fn http2(ca: &Ca, server: &Server) -> (Sender, JoinHandle<hyper::Result<()>>) {
    let mut client = Client::trusting(ca);
    client.alpn = vec![b"h2".to_vec()];
    let tcp = tokio::net::TcpStream::connect(server.address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let tls = TlsConnector::from(client.config()).connect(name, tcp).await.unwrap();
    let io = TokioIo::new(tls);
    let (sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), io).await.unwrap();
    (sender, tokio::spawn(connection))
}

fn scrape() -> hyper::Request<Body> {
    hyper::Request::get("https://localhost/metrics").body(Body::empty()).unwrap()
}

/// More than HTTP/2's window at once, twice on one connection, idle longer than a request may
/// take to come.
#[tokio::test]
async fn http2_is_spoken() {
    let ca = Ca::new();
    let limits = Limits { read_timeout: Duration::from_secs(1), ..Limits::default() };
    let text = "a 1\n".repeat(100_000);
    let mut app = app(page(text.clone()), limits);
    app.web = Web::with_tls(&ca, "").load();
    let server = Server::start(app);
    let (mut sender, connection) = http2(&ca, &server).await;
    for _ in 0..2 {
        let response = sender.send_request(scrape()).await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.body().size_hint().exact(), Some(text.len() as u64));
        let body = axum::body::to_bytes(Body::new(response.into_body()), usize::MAX);
        assert_eq!(body.await.unwrap(), text.as_bytes());
        tokio::time::sleep(Duration::from_millis(1500)).await;
    }
    let mut large = scrape();
    *large.body_mut() = Body::from(vec![b'x'; 10_000]);
    assert_eq!(sender.send_request(large).await.unwrap().status(), 413);
    drop(sender);
    connection.await.unwrap().unwrap();
}

/// hyper's client takes 2 MiB of the page and then waits for us to read it.
#[tokio::test]
async fn http2_does_not_hide_a_reader_that_does_not_read() {
    let ca = Ca::new();
    let limits = Limits { write_timeout: Duration::from_millis(500), ..Limits::default() };
    let recorder = Arc::new(Recorder::default());
    let mut app = app(page("a 1\n".repeat(10_000_000)), limits);
    app.web = Web::with_tls(&ca, "").load();
    app.observer = recorder.clone();
    let server = Server::start(app);
    let (mut sender, connection) = http2(&ca, &server).await;
    let response = sender.send_request(scrape()).await.unwrap();
    tokio::task::spawn_blocking(move || recorder.wait_for(Refusal::SlowReader)).await.unwrap();
    let body = axum::body::to_bytes(Body::new(response.into_body()), usize::MAX);
    assert!(body.await.is_err());
    assert!(connection.await.unwrap().is_err());
}

#[test]
fn a_handshake_that_does_not_come_is_cut_off() {
    let ca = Ca::new();
    let limits = Limits { read_timeout: Duration::from_millis(200), ..Limits::default() };
    let (server, _, recorder) = Web::with_tls(&ca, "").serve(limits);
    let mut silent = server.connect();
    let mut half = server.connect();
    half.write_all(b"\x16\x03\x01").unwrap();
    assert_eq!((drain(&mut silent), drain(&mut half)), (vec![], vec![]));
    until(|| recorder.refusals().len() == 2);
    assert_eq!(recorder.refusals(), [Refusal::SlowRequest; 2]);
}

#[test]
fn certificates_rotate_without_a_restart() {
    let (old, new) = (Ca::new(), Ca::new());
    let web = Web::with_tls(&old, "");
    let (server, config, _) = web.serve(Limits::default());
    let trusts = |ca: &Ca| Client::trusting(ca).get(&server, "/", &[]).is_ok();
    assert_eq!((trusts(&old), trusts(&new)), (true, false));

    // Between the two writes key and certificate do not match: the old pair stays.
    let pair = new.issue(&["localhost"]);
    web.write("server.crt", &pair.cert);
    until(|| config.error().is_some());
    assert_eq!((trusts(&old), trusts(&new)), (true, false));
    web.write("server.key", &pair.key);
    until(|| trusts(&new));
    assert_eq!((trusts(&old), config.error()), (false, None));

    web.write("web.yml", "");
    until(|| config.error().is_some());
    assert!(config.error().unwrap().to_string().contains("without a restart"));
    assert!(trusts(&new));
}

#[test]
fn client_certificates() {
    let (server_ca, client_ca, stranger) = (Ca::new(), Ca::new(), Ca::new());
    // Policy, then: without a certificate, with one of the authority, with a stranger's.
    let cases = [
        ("RequestClientCert", false, [true, true, true]),
        ("RequireAnyClientCert", false, [false, true, true]),
        ("RequireClientCert", false, [false, true, true]),
        ("VerifyClientCertIfGiven", true, [true, true, false]),
        ("RequireAndVerifyClientCert", true, [false, true, false]),
    ];
    for (policy, with_ca, expected) in cases {
        let ca = if with_ca { "  client_ca_file: client.crt\n" } else { "" };
        let web = Web::with_tls(&server_ca, &format!("  client_auth_type: {policy}\n{ca}"));
        web.write("client.crt", &client_ca.pem());
        let (server, ..) = web.serve(Limits::default());
        for version in [&TLS12, &TLS13] {
            let client = || Client::trusting(&server_ca).only(version);
            let gets_in = |client: Client| client.get(&server, "/metrics", &[]).is_ok();
            let passed = [
                gets_in(client()),
                gets_in(client().with(client_ca.issue(&["prometheus"]))),
                gets_in(client().with(stranger.issue(&["prometheus"]))),
            ];
            assert_eq!(passed, expected, "{policy} {version:?}");
        }
    }
}

#[test]
fn client_names() {
    let ca = Ca::new();
    let web = Web::with_tls(
        &ca,
        "  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: client.crt\n  \
         client_allowed_sans: [prometheus.example, 192.0.2.1]\n",
    );
    web.write("client.crt", &ca.pem());
    let (server, ..) = web.serve(Limits::default());
    let cases = [
        ("prometheus.example", true),
        ("192.0.2.1", true),
        ("192.0.2.2", false),
        ("other.example", false),
        // Names are compared to the letter, as in exporter-toolkit.
        ("*.example", false),
    ];
    for (name, passes) in cases {
        let client = Client::trusting(&ca).with(ca.issue(&[name]));
        assert_eq!(client.get(&server, "/metrics", &[]).is_ok(), passes, "{name}");
    }
}

#[test]
fn wrong_files_are_start_up_errors() {
    let ca = Ca::new();
    let other = ca.issue(&["localhost"]);
    let cases = [
        ("  bogus: 1\n", "web configuration web.yml:4: unknown field `bogus`, expected one of"),
        ("  min_version: TLS10\n", "web.yml:4: min_version: TLS10 is not supported, TLS12"),
        ("  max_version: SSL3\n", "web.yml:4: max_version: \"SSL3\" is no TLS version"),
        (
            "  min_version: TLS13\n  max_version: TLS12\n",
            "web.yml:5: max_version is below min_version",
        ),
        (
            "  cipher_suites:\n    - TLS_RSA_WITH_AES_128_CBC_SHA\n",
            "web.yml:5: cipher_suites: TLS_RSA_WITH_AES_128_CBC_SHA is not supported (no CBC",
        ),
        ("  cipher_suites: [AES]\n", "web.yml:4: cipher_suites: \"AES\" is no cipher suite"),
        (
            "  curve_preferences: [CurveP521]\n",
            "web.yml:4: curve_preferences: CurveP521 is not supported, X25519, CurveP256 and",
        ),
        ("  client_auth_type: Always\n", "web.yml:4: client_auth_type: \"Always\" is none"),
        (
            "  client_auth_type: RequireAndVerifyClientCert\n",
            "web.yml:4: RequireAndVerifyClientCert needs client_ca or client_ca_file",
        ),
        (
            "  client_ca_file: server.crt\n",
            "web.yml:4: client_ca_file server.crt: needs a client_auth_type that asks for",
        ),
        (
            "  client_ca_file: none.crt\n  client_auth_type: RequireAndVerifyClientCert\n",
            "web.yml:4: client_ca_file none.crt: No such file or directory",
        ),
        ("  client_allowed_sans: [a]\n", "web.yml:4: client_allowed_sans needs a client_auth_type"),
        ("  cert: x\n", "web.yml:2: cert and cert_file exclude each other"),
    ];
    for (yaml, text) in cases {
        let error = Web::with_tls(&ca, yaml).error();
        assert!(error.contains(text), "{yaml}\n{error}\n{text}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
    let web = Web::with_tls(&ca, "");
    web.write("server.key", &other.key);
    assert!(web.error().contains("web.yml:3: key_file server.key: keys may not be consistent"));
    web.write("server.key", "nothing");
    assert!(web.error().contains("web.yml:3: key_file server.key: "), "{}", web.error());
    web.write("server.crt", "nothing");
    let none = "web configuration web.yml:2: cert_file server.crt: there is no certificate in it";
    assert_eq!(web.error(), none);
    let lone = Web::new("tls_server_config:\n  cert_file: web.yml\n");
    assert_eq!(lone.error(), "web configuration web.yml:2: missing one of key or key_file");
    let lone = Web::new("tls_server_config:\n  client_auth_type: RequestClientCert\n");
    assert_eq!(lone.error(), "web configuration web.yml:2: missing one of cert or cert_file");
}

#[test]
fn certificates_may_stand_in_the_file() {
    let ca = Ca::new();
    let pair = ca.issue(&["localhost"]);
    let block = |text: &str| text.trim_end().replace('\n', "\n    ");
    let (cert, key) = (block(&pair.cert), block(&pair.key));
    let web =
        Web::new(&format!("tls_server_config:\n  cert: |\n    {cert}\n  key: |\n    {key}\n"));
    let (server, ..) = web.serve(Limits::default());
    assert_eq!(Client::trusting(&ca).get(&server, "/health", &[]).unwrap().text(), "OK");

    let broken = pair.key.replace("PRIVATE KEY", "PUBLIC KEY");
    let broken = block(&broken);
    let yaml = format!("tls_server_config:\n  cert: |\n    {cert}\n  key: |\n    {broken}\n");
    let error = Web::new(&yaml).error();
    assert!(error.contains(": key: "), "{error}");
    assert!(!error.contains(&pair.key[60..80]), "{error}");
}
