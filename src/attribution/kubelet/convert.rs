//! The kubelet's messages made into allocations; pure.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use regex::Regex;

use super::messages::{
    AllocatableResourcesResponse, ContainerDevices, ContainerResources, DynamicResource,
    ListPodResourcesResponse, PodResources,
};
use crate::attribution::dra::{self, dra_target};
use crate::attribution::resource::{ResourceNames, Verdict};
use crate::attribution::{Allocations, Claim, Container, DeviceId, Holding};

/// Whose devices count.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    /// Which resources are GPUs.
    pub names: ResourceNames,
    /// The exporter's own pod, which uses no device although it may hold all of them.
    pub own_pod: Option<OwnPod>,
    /// Pods to leave out: matched on `namespace/name`.
    pub ignore: Vec<Regex>,
}

/// The pod that the exporter itself runs in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnPod {
    /// Its namespace; if that is not known, its name alone has to do.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
}

/// What one look at the kubelet told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// Who holds what; without regard to administrators' claims, which the kubelet does not mark.
    pub allocations: Allocations,
    /// Claims of NVIDIA's DRA driver among them: namespace and name.
    pub claims: BTreeSet<(String, String)>,
    /// How much was listed.
    pub seen: Seen,
}

/// How much the kubelet listed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    /// Pods, with GPUs and without.
    pub pods: usize,
    /// Their containers.
    pub containers: usize,
    /// Device ids of GPUs that count, each use by a container.
    pub ids: usize,
    /// Device ids of other resources, by the resource's or the DRA driver's name.
    pub other: BTreeMap<String, usize>,
}

impl Rules {
    fn leaves_out(&self, pod: &PodResources) -> bool {
        let is_own = |own: &OwnPod| {
            own.name == pod.name && own.namespace.as_ref().is_none_or(|own| *own == pod.namespace)
        };
        if self.own_pod.as_ref().is_some_and(is_own) {
            return true;
        }
        if self.ignore.is_empty() {
            return false;
        }
        let name = format!("{}/{}", pod.namespace, pod.name);
        self.ignore.iter().any(|pattern| pattern.is_match(&name))
    }
}

/// Reads one answer. Holdings are those of the first poll; who numbers polls stamps them.
#[must_use]
pub fn convert(
    list: &ListPodResourcesResponse,
    allocatable: Option<&AllocatableResourcesResponse>,
    rules: &Rules,
) -> Answer {
    let mut reading = Reading { rules, answer: Answer::default(), names: BTreeSet::new() };
    for pod in &list.pod_resources {
        reading.answer.seen.pods += 1;
        reading.answer.seen.containers += pod.containers.len();
        if !rules.leaves_out(pod) {
            for container in &pod.containers {
                reading.container(pod, container);
            }
        }
    }
    let mut answer = reading.answer;
    answer.allocations.holdings.sort_unstable();
    answer.allocations.holdings.dedup();
    answer.allocations.unknown.sort_unstable();
    answer.allocations.unknown.dedup();
    answer.allocations.allocatable = allocatable.map(|answer| count(&answer.devices, rules));
    answer
}

struct Reading<'a> {
    rules: &'a Rules,
    answer: Answer,
    /// Names of resources, each held once.
    names: BTreeSet<Arc<str>>,
}

impl Reading<'_> {
    fn container(&mut self, pod: &PodResources, container: &ContainerResources) {
        let holder = Arc::new(Container {
            namespace: pod.namespace.clone(),
            pod: pod.name.clone(),
            name: container.name.clone(),
        });
        for devices in &container.devices {
            for id in &devices.device_ids {
                let verdict = self.rules.names.judge(&devices.resource_name, id);
                self.take(&holder, (&devices.resource_name, id), verdict, None);
            }
        }
        for claim in &container.dynamic_resources {
            self.claim(&holder, claim);
        }
    }

    fn claim(&mut self, holder: &Arc<Container>, claim: &DynamicResource) {
        for device in &claim.claim_resources {
            // Another driver's `gpu-0` may be anything.
            let verdict = if device.driver_name == dra::DRIVER {
                let key = (claim.claim_namespace.clone(), claim.claim_name.clone());
                self.answer.claims.insert(key);
                let id = |target| Verdict::Device(DeviceId { target, replica: None });
                dra_target(&device.device_name).map_or(Verdict::Unknown, id)
            } else {
                Verdict::NotOurs
            };
            let through = Arc::new(Claim {
                name: claim.claim_name.clone(),
                namespace: claim.claim_namespace.clone(),
                driver: device.driver_name.clone(),
                pool: device.pool_name.clone(),
                device: device.device_name.clone(),
                share: device.share_id.clone().unwrap_or_default(),
            });
            let named = (device.driver_name.as_str(), device.device_name.as_str());
            self.take(holder, named, verdict, Some(through));
        }
    }

    fn take(
        &mut self,
        holder: &Arc<Container>,
        (resource, id): (&str, &str),
        verdict: Verdict,
        claim: Option<Arc<Claim>>,
    ) {
        if verdict == Verdict::NotOurs {
            *self.answer.seen.other.entry(resource.to_owned()).or_default() += 1;
            return;
        }
        self.answer.seen.ids += 1;
        let resource = self.name(resource);
        let allocations = &mut self.answer.allocations;
        if let Verdict::Device(id) = verdict {
            let container = Arc::clone(holder);
            allocations.holdings.push(Holding { container, resource, id, claim, since: 0 });
        } else {
            allocations.unknown.push((resource, id.to_owned()));
        }
    }

    fn name(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.names.get(name) {
            return Arc::clone(known);
        }
        let name: Arc<str> = name.into();
        self.names.insert(Arc::clone(&name));
        name
    }
}

/// How many ids of each GPU resource there are; also of forms that are not known.
fn count(devices: &[ContainerDevices], rules: &Rules) -> BTreeMap<Arc<str>, usize> {
    let mut ids: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for entry in devices {
        for id in &entry.device_ids {
            if rules.names.judge(&entry.resource_name, id) != Verdict::NotOurs {
                ids.entry(&entry.resource_name).or_default().insert(id);
            }
        }
    }
    ids.into_iter().map(|(name, ids)| (name.into(), ids.len())).collect()
}

#[cfg(test)]
mod tests;
