//! An API server that knows pods, `ConfigMap`s and claims, and writes down what it is asked.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::thread;

use axum::Json;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, Query, State};
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{broadcast, oneshot};

/// A kind of objects that can be listed and watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Pod,
    ConfigMap,
}

#[derive(Debug, Default)]
struct Objects {
    version: u64,
    all: BTreeMap<(Kind, String, String), Value>,
    claims: HashMap<(String, String), Value>,
    asked: Vec<String>,
    refuse: Option<StatusCode>,
}

/// The running server. Dropping it ends it, with all its connections.
#[derive(Debug)]
pub(crate) struct ApiServer {
    address: SocketAddr,
    state: Shared,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

#[derive(Debug, Clone)]
struct Shared {
    objects: Arc<Mutex<Objects>>,
    events: broadcast::Sender<(Kind, Value)>,
}

impl ApiServer {
    pub(crate) fn start() -> Self {
        Self::start_at("127.0.0.1:0".parse().unwrap())
    }

    /// At an address where one has run before.
    pub(crate) fn start_at(address: SocketAddr) -> Self {
        let (events, _) = broadcast::channel(64);
        let state = Shared { objects: Arc::default(), events };
        let (stop, stopped) = oneshot::channel();
        let (tell, address_of) = std::sync::mpsc::channel();
        let app = router(state.clone());
        let thread = thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let listener = TcpListener::bind(address).await.unwrap();
                tell.send(listener.local_addr().unwrap()).unwrap();
                tokio::select! {
                    served = axum::serve(listener, app) => served.unwrap(),
                    _ = stopped => {}
                }
            });
            runtime.shutdown_background();
        });
        let address = address_of.recv().unwrap();
        Self { address, state, stop: Some(stop), thread: Some(thread) }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// A kubeconfig file's text.
    pub(crate) fn kubeconfig(&self) -> String {
        kubeconfig(self.address)
    }

    /// Adds an object or replaces it.
    pub(crate) fn put(&self, kind: Kind, namespace: &str, name: &str, mut object: Value) {
        let mut objects = self.state.objects.lock().unwrap();
        objects.version += 1;
        object["metadata"]["name"] = name.into();
        object["metadata"]["namespace"] = namespace.into();
        object["metadata"]["resourceVersion"] = objects.version.to_string().into();
        let key = (kind, namespace.to_owned(), name.to_owned());
        let change = if objects.all.contains_key(&key) { "MODIFIED" } else { "ADDED" };
        objects.all.insert(key, object.clone());
        let _ = self.state.events.send((kind, json!({"type": change, "object": object})));
    }

    pub(crate) fn delete(&self, kind: Kind, namespace: &str, name: &str) {
        let mut objects = self.state.objects.lock().unwrap();
        objects.version += 1;
        let key = (kind, namespace.to_owned(), name.to_owned());
        let mut object = objects.all.remove(&key).unwrap();
        object["metadata"]["resourceVersion"] = objects.version.to_string().into();
        let _ = self.state.events.send((kind, json!({"type": "DELETED", "object": object})));
    }

    pub(crate) fn claim(&self, namespace: &str, name: &str, admin: bool) {
        let result = json!({
            "request": "gpus", "driver": "gpu.nvidia.com", "pool": "node-a", "device": "gpu-0",
            "adminAccess": admin,
        });
        let claim = json!({
            "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
            "metadata": {"namespace": namespace, "name": name},
            "spec": {},
            "status": {"allocation": {"devices": {"results": [result]}}},
        });
        let mut objects = self.state.objects.lock().unwrap();
        objects.claims.insert((namespace.to_owned(), name.to_owned()), claim);
    }

    /// Answers everything with this code from now on.
    pub(crate) fn refuse(&self, code: Option<StatusCode>) {
        self.state.objects.lock().unwrap().refuse = code;
    }

    /// Ends all watches as a real one does that has forgotten where they were.
    pub(crate) fn expire_watches(&self) {
        let gone = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": "too old resource version", "reason": "Expired", "code": 410,
        });
        for kind in [Kind::Pod, Kind::ConfigMap] {
            let _ = self.state.events.send((kind, json!({"type": "ERROR", "object": gone})));
        }
    }

    /// What has been asked: method, path and query without its order and versions.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.state.objects.lock().unwrap().asked.clone()
    }

    /// What has been asked as RBAC has it: verb, group and resource, namespace or `*`.
    pub(crate) fn rights(&self) -> BTreeSet<String> {
        self.asked().iter().map(|asked| right(asked)).collect()
    }
}

/// A kubeconfig for a server at this address.
pub(crate) fn kubeconfig(address: SocketAddr) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: test\n\
         clusters: [{{name: test, cluster: {{server: 'http://{address}'}}}}]\n\
         contexts: [{{name: test, context: {{cluster: test, user: test}}}}]\n\
         users: [{{name: test, user: {{}}}}]\n"
    )
}

