//! The counters of `--configmap-data`, watched.

use std::sync::Arc;

use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use tokio::sync::watch;

use super::client::{connect, one_line};

/// The key that holds the counters, as in dcgm-exporter.
const KEY: &str = "metrics";

/// The newest of what is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Text {
    /// Nothing yet.
    #[default]
    Unknown,
    /// The counters.
    Is(Arc<str>),
    /// There is none, or it cannot be read: one line says why.
    Missing(String),
}

/// Watches one `ConfigMap` for ever. Needs `list` and `watch` on it. Has to be called within a
/// tokio runtime.
#[must_use]
pub fn watch(namespace: &str, name: &str) -> watch::Receiver<Text> {
    let (out, texts) = watch::channel(Text::Unknown);
    let (namespace, name) = (namespace.to_owned(), name.to_owned());
    tokio::spawn(async move { run(&namespace, &name, &out).await });
    texts
}

async fn run(namespace: &str, name: &str, out: &watch::Sender<Text>) {
    let set = |text: Text| {
        out.send_if_modified(|last| {
            let new = *last != text;
            if new {
                *last = text;
            }
            new
        });
    };
    let client = match connect().await {
        Ok(client) => client,
        Err(error) => return set(Text::Missing(error.to_string())),
    };
    let only_it = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let api = Api::<ConfigMap>::namespaced(client, namespace);
    let mut events = std::pin::pin!(watcher(api, only_it).default_backoff());
    let mut listed = None;
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Init) => listed = None,
            Ok(Event::InitApply(map)) => listed = Some(map),
            Ok(Event::InitDone) => set(text(listed.take())),
            Ok(Event::Apply(map)) => set(text(Some(map))),
            Ok(Event::Delete(_)) => set(text(None)),
            Err(error) => {
                // What was read before stays in use.
                if !matches!(*out.borrow(), Text::Is(_)) {
                    set(Text::Missing(one_line(&error.to_string())));
                }
            }
        }
    }
}

fn text(map: Option<ConfigMap>) -> Text {
    let Some(map) = map else { return Text::Missing("it does not exist".to_owned()) };
    match map.data.and_then(|mut data| data.remove(KEY)) {
        Some(text) => Text::Is(text.into()),
        None => Text::Missing(format!("it has no key {KEY}")),
    }
}
