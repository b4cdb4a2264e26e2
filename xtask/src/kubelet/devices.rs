//! The simulated devices, as the exporter's page names them, and what pods ask them by.

use std::collections::{BTreeMap, BTreeSet};

use super::answer::{Answer, Holder};
use super::page::{Labels, series};
use crate::shell::Outcome;

/// A field that each device has, so that its series are the devices.
const EACH_DEVICE: &str = "DCGM_FI_DEV_GPU_TEMP";
const INSTANCES: &str = "nvml_mig_instance_info";
/// One a device and holder, however device series are labelled.
const HOLDERS: &str = "nvml_device_pod_info";
/// Replicas of the time-sliced GPU.
const REPLICAS: usize = 4;

/// What distinguishes devices on the page: a GPU's UUID, and the number of an instance, or none.
pub(super) type Device = (String, String);

/// The devices that are announced to the kubelet.
pub(super) struct Devices {
    all: BTreeSet<Device>,
    /// By the id under which the kubelet knows it, without the number of a replica.
    by_id: BTreeMap<String, Device>,
    /// Resource to ids, as the plugin's arguments.
    pub(super) announced: BTreeMap<&'static str, Vec<String>>,
}

impl Devices {
    /// One GPU is given whole, one is shared, and MIG instances are given by their profile.
    pub(super) fn on(page: &str) -> Outcome<Self> {
        let temperatures = series(page, EACH_DEVICE);
        let whole: Vec<&Labels> =
            temperatures.iter().filter(|labels| !labels.contains_key("GPU_I_ID")).collect();
        let [given, shared, ..] = whole[..] else {
            return Err(format!("the page has {} whole GPUs, two are needed", whole.len()));
        };
        let (given, shared) = (given["UUID"].clone(), shared["UUID"].clone());
        let mut by_id: BTreeMap<String, Device> =
            [&given, &shared].map(|uuid| (uuid.clone(), (uuid.clone(), String::new()))).into();
        let mut announced: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
        // On a NUMA node each, as on a board with two sockets.
        announced.insert("nvidia.com/gpu", vec![format!("{given}=0")]);
        let replicas = (0..REPLICAS).map(|replica| format!("{shared}::{replica}=1")).collect();
        announced.insert("nvidia.com/gpu.shared", replicas);
        for labels in series(page, INSTANCES) {
            let resource = match labels["GPU_I_PROFILE"].as_str() {
                "1g.18gb" => "nvidia.com/mig-1g.18gb",
                "2g.35gb" => "nvidia.com/mig-2g.35gb",
                _ => continue,
            };
            let id = labels["mig_uuid"].clone();
            by_id.insert(id.clone(), device(&labels));
            announced.entry(resource).or_default().push(id);
        }
        if announced.len() < 4 {
            return Err(format!("the page lacks MIG instances; it has {:?}", announced.keys()));
        }
        Ok(Self { all: temperatures.iter().map(device).collect(), by_id, announced })
    }

    /// Resource and id of all that is announced.
    pub(super) fn allocatable(&self) -> BTreeSet<(String, String)> {
        let each = self.announced.iter().flat_map(|(resource, ids)| {
            ids.iter().map(|id| {
                let id = id.split('=').next().unwrap_or(id);
                ((*resource).to_owned(), id.to_owned())
            })
        });
        each.collect()
    }

    fn holders(&self, answer: &Answer) -> Outcome<BTreeMap<Device, BTreeSet<Holder>>> {
        let mut holders: BTreeMap<Device, BTreeSet<Holder>> = BTreeMap::new();
        for held in &answer.held {
            let id = held.id.split("::").next().unwrap_or(&held.id);
            let device = self.by_id.get(id).ok_or_else(|| format!("{id} was not announced"))?;
            holders.entry(device.clone()).or_default().insert(held.holder.clone());
        }
        Ok(holders)
    }

    /// Compares a page with what the kubelet says: each device has its holder's labels, or empty
    /// ones; each holder is told.
    pub(super) fn check(&self, page: &str, answer: &Answer) -> Outcome {
        let expected = self.holders(answer)?;
        let shown = shown(page)?;
        for device in &self.all {
            let holders = expected.get(device).cloned().unwrap_or_default();
            agree(device, shown.get(device), &holders)?;
        }
        let told = told(page)?;
        if told != expected {
            return Err(format!("{HOLDERS} has {told:?}, the kubelet says {expected:?}"));
        }
        Ok(())
    }

    /// The same for held devices alone: what others are said to be does not matter.
    pub(super) fn check_held(&self, page: &str, answer: &Answer) -> Outcome {
        let (shown, told) = (shown(page)?, told(page)?);
        for (device, holders) in self.holders(answer)? {
            agree(&device, shown.get(&device), &holders)?;
            if told.get(&device) != Some(&holders) {
                return Err(format!("{HOLDERS} of {device:?} lacks {holders:?}"));
            }
        }
        Ok(())
    }
}

/// The labels on each device's series.
fn shown(page: &str) -> Outcome<BTreeMap<Device, Vec<Option<Holder>>>> {
    let mut shown: BTreeMap<Device, Vec<Option<Holder>>> = BTreeMap::new();
    for labels in series(page, EACH_DEVICE) {
        shown.entry(device(&labels)).or_default().push(holder(&labels)?);
    }
    Ok(shown)
}

fn told(page: &str) -> Outcome<BTreeMap<Device, BTreeSet<Holder>>> {
    let mut told: BTreeMap<Device, BTreeSet<Holder>> = BTreeMap::new();
    for labels in series(page, HOLDERS) {
        told.entry(device(&labels)).or_default().extend(holder(&labels)?);
    }
    Ok(told)
}

fn agree(
    device: &Device,
    shown: Option<&Vec<Option<Holder>>>,
    holders: &BTreeSet<Holder>,
) -> Outcome {
    let shown = shown.map(Vec::as_slice).unwrap_or_default();
    let right = match holders.len() {
        0 => shown == [None],
        1 => shown == [holders.first().cloned()],
        // One of several would be a lie; all of them, or none, is a choice.
        _ => shown == [None] || shown.len() == holders.len(),
    };
    if right {
        return Ok(());
    }
    Err(format!("{EACH_DEVICE} of {device:?} has {shown:?}, the kubelet says {holders:?}"))
}

fn device(labels: &Labels) -> Device {
    let label = |name| labels.get(name).cloned().unwrap_or_default();
    (label("UUID"), label("GPU_I_ID"))
}

/// Empty labels are nobody; labels that are not there are an error.
fn holder(labels: &Labels) -> Outcome<Option<Holder>> {
    let label = |name: &str| {
        labels.get(name).cloned().ok_or_else(|| format!("a device series lacks the label {name}"))
    };
    let (namespace, pod, container) = (label("namespace")?, label("pod")?, label("container")?);
    let nobody = [&namespace, &pod, &container].iter().all(|value| value.is_empty());
    Ok((!nobody).then_some(Holder { namespace, pod, container }))
}
