//! What the kubelet says of devices, as Kubernetes' own client library reads it.

use std::collections::BTreeSet;

use crate::shell::Outcome;

/// A container that holds a device.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Holder {
    pub(super) namespace: String,
    pub(super) pod: String,
    pub(super) container: String,
}

/// One device of a container, as `List` tells.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Held {
    pub(super) holder: Holder,
    pub(super) resource: String,
    pub(super) id: String,
}

/// Both answers of the pod-resources API that the test looks at.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Answer {
    /// All containers, with devices or without.
    pub(super) containers: BTreeSet<Holder>,
    pub(super) held: BTreeSet<Held>,
    /// Resource and id of what can be given, or is given.
    pub(super) allocatable: BTreeSet<(String, String)>,
}

impl Answer {
    /// From the lines that `tests/kubelet/record` writes.
    pub(super) fn parse(text: &str) -> Outcome<Self> {
        let mut answer = Self::default();
        for line in text.lines() {
            match line.split(' ').collect::<Vec<_>>()[..] {
                ["list", namespace, pod, container, resource, id, _] => {
                    let holder = Holder {
                        namespace: namespace.to_owned(),
                        pod: pod.to_owned(),
                        container: container.to_owned(),
                    };
                    answer.containers.insert(holder.clone());
                    if id != "-" {
                        let (resource, id) = (resource.to_owned(), id.to_owned());
                        answer.held.insert(Held { holder, resource, id });
                    }
                }
                ["allocatable", resource, id, _] => {
                    answer.allocatable.insert((resource.to_owned(), id.to_owned()));
                }
                _ => return Err(format!("record wrote an unknown line: {line}")),
            }
        }
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_without_devices_is_listed_and_holds_nothing() {
        let text = "list ml trainer main nvidia.com/gpu GPU-1 0\nlist ml trainer log - - -\n\
                    allocatable nvidia.com/gpu GPU-1 0\n";
        let answer = Answer::parse(text).unwrap();
        assert_eq!(answer.containers.len(), 2);
        let held: Vec<_> = answer.held.iter().map(|held| held.id.as_str()).collect();
        assert_eq!(held, ["GPU-1"]);
        assert_eq!(answer.allocatable.len(), 1);
    }

    #[test]
    fn a_line_of_another_kind_is_refused() {
        assert!(Answer::parse("list ml trainer main").is_err());
    }
}
