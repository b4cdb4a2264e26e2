//! Why the kubelet did not answer.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::path::PathBuf;

use tonic::{Code, Status};

/// The kubelet's pod-resources service could not be asked.
#[derive(Debug, thiserror::Error)]
#[error("{}: {reason} ({detail})", path.display())]
pub struct PodResourcesError {
    /// What kind of failure it is.
    pub reason: Reason,
    /// The socket.
    pub path: PathBuf,
    /// What the system or the kubelet said.
    pub detail: String,
}

/// Kinds of failure, as far as they differ in what to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// No such file.
    SocketMissing,
    /// The file is there and nobody listens.
    Refused,
    /// This user may not go through the directory or connect.
    PermissionDenied,
    /// No connection or no answer in time.
    Timeout,
    /// The kubelet's limit of calls, for all its clients together.
    RateLimited,
    /// The answer is beyond this exporter's limit.
    TooLarge,
    /// The service is not in this kubelet.
    Unimplemented,
    /// The answer is not gRPC, or not of these messages.
    Protocol,
    /// The connection ended within a call.
    Disconnected,
    /// All else.
    Other,
}

impl Reason {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::SocketMissing,
        Self::Refused,
        Self::PermissionDenied,
        Self::Timeout,
        Self::RateLimited,
        Self::TooLarge,
        Self::Unimplemented,
        Self::Protocol,
        Self::Disconnected,
        Self::Other,
    ];

    /// The name in metrics.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::SocketMissing => "socket_missing",
            Self::Refused => "refused",
            Self::PermissionDenied => "permission_denied",
            Self::Timeout => "timeout",
            Self::RateLimited => "rate_limited",
            Self::TooLarge => "too_large",
            Self::Unimplemented => "unimplemented",
            Self::Protocol => "protocol",
            Self::Disconnected => "disconnected",
            Self::Other => "other",
        }
    }

    /// What a failed call was.
    pub(super) fn of(status: &Status) -> Self {
        if let Some(error) = find_io_error(status) {
            return Self::of_io(error);
        }
        match status.code() {
            Code::ResourceExhausted => Self::RateLimited,
            Code::OutOfRange => Self::TooLarge,
            Code::Unimplemented => Self::Unimplemented,
            Code::DeadlineExceeded => Self::Timeout,
            Code::Internal | Code::DataLoss => Self::Protocol,
            // What has a source was not said by the kubelet: HTTP/2 itself failed.
            _ if status.source().is_some() => Self::Protocol,
            _ => Self::Other,
        }
    }

    fn of_io(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Self::SocketMissing,
            io::ErrorKind::ConnectionRefused => Self::Refused,
            io::ErrorKind::PermissionDenied => Self::PermissionDenied,
            // A listener whose queue is full, for a socket that does not block.
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => Self::Timeout,
            io::ErrorKind::BrokenPipe
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::NotConnected
            | io::ErrorKind::UnexpectedEof => Self::Disconnected,
            _ => Self::Other,
        }
    }
}

/// What happened, and what to do about it.
impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SocketMissing => {
                "there is no such socket: the kubelet is not running, or its pod-resources \
                 directory is not mounted here, or is elsewhere \
                 (--pod-resources-kubelet-socket)"
            }
            Self::Refused => {
                "nobody listens there: the kubelet is not running, or this is no socket"
            }
            Self::PermissionDenied => {
                "access is denied: the kubelet lets only root in, so the exporter has to run as \
                 UID 0 (no capability is needed; SELinux may deny it too)"
            }
            Self::Timeout => "the kubelet does not answer in time",
            Self::RateLimited => {
                "the kubelet takes no more calls: too many clients ask its pod-resources service"
            }
            Self::TooLarge => "the kubelet's answer is too large",
            Self::Unimplemented => {
                "the kubelet does not have this service: it has to be of Kubernetes 1.20 or newer"
            }
            Self::Protocol => {
                "the answer is not one of the kubelet's: does the socket belong to another program?"
            }
            Self::Disconnected => "the connection ended within a call",
            Self::Other => "the kubelet cannot be asked",
        })
    }
}

fn find_io_error(status: &Status) -> Option<&io::Error> {
    let mut source = status.source();
    while let Some(error) = source {
        if let Some(found) = error.downcast_ref::<io::Error>() {
            return Some(found);
        }
        source = error.source();
    }
    None
}
