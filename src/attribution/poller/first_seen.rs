//! Since when pods are listed with an id.

use std::collections::HashMap;

use crate::attribution::{DeviceId, Holding};

/// The numbers of the polls that first showed an id with a pod. What is no longer listed is
/// forgotten: a pod that comes back comes anew.
#[derive(Debug, Default)]
pub(super) struct FirstSeen {
    polls: u64,
    known: HashMap<(DeviceId, String, String), u64>,
}

impl FirstSeen {
    /// One more poll, which showed these.
    pub(super) fn stamp(&mut self, holdings: &mut [Holding]) {
        self.polls += 1;
        let mut former = std::mem::take(&mut self.known);
        for holding in holdings {
            let container = &holding.container;
            let key = (holding.id.clone(), container.namespace.clone(), container.pod.clone());
            let new = former.remove(&key).unwrap_or(self.polls);
            holding.since = *self.known.entry(key).or_insert(new);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::attribution::{Container, Target};

    fn holding(pod: &str, container: &str, minor: u32) -> Holding {
        Holding {
            container: Arc::new(Container {
                namespace: "ml".to_owned(),
                pod: pod.to_owned(),
                name: container.to_owned(),
            }),
            resource: "nvidia.com/gpu".into(),
            id: DeviceId { target: Target::Minor(minor), replica: None },
            claim: None,
            since: 0,
        }
    }

    fn stamps(seen: &mut FirstSeen, mut holdings: Vec<Holding>) -> Vec<u64> {
        seen.stamp(&mut holdings);
        holdings.iter().map(|holding| holding.since).collect()
    }

    #[test]
    fn a_pod_has_the_number_of_its_first_poll_until_it_is_gone() {
        let mut seen = FirstSeen::default();
        let a = || holding("a", "main", 0);
        let b = || holding("b", "main", 0);
        assert_eq!(stamps(&mut seen, vec![a()]), [1]);
        assert_eq!(stamps(&mut seen, vec![b(), a()]), [2, 1]);
        assert_eq!(stamps(&mut seen, vec![b()]), [2]);
        assert_eq!(stamps(&mut seen, vec![a(), b()]), [4, 2]);
    }

    #[test]
    fn a_pods_containers_have_one_number_and_its_devices_their_own() {
        let mut seen = FirstSeen::default();
        assert_eq!(stamps(&mut seen, vec![holding("a", "main", 0)]), [1]);
        let more = vec![holding("a", "main", 0), holding("a", "side", 0), holding("a", "main", 1)];
        assert_eq!(stamps(&mut seen, more), [1, 1, 2]);
    }
}