impl Drop for ApiServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// `GET /api/v1/pods?watch=true` is `watch pods *`.
fn right(asked: &str) -> String {
    let (_, target) = asked.split_once(' ').unwrap();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let (group, rest) = match parts.as_slice() {
        ["api", "v1", rest @ ..] => ("", rest),
        ["apis", group, _, rest @ ..] => (*group, rest),
        other => panic!("not a path of the API: {other:?}"),
    };
    let (namespace, rest) = match rest {
        ["namespaces", namespace, rest @ ..] => (*namespace, rest),
        rest => ("*", rest),
    };
    let verb = match rest {
        [_] if query.contains("watch=") => "watch",
        [_] => "list",
        _ => "get",
    };
    format!("{verb} {group}/{} {namespace}", rest[0])
}

fn router(state: Shared) -> Router {
    Router::new()
        .route("/api/v1/pods", get(pods))
        .route("/api/v1/namespaces/{namespace}/configmaps", get(config_maps))
        .route("/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims/{name}", get(claim))
        .fallback(unknown)
        .with_state(state)
}

async fn unknown(State(state): State<Shared>, method: Method, uri: Uri) -> Response {
    state.note(&method, &uri);
    failure(StatusCode::NOT_FOUND, "NotFound")
}

type Parameters = Query<BTreeMap<String, String>>;

async fn pods(State(state): State<Shared>, uri: Uri, Query(query): Parameters) -> Response {
    state.answer(&uri, Kind::Pod, None, &query)
}

async fn config_maps(
    State(state): State<Shared>,
    uri: Uri,
    Path(namespace): Path<String>,
    Query(query): Parameters,
) -> Response {
    state.answer(&uri, Kind::ConfigMap, Some(&namespace), &query)
}

async fn claim(
    State(state): State<Shared>,
    uri: Uri,
    Path(name): Path<(String, String)>,
) -> Response {
    if let Some(refusal) = state.note(&Method::GET, &uri) {
        return refusal;
    }
    match state.objects.lock().unwrap().claims.get(&name) {
        Some(claim) => Json(claim.clone()).into_response(),
        None => failure(StatusCode::NOT_FOUND, "NotFound"),
    }
}

impl Shared {
    /// Writes a question down; the refusal, if all are refused.
    fn note(&self, method: &Method, uri: &Uri) -> Option<Response> {
        let mut objects = self.objects.lock().unwrap();
        objects.asked.push(format!("{method} {uri}"));
        objects.refuse.map(|code| failure(code, "Refused"))
    }

    fn answer(
        &self,
        uri: &Uri,
        kind: Kind,
        namespace: Option<&str>,
        query: &BTreeMap<String, String>,
    ) -> Response {
        if let Some(refusal) = self.note(&Method::GET, uri) {
            return refusal;
        }
        let (wanted, namespace) =
            (query.get("fieldSelector").cloned(), namespace.map(str::to_owned));
        let matches = move |object: &Value| {
            let metadata = &object["metadata"];
            namespace.as_deref().is_none_or(|namespace| metadata["namespace"] == namespace)
                && match wanted.as_deref().and_then(|wanted| wanted.split_once('=')) {
                    Some(("spec.nodeName", node)) => object["spec"]["nodeName"] == node,
                    Some(("metadata.name", name)) => metadata["name"] == name,
                    Some(other) => panic!("not a field that can be selected: {other:?}"),
                    None => true,
                }
        };
        if query.contains_key("watch") {
            return self.watch(kind, matches);
        }
        let objects = self.objects.lock().unwrap();
        let items: Vec<&Value> = objects
            .all
            .iter()
            .filter(|((of, ..), object)| *of == kind && matches(object))
            .map(|(_, object)| object)
            .collect();
        let kind = if kind == Kind::Pod { "PodList" } else { "ConfigMapList" };
        let metadata = json!({"resourceVersion": objects.version.to_string()});
        Json(json!({"kind": kind, "apiVersion": "v1", "metadata": metadata, "items": items}))
            .into_response()
    }

    fn watch(&self, kind: Kind, matches: impl Fn(&Value) -> bool + Send + 'static) -> Response {
        let events = self.events.subscribe();
        let lines = futures_util::stream::unfold(
            (events, matches),
            move |(mut events, matches)| async move {
                loop {
                    let (of, event) = events.recv().await.ok()?;
                    let error = event["type"] == "ERROR";
                    if of == kind && (error || matches(&event["object"])) {
                        let line = Bytes::from(format!("{event}\n"));
                        return Some((Ok::<_, std::io::Error>(line), (events, matches)));
                    }
                }
            },
        );
        ([("content-type", "application/json")], Body::from_stream(lines)).into_response()
    }
}

fn failure(code: StatusCode, reason: &str) -> Response {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": format!("the server says {reason}"), "reason": reason, "code": code.as_u16(),
    });
    (code, Json(status)).into_response()
}
