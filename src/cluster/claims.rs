//! DRA claims with admin access (KEP-5018): who holds one watches devices and does not use them.
//! pod-resources does not tell them apart.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::resource::v1::ResourceClaim;
use kube::{Api, Client};
use tokio::sync::watch;

use super::ClaimName;
use super::client::one_line;

/// After a failed look-up the next one waits for this long, and twice as long each time.
const RETRY: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(60);

/// Looks each claim up once, when pods hold it first. Needs `get` on resourceclaims.
pub(super) async fn watch(
    client: Client,
    mut wanted: watch::Receiver<BTreeSet<ClaimName>>,
    out: &watch::Sender<Arc<HashSet<ClaimName>>>,
) {
    let mut known: HashMap<ClaimName, bool> = HashMap::new();
    let mut pause = RETRY;
    let mut said = None;
    loop {
        let now = wanted.borrow_and_update().clone();
        known.retain(|claim, _| now.contains(claim));
        let mut failed = None;
        for claim in &now {
            if known.contains_key(claim) {
                continue;
            }
            match admin_access(&client, claim).await {
                Ok(admin) => {
                    known.insert(claim.clone(), admin);
                }
                Err(error) => failed = Some(error),
            }
        }
        let admin: HashSet<_> =
            known.iter().filter(|(_, admin)| **admin).map(|(claim, _)| claim.clone()).collect();
        out.send_if_modified(|last| {
            let new = **last != admin;
            if new {
                *last = Arc::new(admin);
            }
            new
        });
        if let Some(error) = &failed
            && said.as_ref() != Some(error)
        {
            tracing::warn!(
                "the API server does not tell whether a claim has admin access: {error}; until \
                 then its pods count as users"
            );
        }
        let changed = if failed.is_some() {
            let outcome = tokio::time::timeout(pause, wanted.changed()).await;
            pause = (pause * 2).min(RETRY_MAX);
            outcome.unwrap_or(Ok(()))
        } else {
            pause = RETRY;
            wanted.changed().await
        };
        said = failed;
        if changed.is_err() {
            return;
        }
    }
}

/// A claim that is gone by now is nobody's.
async fn admin_access(client: &Client, (namespace, name): &ClaimName) -> Result<bool, String> {
    let api = Api::<ResourceClaim>::namespaced(client.clone(), namespace);
    let claim = api.get_opt(name).await.map_err(|error| one_line(&error.to_string()))?;
    let allocation = claim.and_then(|claim| claim.status?.allocation);
    let devices = allocation.and_then(|allocation| allocation.devices);
    let results = devices.and_then(|devices| devices.results).unwrap_or_default();
    Ok(!results.is_empty() && results.iter().all(|result| result.admin_access == Some(true)))
}
