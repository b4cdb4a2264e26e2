//! The host label's value.

use std::net::IpAddr;

use super::args::Args;
use super::findings::Findings;
use super::machine::Machine;
use super::settings::HostLabel;

/// The host label: dcgm-exporter's rules, with the loopback rule of 4.8.3 and later.
///
/// In Kubernetes the node; else the host part of a remote engine, if one was named; else the node,
/// else the operating system's name.
pub(super) fn label(
    args: &Args,
    kubernetes: bool,
    machine: &dyn Machine,
    found: &mut Findings,
) -> HostLabel {
    let name = found.choice(&args.metrics.host_label);
    if found.switch(&args.metrics.no_hostname) {
        return HostLabel { name, value: None };
    }
    let engine = &args.unused.remote_hostengine_info;
    let remote = match (kubernetes, engine.is_set()) {
        (false, true) => remote(&engine.text),
        _ => Remote::Local,
    };
    let value = match remote {
        Remote::Host(host) => Some(host).filter(|host| !host.is_empty()),
        Remote::Local => local(machine, found),
    };
    HostLabel { name, value }
}

/// The node's name if the environment tells it, else the operating system's.
fn local(machine: &dyn Machine, found: &mut Findings) -> Option<String> {
    if let Some(node) = node_name(machine) {
        return Some(node);
    }
    machine
        .host_name()
        .map_err(|problem| {
            found.refuse(
                "host name",
                format!("{problem}; set NODE_NAME, or leave the label out with --no-hostname"),
            );
        })
        .ok()
}

/// `NODE_NAME`, as a `DaemonSet` sets it from `spec.nodeName`.
pub(super) fn node_name(machine: &dyn Machine) -> Option<String> {
    machine.environment("NODE_NAME").filter(|name| !name.is_empty())
}

/// Where a host engine runs.
#[derive(Debug, PartialEq, Eq)]
enum Remote {
    /// On this machine.
    Local,
    /// There; the name may be empty.
    Host(String),
}

/// The host part of a host engine's address.
fn remote(text: &str) -> Remote {
    if text.starts_with("unix://") || text.starts_with("vsock://") {
        return Remote::Local;
    }
    let address = text.strip_prefix("tcp://").unwrap_or(text);
    let host = host_part(address);
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let loopback = bare == "localhost" || bare.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
    if loopback { Remote::Local } else { Remote::Host(host.to_owned()) }
}

/// The part before the port; the whole text if there is no port, as Go's `SplitHostPort` has it.
fn host_part(address: &str) -> &str {
    if let Some((host, _)) = address.strip_prefix('[').and_then(|rest| rest.split_once("]:")) {
        return host;
    }
    match address.split_once(':') {
        Some((host, port)) if !port.contains(':') => host,
        _ => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_44_remote_engine_gives_its_host() {
        let host = |text: &str| Remote::Host(text.to_owned());
        let cases = [
            ("host:5555", host("host")),
            ("host", host("host")),
            ("tcp://host:5555", host("host")),
            ("192.0.2.7:5555", host("192.0.2.7")),
            ("[2001:db8::1]:5555", host("2001:db8::1")),
            ("[2001:db8::1]", host("[2001:db8::1]")),
            ("2001:db8::1", host("2001:db8::1")),
            ("", host("")),
            ("localhost:5555", Remote::Local),
            ("127.0.0.1:5555", Remote::Local),
            ("[::1]:5555", Remote::Local),
            ("[::1]", Remote::Local),
            ("::1", Remote::Local),
            ("unix:///run/engine.sock", Remote::Local),
            ("vsock://2:5555", Remote::Local),
        ];
        for (text, expected) in cases {
            assert_eq!(remote(text), expected, "{text}");
        }
    }
}
