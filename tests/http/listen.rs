//! Addresses to sockets.

use std::net::{Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};

use nvml_exporter::http::{self, Limits};

use crate::support::{HUNG, Server, app, page, until};

fn error(address: &str) -> String {
    http::bind(&[address]).unwrap_err().to_string()
}

#[test]
fn what_is_no_address_is_refused_by_name() {
    for text in [
        "",
        "9400",
        ":",
        "a:b",
        ":65536",
        ":-1",
        "::1:9400",
        "[::1]",
        "[::1:9400",
        "[a]:1",
        "http://a:1",
    ] {
        let wanted = format!("cannot listen on {text:?}: want :PORT, HOST:PORT or [IPV6]:PORT");
        assert_eq!(error(text), wanted);
    }
    assert_eq!(error("vsock://:1"), "cannot listen on \"vsock://:1\": vsock is not supported");
    let nothing = http::bind::<&str>(&[]).unwrap_err().to_string();
    assert_eq!(nothing, "cannot listen: no address is given");
}

#[test]
fn what_the_kernel_refuses_is_said_in_one_line() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    assert_eq!(error(&address), format!("cannot listen on {address}: the port is in use"));
    let elsewhere = "cannot listen on 192.0.2.1:9400: no interface of this host has the address";
    assert_eq!(error("192.0.2.1:9400"), elsewhere);
    let name = "no-such-name.invalid:9400";
    assert!(
        error(name).starts_with(&format!("cannot listen on {name}: cannot resolve the name: "))
    );
}

#[test]
fn one_bad_address_frees_the_others() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    assert!(http::bind(&[free.as_str(), "nonsense"]).is_err());
    assert!(http::bind(&[free]).is_ok());
}

/// Case 24.
#[test]
fn ipv6_and_several_addresses() {
    if TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_err() {
        return;
    }
    let listeners = http::bind(&["[::1]:0", "127.0.0.1:0", "localhost:0", ":0"]).unwrap();
    let addresses = listeners.addresses().to_vec();
    assert!(addresses[0].is_ipv6() && addresses[0].ip().is_loopback());
    let all = addresses[3].port();
    let _server = Server::on(listeners, app(page("a 1\n"), Limits::default()));
    let everywhere: [SocketAddr; 2] =
        [([127, 0, 0, 1], all).into(), (Ipv6Addr::LOCALHOST, all).into()];
    for address in addresses[..3].iter().chain(&everywhere) {
        let body = ureq::get(format!("http://{address}/metrics")).call().unwrap();
        assert_eq!(body.into_body().read_to_string().unwrap(), "a 1\n", "{address}");
    }
}

/// Case 103: this test starts itself as systemd would start the program, with a listening socket
/// as file 3.
#[test]
fn sockets_from_systemd() {
    const CHILD: &str = "NVML_EXPORTER_TEST_CHILD";
    if std::env::var_os(CHILD).is_some() {
        let listeners = http::from_systemd().unwrap();
        let _server = Server::on(listeners, app(page("a 1\n"), Limits::default()));
        std::thread::sleep(HUNG);
        return;
    }
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let script = "LISTEN_FDS=1 LISTEN_PID=$$ exec \"$0\" --exact listen::sockets_from_systemd 3<&0";
    let mut child = Command::new("sh")
        .args(["-c", script])
        .arg(std::env::current_exe().unwrap())
        .env(CHILD, "1")
        .stdin(Stdio::from(OwnedFd::from(socket)))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let answer = ureq::get(format!("http://{address}/metrics")).call();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(answer.unwrap().into_body().read_to_string().unwrap(), "a 1\n");
    until(|| TcpStream::connect(address).is_err());
}

#[test]
fn systemd_that_passes_nothing_is_an_error() {
    let wanted = "cannot listen: systemd passed no socket (LISTEN_FDS is not set for this process)";
    assert_eq!(http::from_systemd().unwrap_err().to_string(), wanted);
}
