//! Asks the kubelet, over its Unix socket.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tokio::time::timeout;
use tonic::client::Grpc;
use tonic::codegen::http::Uri;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status};
use tonic_prost::ProstCodec;

use super::error::{PodResourcesError, Reason};
use super::messages::{
    AllocatableResourcesResponse, GET_ALLOCATABLE, LIST, ListPodResourcesResponse,
};

/// Bounds of one call.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// For the connection.
    pub connect: Duration,
    /// For a call as a whole.
    pub call: Duration,
    /// Bytes of an answer. gRPC's own default is 4 MiB, which nodes with thousands of shares pass.
    pub answer: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(2),
            call: Duration::from_secs(10),
            answer: 64 * 1024 * 1024,
        }
    }
}

/// A client with one connection, made when it is needed.
#[derive(Debug)]
pub struct Client {
    path: PathBuf,
    limits: Limits,
    channel: Channel,
    connections: Arc<AtomicUsize>,
}

impl Client {
    /// A client of the service on this socket; connects with the first call. Has to be called
    /// within a tokio runtime.
    #[must_use]
    pub fn new(path: PathBuf, limits: Limits) -> Self {
        let connections = Arc::default();
        let channel = connect(&path, limits.connect, &connections);
        Self { path, limits, channel, connections }
    }

    /// How many connections have been made so far. A new one may be to a new kubelet.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// What the containers of all pods hold.
    pub async fn list(&mut self) -> Result<ListPodResourcesResponse, PodResourcesError> {
        self.call(LIST).await
    }

    /// What the node can hand out. Kubelets have it since 1.21, without a feature gate since 1.23.
    pub async fn allocatable(&mut self) -> Result<AllocatableResourcesResponse, PodResourcesError> {
        self.call(GET_ALLOCATABLE).await
    }

    async fn call<M>(&mut self, path: &'static str) -> Result<M, PodResourcesError>
    where
        M: prost::Message + Default + 'static,
    {
        let mut grpc =
            Grpc::new(self.channel.clone()).max_decoding_message_size(self.limits.answer);
        let attempt = async {
            grpc.ready().await.map_err(|error| Status::from_error(Box::new(error)))?;
            let codec = ProstCodec::<(), M>::default();
            grpc.unary(Request::new(()), PathAndQuery::from_static(path), codec).await
        };
        let (reason, detail) = match timeout(self.limits.call, attempt).await {
            Ok(Ok(answer)) => return Ok(answer.into_inner()),
            Ok(Err(status)) => (Reason::of(&status), status.message().to_owned()),
            Err(_) => (Reason::Timeout, format!("{path} took over {:?}", self.limits.call)),
        };
        if !matches!(reason, Reason::RateLimited | Reason::Unimplemented) {
            // A connection that a call failed on may never work again: it may be to a kubelet
            // that hangs, while another one listens on the socket by now.
            self.channel = connect(&self.path, self.limits.connect, &self.connections);
        }
        Err(PodResourcesError { reason, path: self.path.clone(), detail })
    }
}

/// A channel that connects when it is used, and again when the connection has ended.
fn connect(path: &Path, limit: Duration, connections: &Arc<AtomicUsize>) -> Channel {
    let path = path.to_owned();
    let connections = Arc::clone(connections);
    let connector = tower::service_fn(move |_: Uri| {
        let path = path.clone();
        let connections = Arc::clone(&connections);
        async move {
            let too_late = |_| io::Error::new(io::ErrorKind::TimedOut, "no connection in time");
            let stream = timeout(limit, UnixStream::connect(path)).await.map_err(too_late)??;
            connections.fetch_add(1, Ordering::Relaxed);
            Ok::<_, io::Error>(TokioIo::new(stream))
        }
    });
    // HTTP/2 wants an address; the connector does not look at it.
    Endpoint::from_static("http://localhost").connect_with_connector_lazy(connector)
}
