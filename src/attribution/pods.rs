//! What the API server says of this node's pods.

use std::collections::HashMap;
use std::sync::Arc;

/// Facts about pods by namespace and name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PodTable {
    pods: HashMap<String, HashMap<String, Arc<PodFacts>>>,
}

/// What is wanted of one pod.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PodFacts {
    /// `metadata.uid`.
    pub uid: String,
    /// Whether it has ended (`Succeeded` or `Failed`): kubelets before 1.34 go on listing it.
    pub finished: bool,
    /// Labels for its series, from pod labels, annotations and owners: names valid and distinct,
    /// none of them a name that a device or the attribution itself uses; sorted by name.
    pub labels: Vec<(String, String)>,
}

impl PodTable {
    /// Facts about one pod.
    #[must_use]
    pub fn get(&self, namespace: &str, name: &str) -> Option<&PodFacts> {
        Some(&**self.pods.get(namespace)?.get(name)?)
    }

    /// The same, to be kept.
    #[must_use]
    pub fn get_shared(&self, namespace: &str, name: &str) -> Option<Arc<PodFacts>> {
        self.pods.get(namespace)?.get(name).cloned()
    }

    /// All pods, by namespace and name, in no order.
    pub fn iter(&self) -> impl Iterator<Item = ((&str, &str), &PodFacts)> {
        self.pods.iter().flat_map(|(namespace, pods)| {
            pods.iter().map(move |(name, facts)| ((namespace.as_str(), name.as_str()), &**facts))
        })
    }

    /// Adds a pod, or replaces what is known of it.
    pub fn insert(&mut self, namespace: &str, name: &str, facts: PodFacts) {
        self.pods.entry(namespace.to_owned()).or_default().insert(name.to_owned(), Arc::new(facts));
    }

    /// How many pods are known.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pods.values().map(HashMap::len).sum()
    }

    /// Whether none is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pods.is_empty()
    }
}
