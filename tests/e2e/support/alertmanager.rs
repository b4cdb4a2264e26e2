//! A real Alertmanager.

use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use super::exporter::get;
use super::prometheus::{free_address, missing};
use super::until;

/// Debian's name of it.
const PROGRAM: &str = "prometheus-alertmanager";

/// Killed when dropped.
#[derive(Debug)]
pub(crate) struct Alertmanager {
    child: Child,
    pub(crate) address: SocketAddr,
    directory: TempDir,
}

impl Alertmanager {
    pub(crate) fn configured(config: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name).display().to_string();
        std::fs::write(path("alertmanager.yml"), config).unwrap();
        let address = free_address();
        let child = Command::new(PROGRAM)
            .arg(format!("--config.file={}", path("alertmanager.yml")))
            .arg(format!("--storage.path={}", path("data")))
            .arg(format!("--web.listen-address={address}"))
            .arg("--cluster.listen-address=")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(path("log")).unwrap())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", missing(PROGRAM)));
        let alertmanager = Self { child, address, directory };
        until(
            "Alertmanager",
            || {
                TcpStream::connect_timeout(&address, Duration::from_secs(1)).ok()?;
                (get(address, "/-/ready", &[]).status == 200).then_some(())
            },
            || alertmanager.log(),
        );
        alertmanager
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("log")).unwrap()
    }

    /// The groups of alerts that would be told, those left out that another one keeps back.
    pub(crate) fn groups(&self) -> Vec<Value> {
        let answer = get(self.address, "/api/v2/alerts/groups?inhibited=false&active=true", &[]);
        serde_json::from_str(&answer.body).unwrap_or_else(|_| panic!("{}", answer.body))
    }
}

impl Drop for Alertmanager {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
