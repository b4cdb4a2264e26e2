//! This node's pods, watched.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use futures_util::StreamExt as _;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, Resource};
use serde::Deserialize;
use tokio::sync::watch;

use super::client::one_line;
use super::labels::LabelRules;
use super::owner::owner;
use crate::attribution::{PodFacts, PodTable};

/// What is decoded of a pod. A whole one is ten times as large, and its spec is of no use here.
#[derive(Debug, Clone, Default, Deserialize)]
struct Pod {
    #[serde(default)]
    metadata: ObjectMeta,
    #[serde(default)]
    status: Status,
}

#[derive(Debug, Clone, Default, Deserialize)]
struct Status {
    #[serde(default)]
    phase: String,
}

impl Resource for Pod {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "Pod".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        "".into()
    }

    fn version((): &()) -> Cow<'_, str> {
        "v1".into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "pods".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// Watches the pods of a node for ever. Needs `list` and `watch` on pods.
pub(super) async fn watch(
    client: Client,
    node: &str,
    rules: &LabelRules,
    out: &watch::Sender<Arc<PodTable>>,
) {
    let only_here = watcher::Config::default().fields(&format!("spec.nodeName={node}"));
    let api = Api::<Pod>::all(client);
    // Begins again with a growing pause when the API server is away or refuses.
    let mut events = std::pin::pin!(watcher(api, only_here).default_backoff());
    let mut table = Table::default();
    let mut state = None;
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => {
                if table.take(event, rules) {
                    if state.replace(Ok(())) != Some(Ok(())) {
                        tracing::info!(node, pods = table.pods.len(), "the API server tells pods");
                    }
                    out.send_replace(Arc::new(table.published()));
                }
            }
            Err(error) => {
                let error = Err(one_line(&error.to_string()));
                if state.as_ref() != Some(&error) {
                    let why = error.as_ref().err().map_or("", String::as_str);
                    tracing::warn!("the API server does not tell pods: {why}; tried again");
                    state = Some(error);
                }
            }
        }
    }
}

/// Pods as the watch tells them.
#[derive(Default)]
struct Table {
    pods: HashMap<(String, String), PodFacts>,
    /// A list under way, which takes the place of what is known when it is complete.
    listed: HashMap<(String, String), PodFacts>,
}

impl Table {
    /// Takes one event; whether what is known is complete and may be new.
    fn take(&mut self, event: Event<Pod>, rules: &LabelRules) -> bool {
        match event {
            Event::Init => {
                self.listed.clear();
                return false;
            }
            Event::InitApply(pod) => {
                self.listed.extend([facts(pod, rules)]);
                return false;
            }
            Event::InitDone => self.pods = std::mem::take(&mut self.listed),
            Event::Apply(pod) => self.pods.extend([facts(pod, rules)]),
            Event::Delete(pod) => {
                self.pods.remove(&key(&pod.metadata));
            }
        }
        true
    }

    fn published(&self) -> PodTable {
        let mut table = PodTable::default();
        for ((namespace, name), facts) in &self.pods {
            table.insert(namespace, name, facts.clone());
        }
        table
    }
}

fn key(metadata: &ObjectMeta) -> (String, String) {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    (text(&metadata.namespace), text(&metadata.name))
}

fn facts(pod: Pod, rules: &LabelRules) -> ((String, String), PodFacts) {
    let Pod { metadata, status } = pod;
    let none = BTreeMap::new();
    let labels = metadata.labels.as_ref().unwrap_or(&none);
    let annotations = metadata.annotations.as_ref().unwrap_or(&none);
    let owner = owner(metadata.owner_references.as_deref().unwrap_or_default(), labels);
    let made = rules.make(labels, annotations, owner);
    let key = key(&metadata);
    if made.left_out > 0 {
        let (namespace, name) = &key;
        let left_out = made.left_out;
        tracing::debug!(namespace, name, left_out, "the pod has more or longer labels than shown");
    }
    // Of a static pod the kubelet knows this uid, and names the control group by it.
    let static_uid = annotations.get(STATIC_UID).cloned();
    let facts = PodFacts {
        uid: static_uid.or(metadata.uid).unwrap_or_default(),
        finished: matches!(status.phase.as_str(), "Succeeded" | "Failed"),
        labels: made.labels,
    };
    (key, facts)
}

/// What the kubelet puts on the API server's copy of a static pod.
const STATIC_UID: &str = "kubernetes.io/config.hash";
