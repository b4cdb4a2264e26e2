//! A GPU's MIG instances, looked up anew on every pass.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use nvml_wrapper::Device;
use nvml_wrapper_sys::bindings as sys;

use super::code::{Code, Meaning};
use super::library::Session;
use super::raw::{Handle, nvml_call, zeroed};
use crate::sampler::snapshot::{InstanceIdentity, Placement};

/// No GPU has more slots; a larger answer is a driver's mistake.
const SLOTS_MAX: u32 = 64;

/// One GPU instance with a handle on which its own values are read.
#[derive(Debug)]
pub(super) struct Instance {
    /// The handle of its lowest compute instance.
    pub(super) handle: Handle,
    /// The handles of all its compute instances.
    pub(super) parts: Vec<Handle>,
    /// Who it is.
    pub(super) identity: Arc<InstanceIdentity>,
}

/// Remembers what does not change, by MIG UUID: a UUID is never given twice.
#[derive(Debug, Default)]
pub(super) struct Known {
    facts: HashMap<String, Facts>,
    /// How many MIG devices the GPU can have.
    pub(super) slots: Option<u32>,
}

/// What is known of one MIG device.
#[derive(Debug, Default)]
struct Facts {
    profile: String,
    placement: Option<Placement>,
    /// Whether there is nothing to be gained by asking for the placement.
    placed: bool,
}

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
    /// Calls that failed otherwise than by an empty slot or an unsupported question.
    pub(super) failed: Vec<(&'static str, Code)>,
}

/// Walks the MIG slots. An instance whose handle fails is left out and reported; one whose
/// placement, if that is asked for, fails is there without.
pub(super) fn instances(
    session: &Session,
    parent: Handle,
    known: &mut Known,
    placements: bool,
) -> Result<Instances, Code> {
    // SAFETY: the handle is this session's; NVML itself refuses one whose device is gone.
    let device = unsafe { Device::new(parent.0, session.nvml()) };
    let slots = device.mig_device_count()?.min(SLOTS_MAX);
    known.slots = Some(slots);
    let mut all = Instances::default();
    let mut grouped: BTreeMap<u32, Vec<Compute>> = BTreeMap::new();
    for slot in 0..slots {
        match compute(session, parent, slot, known) {
            Ok((gpu_instance, compute)) => grouped.entry(gpu_instance).or_default().push(compute),
            // Slots are sparse.
            Err((_, Code::NOT_FOUND)) => {}
            Err((_, code)) if is_gone(code) => return Err(code),
            Err(failed) => all.failed.push(failed),
        }
    }
    known.facts.retain(|uuid, _| grouped.values().flatten().any(|compute| compute.uuid == *uuid));
    for (id, mut group) in grouped {
        group.sort_by_key(|compute| compute.id);
        let Some(first) = group.first() else { continue };
        let placement = if placements {
            known.placement(&first.uuid, || placement(session, parent, id), &mut all.failed)?
        } else {
            None
        };
        all.found.push(Instance {
            handle: first.handle,
            parts: group.iter().map(|compute| compute.handle).collect(),
            identity: Arc::new(InstanceIdentity {
                gpu_instance: id,
                profile: first.profile.clone(),
                uuids: group.iter().map(|compute| (compute.id, compute.uuid.clone())).collect(),
                placement,
            }),
        });
    }
    Ok(all)
}

/// A GPU or a session that is gone is not a matter of one slot or instance.
fn is_gone(code: Code) -> bool {
    matches!(code.meaning(), Meaning::Lost | Meaning::ResetRequired | Meaning::Session)
}

