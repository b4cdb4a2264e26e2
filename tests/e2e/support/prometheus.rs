//! A real Prometheus, and the tools that come with it.

use std::io::Write as _;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use super::exporter::get;
use super::until;

/// How a program of another package is missed.
pub(crate) fn missing(program: &str) -> String {
    format!("{program} is not there; `cargo xtask test` installs what the tests need")
}

/// A Prometheus that scrapes exporters; killed when dropped.
#[derive(Debug)]
pub(crate) struct Prometheus {
    child: Child,
    address: SocketAddr,
    directory: TempDir,
}

impl Prometheus {
    /// Starts one that scrapes these addresses as fast as the exporter makes passes.
    pub(crate) fn start(targets: &[SocketAddr]) -> Self {
        let targets: Vec<String> = targets.iter().map(|target| format!("'{target}'")).collect();
        let config = format!(
            "global: {{scrape_interval: 3s, scrape_timeout: 3s}}\n\
             scrape_configs:\n\
             - job_name: nvml-exporter\n\
             \x20 static_configs: [{{targets: [{}]}}]\n",
            targets.join(", ")
        );
        Self::configured(&config, &[])
    }

    /// Starts one with this configuration, which finds these files beside it.
    pub(crate) fn configured(config: &str, files: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name).display().to_string();
        for (name, content) in [("prometheus.yml", config)].iter().chain(files) {
            std::fs::write(path(name), content).unwrap();
        }
        let address = free_address();
        let child = Command::new("prometheus")
            .arg(format!("--config.file={}", path("prometheus.yml")))
            .arg(format!("--storage.tsdb.path={}", path("data")))
            .arg(format!("--web.listen-address={address}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(path("log")).unwrap())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", missing("prometheus")));
        let prometheus = Self { child, address, directory };
        until(
            "Prometheus",
            || {
                TcpStream::connect_timeout(&address, Duration::from_secs(1)).ok()?;
                (get(address, "/-/ready", &[]).status == 200).then_some(())
            },
            || prometheus.log(),
        );
        prometheus
    }

    /// Its log.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("log")).unwrap()
    }

    /// The log's lines that are not of level info.
    pub(crate) fn complaints(&self) -> Vec<String> {
        self.log().lines().filter(|line| !line.contains("level=info")).map(str::to_owned).collect()
    }

    fn api(&self, path: &str) -> Value {
        let answer = get(self.address, path, &[]);
        serde_json::from_str(&answer.body).unwrap_or_else(|_| panic!("{path}: {}", answer.body))
    }

    /// The labels of the series that match a selector now.
    pub(crate) fn series(&self, selector: &str) -> Vec<Value> {
        let answer = self.api(&format!("/api/v1/series?match[]={}", escaped(selector)));
        answer["data"].as_array().unwrap_or_else(|| panic!("{selector}: {answer}")).clone()
    }

    /// The result of an instant query: labels and value.
    pub(crate) fn query(&self, query: &str) -> Vec<(Value, f64)> {
        self.asked(query).unwrap_or_default()
    }

    /// The same, or what Prometheus says against the query.
    pub(crate) fn asked(&self, query: &str) -> Result<Vec<(Value, f64)>, String> {
        let answer = self.api(&format!("/api/v1/query?query={}", escaped(query)));
        let Some(result) = answer["data"]["result"].as_array() else {
            return Err(format!("{}: {query}", answer["error"]));
        };
        let value = |one: &Value| one["value"][1].as_str().unwrap().parse().unwrap();
        Ok(result.iter().map(|one| (one["metric"].clone(), value(one))).collect())
    }

    /// The result of a range query as Prometheus gives it: from `start` to `end` of Unix time, a
    /// value each `step` seconds.
    pub(crate) fn range(&self, query: &str, (start, end, step): (f64, f64, u32)) -> Value {
        let query = escaped(query);
        let path = format!("/api/v1/query_range?start={start}&end={end}&step={step}&query={query}");
        let answer = self.api(&path);
        assert_eq!(answer["status"], "success", "{query}: {answer}");
        answer["data"]["result"].clone()
    }

    /// The single number that a query gives, if it gives one.
    pub(crate) fn number(&self, query: &str) -> Option<f64> {
        let result = self.query(query);
        assert!(result.len() < 2, "{query}: {result:?}");
        result.first().map(|(_, value)| *value)
    }

    /// The states of the targets.
    pub(crate) fn targets(&self) -> Vec<Value> {
        self.api("/api/v1/targets")["data"]["activeTargets"].as_array().unwrap().clone()
    }

    /// How often every target was scraped.
    pub(crate) fn scrapes(&self) -> f64 {
        self.number("min(count_over_time(up[1h]))").unwrap_or_default()
    }

    /// Waits until every target was scraped so often.
    pub(crate) fn until_scraped(&self, times: f64) {
        until(
            "scrapes",
            || (self.scrapes() >= times).then_some(()),
            || format!("{:?}\n{}", self.targets(), self.log()),
        );
    }

    /// Every scrape so far went well, and none was complained of.
    pub(crate) fn assert_content(&self) {
        assert_eq!(self.number("min(min_over_time(up[1h]))"), Some(1.0), "{:?}", self.targets());
        for target in self.targets() {
            assert_eq!((&target["health"], &target["lastError"]), (&"up".into(), &"".into()));
        }
        assert_eq!(self.complaints(), Vec::<String>::new());
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A query as a part of an address.
fn escaped(query: &str) -> String {
    query
        .bytes()
        .map(|byte| match byte {
            byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
            byte => format!("%{byte:02X}"),
        })
        .collect()
}

/// An address on loopback that is free now; Prometheus does not say which port it got.
pub(crate) fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// The findings of `promtool check metrics`: family and message, each once.
pub(crate) fn promtool_findings(page: &str) -> std::collections::BTreeSet<(String, String)> {
    let mut child = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{}: {error}", missing("promtool")));
    let mut stdin = child.stdin.take().unwrap();
    let page = page.to_owned();
    let writer = std::thread::spawn(move || stdin.write_all(page.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    // 3 says that there are findings, 1 that the page cannot be read.
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(matches!(output.status.code(), Some(0 | 3)), "{text}");
    text.lines()
        .filter(|line| !line.is_empty())
        .map(|line| line.split_once(' ').unwrap_or_else(|| panic!("{line}")))
        .map(|(name, message)| (name.to_owned(), message.to_owned()))
        .collect()
}
