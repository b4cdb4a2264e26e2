//! Pods that hold devices, and those that processes belong to.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::uses::{Found, Process, Seen, sm};
use super::{Details, Tenant};
use crate::attribution::{Assignment, Attribution, DeviceKey, PodFacts};
use crate::sampler::owners::Owner;

/// A pod by namespace and name.
type Name<'a> = (&'a str, &'a str);

/// Pods that hold devices or that processes belong to.
pub(super) struct Pods<'a> {
    assignment: &'a Assignment<'a>,
    attribution: &'a Attribution,
    by_uid: HashMap<&'a str, Name<'a>>,
    pub(super) held_known: bool,
}

impl<'a> Pods<'a> {
    pub(super) fn new(assignment: &'a Assignment<'a>, attribution: &'a Attribution) -> Self {
        let named = attribution.pods.iter().filter(|(_, facts)| !facts.uid.is_empty());
        Self {
            assignment,
            attribution,
            by_uid: named.map(|(name, facts)| (facts.uid.as_str(), name)).collect(),
            held_known: attribution.allocations.is_some(),
        }
    }

    /// The pod of a process.
    pub(super) fn of(&self, owner: &Owner) -> Option<(Arc<str>, Arc<str>)> {
        let (namespace, pod) = self.by_uid.get(owner.pod_uid.as_deref()?)?;
        Some(((*namespace).into(), (*pod).into()))
    }

    /// Who holds a device or has processes on it. Who holds a whole GPU that is cut into
    /// instances holds those that nobody else does.
    pub(super) fn uses(&self, device: DeviceKey, seen: &Seen<'_>) -> Found {
        let whole = DeviceKey { instance: None, ..device };
        let own = self.assignment.of(device);
        let holders = if own.is_empty() { self.assignment.of(whole) } else { own }.iter();
        let holders: BTreeSet<Name<'_>> = holders
            .map(|holder| (holder.container.namespace.as_str(), holder.container.pod.as_str()))
            .collect();
        let guessed = self.only_one_it_can_be(&holders, seen);
        let mut of_pods: BTreeMap<Name<'_>, Vec<Process<'_>>> = BTreeMap::new();
        let mut strangers = Vec::new();
        for process in seen.all.values() {
            let Some(uid) = process.owner.and_then(|owner| owner.pod_uid.as_deref()) else {
                continue;
            };
            let known = self.by_uid.get(uid).copied();
            match known.or_else(|| guessed.filter(|(guess, _)| *guess == uid).map(|(_, pod)| pod)) {
                Some(pod) => of_pods.entry(pod).or_default().push(*process),
                None => strangers.push(process),
            }
        }
        let mut found = Found::default();
        let mut held = 0;
        let all: BTreeSet<Name<'_>> = holders.iter().chain(of_pods.keys()).copied().collect();
        for (namespace, pod) in all {
            let facts = self.attribution.pods.get_shared(namespace, pod);
            let holds = holders.contains(&(namespace, pod));
            let own = of_pods.remove(&(namespace, pod)).unwrap_or_default();
            // Without a UID, processes of unknown pods may be this one's.
            let told = !own.is_empty()
                || strangers.is_empty()
                || facts.as_ref().is_some_and(|facts| !facts.uid.is_empty());
            let tenant = Tenant::Pod { namespace: namespace.into(), pod: pod.into() };
            let mut one = seen.use_of(tenant, Details { facts, ..Details::default() }, &own);
            one.holds = holds;
            if !told {
                found.untold = true;
                (one.processes, one.memory_bytes, one.utilization) = (None, None, None);
            }
            held += if holds { own.len() } else { 0 };
            found.uses.push(one);
        }
        let hidden = seen.all.values().filter(|process| process.owner.is_none());
        let untold = strangers.into_iter().filter(|_| found.untold);
        found.unseen = sm(hidden) + sm(untold);
        found.foreign = seen.all.len() > held;
        found
    }

    /// The one UID on a device that is nobody's, and the one pod that holds it without a UID.
    fn only_one_it_can_be<'s>(
        &self,
        holders: &BTreeSet<Name<'s>>,
        seen: &Seen<'s>,
    ) -> Option<(&'s str, Name<'s>)> {
        let uids = seen.all.values().filter_map(|process| process.owner?.pod_uid.as_deref());
        let unknown: BTreeSet<&str> = uids.filter(|uid| !self.by_uid.contains_key(uid)).collect();
        let has_uid = |facts: &PodFacts| !facts.uid.is_empty();
        let (Some(pod), 1, 1) = (holders.first(), holders.len(), unknown.len()) else {
            return None;
        };
        let nameless = !self.attribution.pods.get(pod.0, pod.1).is_some_and(has_uid);
        nameless.then(|| Some((*unknown.first()?, *pod))).flatten()
    }
}