impl Known {
    /// The placement of the instance that a MIG device belongs to. It is asked once; a driver that
    /// will not tell is not asked again, and that is no failure.
    fn placement(
        &mut self,
        uuid: &str,
        ask: impl FnOnce() -> Result<Placement, (&'static str, Code)>,
        failed: &mut Vec<(&'static str, Code)>,
    ) -> Result<Option<Placement>, Code> {
        let Some(facts) = self.facts.get_mut(uuid) else { return Ok(None) };
        if facts.placed {
            return Ok(facts.placement);
        }
        let answer = ask();
        facts.placement = answer.as_ref().ok().copied();
        facts.placed = true;
        if let Err((call, code)) = answer {
            match code.meaning() {
                _ if is_gone(code) => return Err(code),
                Meaning::Unsupported => {}
                // An instance that this instant ceased to be is not in the next walk; one that is
                // will not be found by asking again.
                Meaning::Stale => failed.push((call, code)),
                _ => {
                    facts.placed = false;
                    failed.push((call, code));
                }
            }
        }
        Ok(facts.placement)
    }
}

/// Asks where a GPU instance lies: nvml.h wants a privileged user for the first call, and drivers
/// answer `NO_PERMISSION` to others.
fn placement(
    session: &Session,
    parent: Handle,
    gpu_instance: u32,
) -> Result<Placement, (&'static str, Code)> {
    let nvml = session.nvml();
    let mut raw: sys::nvmlGpuInstance_t = std::ptr::null_mut();
    nvml_call!(nvml, nvmlDeviceGetGpuInstanceById(parent.0, gpu_instance, &raw mut raw))
        .map_err(|code| ("nvmlDeviceGetGpuInstanceById", code))?;
    let mut info: sys::nvmlGpuInstanceInfo_st = zeroed();
    nvml_call!(nvml, nvmlGpuInstanceGetInfo(raw, &raw mut info))
        .map_err(|code| ("nvmlGpuInstanceGetInfo", code))?;
    let (start, size) = (info.placement.start, info.placement.size);
    Ok(Placement { profile_id: info.profileId, start, size })
}

fn compute(
    session: &Session,
    parent: Handle,
    slot: u32,
    known: &mut Known,
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
    let profile = if let Some(facts) = known.facts.get(&uuid) {
        facts.profile.clone()
    } else {
        let name = device.name().map_err(|error| ("nvmlDeviceGetName", Code::from(error)))?;
        let profile = profile_of(&name);
        known.facts.insert(uuid.clone(), Facts { profile: profile.clone(), ..Facts::default() });
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
    use super::{Code, Facts, Known, Placement, profile_of};

    const PLACEMENT: Placement = Placement { profile_id: 19, start: 4, size: 1 };

    /// What asking once, then twice more gives, the failures, and how often NVML was asked.
    fn ask(answers: &[Result<Placement, Code>]) -> (Vec<Option<Placement>>, usize, usize) {
        let mut known =
            Known { facts: [("MIG-a".to_owned(), Facts::default())].into(), slots: None };
        let (mut failed, mut asked) = (Vec::new(), 0);
        let mut get = || {
            let answer = answers[asked.min(answers.len() - 1)].map_err(|code| ("call", code));
            let mut ask = || {
                asked += 1;
                answer
            };
            known.placement("MIG-a", &mut ask, &mut failed).unwrap()
        };
        let got = (0..3).map(|_| get()).collect();
        (got, failed.len(), asked)
    }

    #[test]
    fn a_placement_is_asked_once_whatever_the_driver_says_of_it() {
        let some = vec![Some(PLACEMENT); 3];
        assert_eq!(ask(&[Ok(PLACEMENT)]), (some, 0, 1));
        for code in [Code::NO_PERMISSION, Code::NOT_SUPPORTED, Code::FUNCTION_NOT_FOUND] {
            assert_eq!(ask(&[Err(code)]), (vec![None; 3], 0, 1), "{code:?} is no failure");
        }
        assert_eq!(ask(&[Err(Code::NOT_FOUND)]), (vec![None; 3], 1, 1));
    }

    #[test]
    fn a_placement_that_failed_for_once_is_asked_again() {
        let answers = [Err(Code::TIMEOUT), Ok(PLACEMENT)];
        let got = vec![None, Some(PLACEMENT), Some(PLACEMENT)];
        assert_eq!(ask(&answers), (got, 1, 2));
    }

    #[test]
    fn a_gpu_that_is_gone_ends_the_walk() {
        let mut known =
            Known { facts: [("MIG-a".to_owned(), Facts::default())].into(), slots: None };
        let lost = || Err(("call", Code::GPU_IS_LOST));
        let answer = known.placement("MIG-a", lost, &mut Vec::new());
        assert_eq!(answer, Err(Code::GPU_IS_LOST));
    }

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
