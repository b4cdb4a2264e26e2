//! What the API server tells: this node's pods, claims with admin access, the `ConfigMap` of
//! counters. The only module that knows kube. Nothing here is needed to serve: while the API
//! server is away what is known stays, and the rest is filled in later.

mod claims;
mod client;
pub mod configmap;
pub mod labels;
mod owner;
mod pods;

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use tokio::sync::watch;

pub use client::ClusterError;
pub use labels::LabelRules;

use crate::attribution::PodTable;

/// Namespace and name of a claim.
pub type ClaimName = (String, String);

/// What the API server is asked for.
#[derive(Debug, Clone, Default)]
pub struct ClusterSettings {
    /// This node, as the API server knows it (`NODE_NAME`).
    pub node: Option<String>,
    /// What is wanted of pods; `None` asks nothing.
    pub pods: Option<LabelRules>,
    /// Whether claims are looked up, to tell those with admin access.
    pub claims: bool,
}

/// Where answers come, and questions go.
#[derive(Debug)]
pub struct Cluster {
    /// This node's pods; empty until they are known.
    pub pods: watch::Receiver<Arc<PodTable>>,
    /// Claims with admin access among those asked for.
    pub admin_claims: watch::Receiver<Arc<HashSet<ClaimName>>>,
    /// The claims that pods of this node hold now.
    pub claims: watch::Sender<BTreeSet<ClaimName>>,
}

/// Starts asking; has to be called within a tokio runtime. Asks nothing that is not wanted.
#[must_use]
pub fn start(settings: ClusterSettings) -> Cluster {
    let (pods_out, pods) = watch::channel(Arc::default());
    let (admin_out, admin_claims) = watch::channel(Arc::default());
    let (claims, claims_in) = watch::channel(BTreeSet::new());
    if settings.pods.is_some() || settings.claims {
        tokio::spawn(run(settings, pods_out, admin_out, claims_in));
    }
    Cluster { pods, admin_claims, claims }
}

async fn run(
    settings: ClusterSettings,
    pods_out: watch::Sender<Arc<PodTable>>,
    admin_out: watch::Sender<Arc<HashSet<ClaimName>>>,
    claims_in: watch::Receiver<BTreeSet<ClaimName>>,
) {
    let client = match client::connect().await {
        Ok(client) => client,
        Err(error) => {
            tracing::warn!("{error}; pods are shown without what only the API server knows");
            return;
        }
    };
    let pods = async {
        match (settings.pods, settings.node) {
            (Some(rules), Some(node)) => {
                pods::watch(client.clone(), &node, &rules, &pods_out).await;
            }
            (Some(_), None) => tracing::warn!(
                "NODE_NAME is not set: without it every pod of the cluster would be watched, so \
                 none is; set it from the field spec.nodeName of the pod"
            ),
            (None, _) => {}
        }
    };
    let claims = async {
        if settings.claims {
            claims::watch(client.clone(), claims_in, &admin_out).await;
        }
    };
    tokio::join!(pods, claims);
}
