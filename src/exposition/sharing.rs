//! The labels that say who uses a device: which sets its series carry, and how many copies.

use std::collections::BTreeMap;

use super::scheme::{Settings, Show};
use crate::attribution::{Assignment, Attribution, DeviceKey, Holder, Jobs};

/// One set of labels, sorted by name.
pub(super) type Set<'a> = Vec<(&'a str, &'a str)>;

/// Who uses which device, and how that is to be shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sharing<'a> {
    pub(super) settings: &'a Settings,
    pub(super) assignment: &'a Assignment<'a>,
    pub(super) attribution: &'a Attribution,
}

/// The label sets of one device.
#[derive(Debug, Default)]
pub(super) struct Sets<'a> {
    /// One for each copy of the device's series; never empty.
    pub(super) copies: Vec<Set<'a>>,
    /// What holds for the device as a whole: families that are not copied carry this.
    pub(super) common: Set<'a>,
    /// The series of the whole device beside those of its sharers.
    pub(super) whole: Set<'a>,
    /// Whether the series that can be are divided among the sharers.
    pub(super) split: bool,
    /// Sharers by pod UID, where series are divided among them.
    pub(super) sharers: Vec<(&'a str, Set<'a>)>,
}

impl<'a> Sharing<'a> {
    /// The label sets of one device.
    pub(super) fn sets(&self, device: DeviceKey) -> Sets<'a> {
        let holders = self.shown(device);
        let nobody = self.nobody();
        let one_each: Vec<Set<'a>> = holders.iter().map(|holder| self.series(holder)).collect();
        let common = match one_each.as_slice() {
            [] => nobody.clone(),
            all => self.in_common(all),
        };
        let divided = !holders.is_empty() && self.is_divided(holders);
        let copies = if divided { distinct(one_each.clone()) } else { vec![common.clone()] };
        let jobs = self.jobs().of(device.gpu, device.instance);
        let mut sets =
            Sets { copies: with_jobs(copies, jobs), common, whole: nobody, ..Sets::default() };
        if let [only] = jobs {
            sets.common.push((JOB, only));
            sets.common.sort_unstable();
        }
        if divided && self.settings.attribution.split {
            sets.sharers = holders
                .iter()
                .zip(one_each)
                .filter_map(|(holder, mut set)| {
                    let uid = holder.facts?.uid.as_str();
                    if !set.iter().any(|(name, _)| *name == UID) {
                        set.push((UID, uid));
                        set.sort_unstable();
                    }
                    (!uid.is_empty()).then_some((uid, set))
                })
                .collect();
            // The whole belongs to none of several, also where nothing tells them apart.
            sets.split = holders.len() > 1 || !sets.sharers.is_empty();
        }
        sets
    }

    /// Whether one of several who share a device cannot be told by its processes, since its pod's
    /// UID is not known.
    pub(super) fn lacks_uid(&self, device: DeviceKey) -> bool {
        let holders = self.shown(device);
        let known = |holder: &Holder<'_>| holder.facts.is_some_and(|facts| !facts.uid.is_empty());
        holders.len() > 1 && self.is_divided(holders) && !holders.iter().all(known)
    }

    /// The holders that the labels of the device's own series do not fully tell.
    pub(super) fn untold(&self, device: DeviceKey) -> &'a [Holder<'a>] {
        let holders = self.assignment.of(device);
        let scheme = &self.settings.attribution;
        let told = match scheme.show {
            Show::Labels => {
                self.is_divided(holders)
                    || holders.windows(2).all(|two| two[0].container == two[1].container)
            }
            Show::Info | Show::Both => false,
        };
        if told { &[] } else { holders }
    }

    /// Labels of one holder in the info family: all that is known.
    pub(super) fn info(&self, holder: &Holder<'a>) -> Set<'a> {
        let mut set = self.pod(holder);
        set.push(("resource", holder.resource));
        set.extend(holder.replica.map(|replica| (VGPU, replica)));
        claim_labels(holder, &mut set);
        set.extend(
            holder
                .claim
                .map(|claim| ("dra_share_id", claim.share.as_str()))
                .filter(|(_, share)| !share.is_empty()),
        );
        set.sort_unstable();
        set
    }

    fn jobs(&self) -> &'a Jobs {
        &self.attribution.jobs
    }

    fn shown(&self, device: DeviceKey) -> &'a [Holder<'a>] {
        match self.settings.attribution.show {
            Show::Labels | Show::Both => self.assignment.of(device),
            Show::Info => &[],
        }
    }

    /// dcgm-exporter copies a shared device's series for each sharer when asked to, and always
    /// for DRA claims.
    fn is_divided(&self, holders: &[Holder<'_>]) -> bool {
        let scheme = &self.settings.attribution;
        scheme.split || scheme.dra && holders.iter().all(|holder| holder.claim.is_some())
    }

    /// Empty labels keep Prometheus from filling in those of the exporter's own pod.
    fn nobody(&self) -> Set<'a> {
        let scheme = &self.settings.attribution;
        let mut set = Set::new();
        if scheme.pods {
            set.extend(self.settings.labels.pod_names().map(|name| (name, "")));
        }
        set.extend(self.node());
        set.sort_unstable();
        set
    }

    fn node(&self) -> Option<(&'a str, &'a str)> {
        Some((NODE, self.settings.attribution.node.as_deref()?))
    }

    fn pod(&self, holder: &Holder<'a>) -> Set<'a> {
        let scheme = &self.settings.attribution;
        let [container, namespace, pod] = self.settings.labels.pod_names();
        let mut set = vec![
            (container, holder.container.name.as_str()),
            (namespace, holder.container.namespace.as_str()),
            (pod, holder.container.pod.as_str()),
        ];
        if scheme.pod_uid {
            set.push((UID, holder.facts.map_or("", |facts| facts.uid.as_str())));
        }
        set.extend(self.node());
        for (name, value) in holder.facts.iter().flat_map(|facts| &facts.labels) {
            set.push((name, value));
        }
        set
    }

    /// Labels of one holder on the device's series.
    fn series(&self, holder: &Holder<'a>) -> Set<'a> {
        let scheme = &self.settings.attribution;
        let mut set = self.pod(holder);
        if scheme.split {
            set.extend(holder.replica.map(|replica| (VGPU, replica)));
        }
        if scheme.dra {
            claim_labels(holder, &mut set);
        }
        set.sort_unstable();
        set
    }

    /// What all holders share; who differ in pod, namespace or container have that one empty.
    fn in_common(&self, all: &[Set<'a>]) -> Set<'a> {
        let mut values: BTreeMap<&'a str, (usize, Option<&str>)> = BTreeMap::new();
        for (name, value) in all.iter().flatten() {
            let entry = values.entry(name).or_insert((0, Some(value)));
            entry.0 += 1;
            entry.1 = entry.1.filter(|first| first == value);
        }
        let [container, namespace, pod] = self.settings.labels.pod_names();
        let agreed = |name: &str| {
            values.get(name).is_some_and(|(count, value)| *count == all.len() && value.is_some())
        };
        // A container of pods that differ, or a pod of namespaces that do, would be nobody's.
        let same_pod = agreed(namespace) && agreed(pod);
        let kept = |(name, (_, value)): (&&'a str, &(usize, Option<&'a str>))| {
            let name = *name;
            let belongs = same_pod || name == namespace || ![container, pod].contains(&name);
            match value {
                Some(value) if agreed(name) && belongs => Some((name, *value)),
                _ => [container, namespace, pod].contains(&name).then_some((name, "")),
            }
        };
        values.iter().filter_map(kept).collect()
    }
}

const JOB: &str = "hpc_job";
const NODE: &str = "node";
const UID: &str = "pod_uid";
const VGPU: &str = "vgpu";

fn claim_labels<'a>(holder: &Holder<'a>, set: &mut Set<'a>) {
    let Some(claim) = holder.claim else { return };
    set.extend([
        ("dra_claim_name", claim.name.as_str()),
        ("dra_claim_namespace", &claim.namespace),
        ("dra_device_name", &claim.device),
        ("dra_driver_name", &claim.driver),
        ("dra_pool_name", &claim.pool),
    ]);
    if let Some(mig) = holder.mig {
        set.extend([("dra_mig_device_uuid", mig.uuid), ("dra_mig_profile", mig.profile)]);
    }
}

/// Each set once: a page with a series twice is refused.
fn distinct(mut sets: Vec<Set<'_>>) -> Vec<Set<'_>> {
    let mut seen = std::collections::HashSet::new();
    sets.retain(|set| seen.insert(set.clone()));
    sets
}

/// One copy for each job, as dcgm-exporter does.
fn with_jobs<'a>(sets: Vec<Set<'a>>, jobs: &'a [String]) -> Vec<Set<'a>> {
    if jobs.is_empty() {
        return sets;
    }
    let mut copies = Vec::with_capacity(sets.len() * jobs.len());
    for set in sets {
        for job in jobs {
            let mut copy = set.clone();
            copy.push((JOB, job));
            copy.sort_unstable();
            copies.push(copy);
        }
    }
    distinct(copies)
}
