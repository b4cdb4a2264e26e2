//! A GPU's MIG instances, looked up anew on every pass.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use nvml_wrapper::Device;
use nvml_wrapper_sys::bindings as sys;

use super::code::{Code, Meaning};
use super::library::Session;
use super::raw::{Handle, nvml_call};
use crate::sampler::snapshot::InstanceIdentity;

/// No GPU has more slots; a larger answer is a driver's mistake.
const SLOTS_MAX: u32 = 64;

/// One GPU instance with a handle on which its own values are read.
#[derive(Debug)]
pub(super) struct Instance {
    /// The handle of its lowest compute instance.
    pub(super) handle: Handle,
    /// Who it is.
    pub(super) identity: Arc<InstanceIdentity>,
}

/// Remembers profile names by MIG UUID: a UUID is never given twice.
#[derive(Debug, Default)]
pub(super) struct Profiles(HashMap<String, String>);

/// One compute instance, which is what an NVML MIG handle stands for.
struct Compute {
    handle: Handle,
    id: u32,
    uuid: String,
    profile: String,
}

/// What the look-up of one GPU gave.
#[derive(Debug, Default)]
pub(super) struct Instances {
    /// Sorted by GPU instance id.
    pub(super) found: Vec<Instance>,
    /// Slots that answered neither "empty" nor a complete instance.
    pub(super) failed: Vec<(&'static str, Code)>,
}

/// Walks the MIG slots. An instance whose handle fails is left out and reported.
pub(super) fn instances(
    session: &Session,
    parent: Handle,
    profiles: &mut Profiles,
) -> Result<Instances, Code> {
    // SAFETY: the handle is this session's; NVML itself refuses one whose device is gone.
    let device = unsafe { Device::new(parent.0, session.nvml()) };
    let slots = device.mig_device_count()?.min(SLOTS_MAX);
    let mut all = Instances::default();
    let mut grouped: BTreeMap<u32, Vec<Compute>> = BTreeMap::new();
    for slot in 0..slots {
        match compute(session, parent, slot, profiles) {
            Ok((gpu_instance, compute)) => grouped.entry(gpu_instance).or_default().push(compute),
            // Slots are sparse.
            Err((_, Code::NOT_FOUND)) => {}
            // A GPU or a session that is gone is not a matter of one slot.
            Err((_, code))
                if matches!(
                    code.meaning(),
                    Meaning::Lost | Meaning::ResetRequired | Meaning::Session
                ) =>
            {
                return Err(code);
            }
            Err(failed) => all.failed.push(failed),
        }
    }
    profiles.0.retain(|uuid, _| grouped.values().flatten().any(|compute| compute.uuid == *uuid));
    all.found = grouped.into_iter().filter_map(|(id, group)| instance(id, group)).collect();
    Ok(all)
}

fn instance(gpu_instance: u32, mut group: Vec<Compute>) -> Option<Instance> {
    group.sort_by_key(|compute| compute.id);
    let first = group.first()?;
    Some(Instance {
        handle: first.handle,
        identity: Arc::new(InstanceIdentity {
            gpu_instance,
            profile: first.profile.clone(),
            uuids: group.iter().map(|compute| (compute.id, compute.uuid.clone())).collect(),
            placement: None,
        }),
    })
}

fn compute(
    session: &Session,
    parent: Handle,
    slot: u32,
    profiles: &mut Profiles,
) -> Result<(u32, Compute), (&'static str, Code)> {
    let nvml = session.nvml();
    let mut raw: sys::nvmlDevice_t = std::ptr::null_mut();
    nvml_call!(nvml, nvmlDeviceGetMigDeviceHandleByIndex(parent.0, slot, &raw mut raw))
        .map_err(|code| ("nvmlDeviceGetMigDeviceHandleByIndex", code))?;
    let mut gpu_instance = 0;
    nvml_call!(nvml, nvmlDeviceGetGpuInstanceId(raw, &raw mut gpu_instance))
        .map_err(|code| ("nvmlDeviceGetGpuInstanceId", code))?;
    let mut id = 0;
    nvml_call!(nvml, nvmlDeviceGetComputeInstanceId(raw, &raw mut id))
        .map_err(|code| ("nvmlDeviceGetComputeInstanceId", code))?;
    // SAFETY: NVML has just given the handle.
    let device = unsafe { Device::new(raw, nvml) };
    let uuid = device.uuid().map_err(|error| ("nvmlDeviceGetUUID", Code::from(error)))?;
    let profile = if let Some(profile) = profiles.0.get(&uuid) {
        profile.clone()
    } else {
        let name = device.name().map_err(|error| ("nvmlDeviceGetName", Code::from(error)))?;
        let profile = profile_of(&name);
        profiles.0.insert(uuid.clone(), profile.clone());
        profile
    };
    Ok((gpu_instance, Compute { handle: Handle(raw), id, uuid, profile }))
}

/// `NVIDIA A100-SXM4-80GB MIG 1c.3g.40gb` is compute instance `1c` of profile `3g.40gb`; a row is
/// a GPU instance, so the compute part is dropped.
fn profile_of(name: &str) -> String {
    let profile = name.rsplit_once("MIG ").map_or("", |(_, profile)| profile.trim());
    match profile.split_once('.') {
        Some((compute, rest)) if compute.ends_with('c') => rest.to_owned(),
        _ => profile.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::profile_of;

    #[test]
    fn a_profile_is_what_follows_mig_without_the_compute_part() {
        for (name, profile) in [
            ("NVIDIA A100-SXM4-80GB MIG 1g.10gb", "1g.10gb"),
            ("NVIDIA A100-SXM4-80GB MIG 1c.3g.40gb", "3g.40gb"),
            ("NVIDIA H100 80GB HBM3 MIG 1g.10gb+me", "1g.10gb+me"),
            ("NVIDIA H200 MIG 2c.7g.141gb", "7g.141gb"),
            ("NVIDIA H200", ""),
        ] {
            assert_eq!(profile_of(name), profile, "{name}");
        }
    }
}
