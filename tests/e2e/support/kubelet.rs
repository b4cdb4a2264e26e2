//! A kubelet's pod-resources service that says what a test wants: real gRPC over a Unix socket.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::os::unix::net::UnixListener as StdListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::thread;

use nvml_exporter::attribution::kubelet::messages::{
    AllocatableResourcesResponse, ClaimResource, ContainerDevices, ContainerResources,
    DynamicResource, GET_ALLOCATABLE, LIST, ListPodResourcesResponse, PodResources,
};
use tokio::net::UnixListener;
use tokio::sync::oneshot;
use tonic::body::Body;
use tonic::codegen::http::{Request, Response};
use tonic::codegen::tokio_stream::wrappers::UnixListenerStream;
use tonic::codegen::{BoxFuture, Service};
use tonic::server::{Grpc, NamedService, UnaryService};
use tonic::{Code, Status};
use tonic_prost::ProstCodec;

/// What it answers.
#[derive(Debug, Clone, Default)]
pub(crate) enum Mood {
    /// What is listed.
    #[default]
    Good,
    /// Nothing, ever.
    Hangs,
    /// This code.
    Fails(Code),
}

#[derive(Debug, Clone, Default)]
struct Script {
    mood: Mood,
    list: ListPodResourcesResponse,
    allocatable: AllocatableResourcesResponse,
}

/// The running service. Dropping it ends it with its connections, and leaves its socket behind as
/// a killed kubelet does.
#[derive(Debug)]
pub(crate) struct Kubelet {
    script: Arc<Mutex<Script>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Kubelet {
    /// Listens on a socket; one that was left behind gives way.
    pub(crate) fn start(socket: &Path) -> Self {
        let _ = std::fs::remove_file(socket);
        let listener = StdListener::bind(socket).unwrap();
        listener.set_nonblocking(true).unwrap();
        let script = Arc::<Mutex<Script>>::default();
        let service = PodResourcesLister(Arc::clone(&script));
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let incoming = UnixListenerStream::new(UnixListener::from_std(listener).unwrap());
                let server = tonic::transport::Server::builder().add_service(service);
                tokio::select! {
                    ended = server.serve_with_incoming(incoming) => ended.unwrap(),
                    _ = stopped => {}
                }
            });
            runtime.shutdown_background();
        });
        Self { script, stop: Some(stop), thread: Some(thread) }
    }

    pub(crate) fn lists(&self, pods: Vec<PodResources>) {
        self.script.lock().unwrap().list.pod_resources = pods;
    }

    pub(crate) fn can_hand_out(&self, devices: Vec<ContainerDevices>) {
        self.script.lock().unwrap().allocatable.devices = devices;
    }

    pub(crate) fn is(&self, mood: Mood) {
        self.script.lock().unwrap().mood = mood;
    }
}

impl Drop for Kubelet {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A pod of namespace `ml` with one container, `main`.
pub(crate) fn pod(name: &str, devices: &[(&str, &str)]) -> PodResources {
    PodResources {
        name: name.to_owned(),
        namespace: "ml".to_owned(),
        containers: vec![ContainerResources {
            name: "main".to_owned(),
            devices: devices.iter().map(|(resource, id)| device(resource, id)).collect(),
            dynamic_resources: Vec::new(),
        }],
    }
}

/// A pod with a DRA claim on devices of one driver.
pub(crate) fn claiming(name: &str, claim: &str, devices: &[&str]) -> PodResources {
    let device = |device: &&str| ClaimResource {
        driver_name: "gpu.nvidia.com".to_owned(),
        pool_name: "node-a".to_owned(),
        device_name: (*device).to_owned(),
        share_id: None,
    };
    let mut pod = pod(name, &[]);
    pod.containers[0].dynamic_resources = vec![DynamicResource {
        claim_name: claim.to_owned(),
        claim_namespace: "ml".to_owned(),
        claim_resources: devices.iter().map(device).collect(),
    }];
    pod
}

/// An entry as kubelets write them: one for each id.
pub(crate) fn device(resource: &str, id: &str) -> ContainerDevices {
    ContainerDevices { resource_name: resource.to_owned(), device_ids: vec![id.to_owned()] }
}

/// The socket's usual name in a directory.
pub(crate) fn socket(directory: &str) -> PathBuf {
    Path::new(directory).join("kubelet.sock")
}

#[derive(Debug, Clone)]
struct PodResourcesLister(Arc<Mutex<Script>>);

impl NamedService for PodResourcesLister {
    const NAME: &'static str = "v1.PodResourcesLister";
}

impl Service<Request<Body>> for PodResourcesLister {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Self::Error>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let script = self.0.lock().unwrap().clone();
        Box::pin(async move {
            Ok(match (&script.mood, request.uri().path()) {
                (Mood::Hangs, _) => std::future::pending().await,
                (Mood::Fails(code), _) => Status::new(*code, "scripted").into_http(),
                (Mood::Good, LIST) => unary(script.list, request).await,
                (Mood::Good, GET_ALLOCATABLE) => unary(script.allocatable, request).await,
                (Mood::Good, _) => Status::unimplemented("no such call").into_http(),
            })
        })
    }
}

async fn unary<M>(answer: M, request: Request<Body>) -> Response<Body>
where
    M: prost::Message + Default + Clone + Unpin + 'static,
{
    let codec = ProstCodec::<M, ()>::default();
    let mut grpc = Grpc::new(codec).max_encoding_message_size(usize::MAX);
    grpc.unary(Says(answer), request).await
}

struct Says<M>(M);

impl<M: prost::Message + Clone + 'static> UnaryService<()> for Says<M> {
    type Response = M;
    type Future = Ready<Result<tonic::Response<M>, Status>>;

    fn call(&mut self, _: tonic::Request<()>) -> Self::Future {
        ready(Ok(tonic::Response::new(self.0.clone())))
    }
}
