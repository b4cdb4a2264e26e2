//! Who made a pod.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

/// The label by which a Deployment tells its `ReplicaSets` apart.
const TEMPLATE_HASH: &str = "pod-template-hash";

/// Kind and name of a pod's controller. A `ReplicaSet` that a Deployment has made is named by it,
/// a dash and the hash that the pod bears too: then it is the Deployment, without asking for it.
pub(super) fn owner(
    references: &[OwnerReference],
    labels: &BTreeMap<String, String>,
) -> Option<(String, String)> {
    let controller = references.iter().find(|reference| reference.controller == Some(true))?;
    let deployment = labels
        .get(TEMPLATE_HASH)
        .filter(|_| controller.kind == "ReplicaSet")
        .and_then(|hash| controller.name.strip_suffix(hash.as_str())?.strip_suffix('-'))
        .filter(|name| !name.is_empty());
    Some(match deployment {
        Some(name) => ("Deployment".to_owned(), name.to_owned()),
        None => (controller.kind.clone(), controller.name.clone()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replica_set_of_a_deployment_is_the_deployment() {
        let reference = |kind: &str, name: &str, controller| OwnerReference {
            kind: kind.to_owned(),
            name: name.to_owned(),
            controller: Some(controller),
            ..OwnerReference::default()
        };
        let hash = BTreeMap::from([(TEMPLATE_HASH.to_owned(), "7d9f8".to_owned())]);
        let is = |kind: &str, name: &str| Some((kind.to_owned(), name.to_owned()));
        for (references, labels, expected) in [
            (vec![reference("ReplicaSet", "web-7d9f8", true)], &hash, is("Deployment", "web")),
            (vec![reference("ReplicaSet", "web", true)], &hash, is("ReplicaSet", "web")),
            (vec![reference("ReplicaSet", "-7d9f8", true)], &hash, is("ReplicaSet", "-7d9f8")),
            (
                vec![reference("ReplicaSet", "web-7d9f8", true)],
                &BTreeMap::new(),
                is("ReplicaSet", "web-7d9f8"),
            ),
            (
                vec![reference("Node", "n", false), reference("Job", "train-7d9f8", true)],
                &hash,
                is("Job", "train-7d9f8"),
            ),
            (vec![reference("Node", "n", false)], &hash, None),
        ] {
            assert_eq!(owner(&references, labels), expected, "{references:?}");
        }
    }
}
