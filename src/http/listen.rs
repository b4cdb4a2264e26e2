//! Addresses to listening sockets, before anything is served: what fails here is a start-up error.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, ToSocketAddrs};

use listenfd::ListenFd;
use socket2::{Domain, Socket, Type};

/// Connections the kernel holds for us while all slots are taken.
const BACKLOG: i32 = 1024;

/// Why no server can listen there.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The text is not an address.
    #[error("cannot listen on {0:?}: want :PORT, HOST:PORT or [IPV6]:PORT")]
    Address(String),
    /// The text names vsock, which we do not speak.
    #[error("cannot listen on {0:?}: vsock is not supported")]
    Vsock(String),
    /// The name has no address.
    #[error("cannot listen on {address}: cannot resolve the name: {source}")]
    Resolve {
        /// As given.
        address: String,
        /// From the resolver.
        source: io::Error,
    },
    /// Another process has the port.
    #[error("cannot listen on {0}: the port is in use")]
    InUse(String),
    /// Not ours to take.
    #[error("cannot listen on {0}: permission denied (ports below 1024 need CAP_NET_BIND_SERVICE)")]
    Permission(String),
    /// No interface has it.
    #[error("cannot listen on {0}: no interface of this host has the address")]
    NotHere(String),
    /// The kernel says something else.
    #[error("cannot listen on {address}: {source}")]
    Other {
        /// As given.
        address: String,
        /// From the kernel.
        source: io::Error,
    },
    /// Neither an address nor a socket.
    #[error("cannot listen: no address is given")]
    Nothing,
    /// Socket activation was asked for, but systemd passed nothing.
    #[error("cannot listen: systemd passed no socket (LISTEN_FDS is not set for this process)")]
    NoSystemdSocket,
    /// systemd passed something that is not a listening TCP socket.
    #[error("cannot listen on socket {index} from systemd: {source}")]
    SystemdSocket {
        /// Its place in the order of the unit file.
        index: usize,
        /// What is wrong with it.
        source: io::Error,
    },
}

/// Sockets that listen; connections queue up until they are served.
#[derive(Debug)]
pub struct Listeners {
    pub(super) sockets: Vec<TcpListener>,
    addresses: Vec<SocketAddr>,
}

impl Listeners {
    fn new(sockets: Vec<TcpListener>) -> io::Result<Self> {
        let mut addresses = Vec::with_capacity(sockets.len());
        for socket in &sockets {
            socket.set_nonblocking(true)?;
            let address = socket.local_addr()?;
            tracing::info!(%address, "listening");
            addresses.push(address);
        }
        Ok(Self { sockets, addresses })
    }

    /// The addresses that were bound: where port 0 was asked for, the port that the kernel chose.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }
}

/// Listens on every address, or on none.
pub fn bind<A: AsRef<str>>(addresses: &[A]) -> Result<Listeners, ListenError> {
    if addresses.is_empty() {
        return Err(ListenError::Nothing);
    }
    let sockets = addresses.iter().map(|a| bind_one(a.as_ref())).collect::<Result<_, _>>()?;
    let first = || addresses[0].as_ref().to_owned();
    Listeners::new(sockets).map_err(|source| ListenError::Other { address: first(), source })
}

/// Takes the TCP sockets that systemd passed to this process (socket activation).
pub fn from_systemd() -> Result<Listeners, ListenError> {
    let mut passed = ListenFd::from_env();
    let mut sockets = Vec::with_capacity(passed.len());
    for index in 0..passed.len() {
        match passed.take_tcp_listener(index) {
            Ok(socket) => sockets.extend(socket),
            Err(source) => return Err(ListenError::SystemdSocket { index, source }),
        }
    }
    if sockets.is_empty() {
        return Err(ListenError::NoSystemdSocket);
    }
    Listeners::new(sockets).map_err(|source| ListenError::SystemdSocket { index: 0, source })
}

fn bind_one(text: &str) -> Result<TcpListener, ListenError> {
    if text.starts_with("vsock://") {
        return Err(ListenError::Vsock(text.to_owned()));
    }
    let (host, port) = split(text).ok_or_else(|| ListenError::Address(text.to_owned()))?;
    if host.is_empty() {
        return everywhere(port).map_err(|source| classify(text, source));
    }
    let resolved = (host, port)
        .to_socket_addrs()
        .map_err(|source| ListenError::Resolve { address: text.to_owned(), source })?;
    // A name may have an address that this host cannot bind (`localhost` as `::1` where IPv6 is
    // off): the first that works is the one meant.
    let mut failed = None;
    for address in resolved {
        match listen(address, false) {
            Ok(socket) => return Ok(socket),
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    let source = failed.unwrap_or_else(|| io::ErrorKind::AddrNotAvailable.into());
    Err(classify(text, source))
}

/// `None` unless the text is `:PORT`, `HOST:PORT` or `[IPV6]:PORT`; the host comes unbracketed.
fn split(text: &str) -> Option<(&str, u16)> {
    let (host, port) = text.rsplit_once(':')?;
    let port = port.bytes().all(|b| b.is_ascii_digit()).then(|| port.parse().ok())??;
    let host = match host.strip_prefix('[') {
        Some(rest) => {
            let inner = rest.strip_suffix(']')?;
            inner.parse::<Ipv6Addr>().ok()?;
            inner
        }
        // Without brackets a colon more is an IPv6 address whose port is anyone's guess.
        None if host.contains([':', ']', ' ', '/']) => return None,
        None => host,
    };
    Some((host, port))
}

/// Every address of both families through one socket; of IPv4 alone where IPv6 is off.
fn everywhere(port: u16) -> io::Result<TcpListener> {
    match listen((Ipv6Addr::UNSPECIFIED, port).into(), true) {
        Err(error) if no_ipv6(&error) => listen((Ipv4Addr::UNSPECIFIED, port).into(), false),
        other => other,
    }
}

/// `EAFNOSUPPORT` (no such family), or `EADDRNOTAVAIL` (`disable_ipv6`).
fn no_ipv6(error: &io::Error) -> bool {
    const EAFNOSUPPORT: i32 = 97;
    error.raw_os_error() == Some(EAFNOSUPPORT) || error.kind() == io::ErrorKind::AddrNotAvailable
}

fn listen(address: SocketAddr, both_families: bool) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    // A restart must not wait for the connections of the process before.
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(!both_families)?;
    }
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

fn classify(text: &str, source: io::Error) -> ListenError {
    let address = text.to_owned();
    match source.kind() {
        io::ErrorKind::AddrInUse => ListenError::InUse(address),
        io::ErrorKind::PermissionDenied => ListenError::Permission(address),
        io::ErrorKind::AddrNotAvailable => ListenError::NotHere(address),
        _ => ListenError::Other { address, source },
    }
}
