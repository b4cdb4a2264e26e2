//! The exporter as the chart starts it answers what the chart's probes ask, and keeps others out
//! where the values say so.

use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::matrix::{Rendered, Row};
use crate::program::exporter;
use crate::support::{CHART, knock, objects, said, template, text};

/// After this long a test has hung.
const HUNG: Duration = Duration::from_secs(60);

/// An exporter that serves; killed when dropped.
struct Server {
    child: Child,
    address: SocketAddr,
    _folder: TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn render(values: &str) -> Rendered {
    static NAMELESS: Row = Row { name: "served", values: "", env: &[], purposes: &[] };
    let output = template(CHART, values, &[]);
    assert!(output.status.success(), "{}", said(&output));
    let objects = objects(&String::from_utf8(output.stdout).unwrap());
    Rendered { row: &NAMELESS, objects }
}

fn serve(rendered: &Rendered) -> Server {
    let folder = TempDir::new().unwrap();
    let mut child = exporter(rendered, folder.path(), "serve")
        .env("DCGM_EXPORTER_LISTEN", "127.0.0.1:0")
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut log = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let mut seen = Vec::new();
    let address = log.by_ref().find_map(|line| {
        let address = line.split_once("address=").map(|(_, address)| address.trim().to_owned());
        seen.push(line);
        address
    });
    let Some(address) = address else { panic!("it does not serve:\n{}", seen.join("\n")) };
    // Its log must go on being read, or it would stop when the pipe is full.
    std::thread::spawn(move || log.for_each(drop));
    Server { child, address: address.parse().unwrap(), _folder: folder }
}

/// Asks as the kubelet does, until it is answered well.
fn probed(server: &Server, probe: &Value) {
    let start = Instant::now();
    if !probe["tcpSocket"].is_null() {
        assert_eq!(probe["tcpSocket"]["port"], "metrics");
        TcpStream::connect(server.address).unwrap();
        return;
    }
    let get = &probe["httpGet"];
    let scheme = text(&get["scheme"]).to_lowercase();
    let url = format!("{scheme}://{}{}", server.address, text(&get["path"]));
    loop {
        let status = knock(&url, None);
        if status == 200 {
            return;
        }
        // Not ready yet, and nothing else.
        assert_eq!(status, 503, "{url}");
        assert!(start.elapsed() < HUNG, "{url} stays {status}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A certificate for tests, as values.
fn certificate() -> String {
    let made = rcgen::generate_simple_self_signed(["nvml-exporter".to_owned()]).unwrap();
    let indent = |pem: String| pem.replace('\n', "\n    ");
    format!(
        "tlsServerConfig:\n  enabled: true\n  cert: |\n    {}\n  key: |\n    {}\n  ca: |\n    {}\n",
        indent(made.cert.pem()),
        indent(made.signing_key.serialize_pem()),
        indent(made.cert.pem()),
    )
}

fn password() -> String {
    format!("basicAuth:\n  users:\n    prometheus: {}\n", bcrypt::hash("secret", 4).unwrap())
}

#[test]
fn probes_are_answered() {
    let tls = certificate();
    let client = format!("{tls}  clientAuthType: RequireAndVerifyClientCert\n");
    for (values, handler, scheme) in [
        ("{}", "httpGet", "http"),
        (&tls, "httpGet", "https"),
        (&password(), "tcpSocket", "http"),
        (&format!("{tls}{}", password()), "tcpSocket", "https"),
        (&client, "tcpSocket", "https"),
    ] {
        let rendered = render(values);
        let server = serve(&rendered);
        let container = rendered.container();
        for (probe, path) in
            [("startupProbe", "/livez"), ("livenessProbe", "/livez"), ("readinessProbe", "/readyz")]
        {
            let probe = &container[probe];
            assert!(!probe[handler].is_null(), "{probe}");
            if handler == "httpGet" {
                assert_eq!(probe["httpGet"]["path"], path);
                assert_eq!(text(&probe["httpGet"]["scheme"]).to_lowercase(), scheme);
            }
            probed(&server, probe);
        }
    }
}

#[test]
fn passwords_and_certificates_keep_others_out() {
    let values = format!("{}{}", certificate(), password());
    let server = serve(&render(&values));
    let at = |scheme: &str| format!("{scheme}://{}/metrics", server.address);
    assert_eq!(knock(&at("https"), None), 401);
    assert_eq!(knock(&at("https"), Some("prometheus:wrong")), 401);
    assert_eq!(knock(&at("https"), Some("prometheus:secret")), 200);
    assert_ne!(knock(&at("http"), Some("prometheus:secret")), 200);

    let values = format!("{}  clientAuthType: RequireAndVerifyClientCert\n", certificate());
    let server = serve(&render(&values));
    assert_eq!(knock(&format!("https://{}/metrics", server.address), None), 0);
}

#[test]
fn a_probe_of_ones_own_stays_as_it_is() {
    let rendered = render(
        "{livenessProbe: {httpGet: {path: /health, port: 9400}, periodSeconds: 5}, \
         startupProbe: {failureThreshold: 3}}",
    );
    let container = rendered.container();
    let get = serde_json::json!({"path": "/health", "port": 9400});
    assert_eq!(container["livenessProbe"]["httpGet"], get);
    assert_eq!(container["livenessProbe"]["periodSeconds"], 5);
    assert_eq!(container["startupProbe"]["failureThreshold"], 3);
    assert_eq!(container["startupProbe"]["httpGet"]["path"], "/livez");
}
