//! What the log says of a node once, and again only when it changes.

use std::collections::BTreeSet;

use super::snapshot::{GpuIdentity, GpuReading, Library, Processes, Snapshot};
use crate::catalogue::{Read, Selection};
use crate::config::{DeviceSelector, GpuId, InstanceId};

/// What was said last.
#[derive(Debug, Default)]
pub(super) struct Notices {
    /// Names of the device selector that belong to no device.
    unmatched: Vec<String>,
    /// Models without profiling metrics, and why.
    unprofiled: BTreeSet<(String, &'static str)>,
    /// That processes are hidden.
    hidden: bool,
}

impl Notices {
    /// Looks at what is about to be published.
    pub(super) fn of(&mut self, snapshot: &Snapshot, devices: &DeviceSelector) {
        self.unmatched(snapshot, devices);
        self.unprofiled(snapshot);
        self.hidden(snapshot);
    }

    /// Processes that NVML lists, none of which can be found in `/proc`.
    fn hidden(&mut self, snapshot: &Snapshot) {
        let mut readings = snapshot.gpus.iter().filter_map(|gpu| gpu.reading.as_deref());
        let hidden =
            readings.any(|reading| reading.processes.as_ref().is_some_and(Processes::is_hidden));
        if hidden && !self.hidden {
            self.hidden = true;
            tracing::info!(
                "processes on GPUs are not in this process namespace (hostPID): what each uses stays unknown"
            );
        }
    }

    /// A device asked for that is not there, once it is known what is.
    fn unmatched(&mut self, snapshot: &Snapshot, devices: &DeviceSelector) {
        if !matches!(snapshot.library, Library::Up(_)) || !snapshot.is_decided() {
            return;
        }
        let gpus: Vec<_> = snapshot.gpus.iter().map(|gpu| gpu_id(&gpu.identity)).collect();
        let readings = snapshot
            .gpus
            .iter()
            .filter_map(|gpu| Some((gpu_id(&gpu.identity), gpu.reading.as_deref()?)));
        let instances: Vec<_> =
            readings.flat_map(|(gpu, reading)| instance_ids(gpu, reading)).collect();
        let unmatched = devices.unmatched(&gpus, &instances);
        if unmatched != self.unmatched {
            for name in &unmatched {
                tracing::error!("--devices: no device {name} on this node; it has no series");
            }
            self.unmatched = unmatched;
        }
    }

    /// A model of GPUs that gives none of the profiling metrics that are asked for.
    fn unprofiled(&mut self, snapshot: &Snapshot) {
        for gpu in &snapshot.gpus {
            let Some(reading) = &gpu.reading else { continue };
            let Some(reason) = unprofiled(&snapshot.selection, reading) else { continue };
            let model = &gpu.identity.model;
            if self.unprofiled.insert((model.clone(), reason)) {
                tracing::info!(
                    model,
                    reason,
                    "this model gives no profiling metrics: no DCGM_FI_PROF_* series; NVML has them since Hopper"
                );
            }
        }
    }
}

/// Why there are no profiling metrics, if there are none and one reason for all.
fn unprofiled(selection: &Selection, reading: &GpuReading) -> Option<&'static str> {
    let is_profiling =
        |at: u16| selection.field(at).is_some_and(|field| matches!(field.read, Read::Gpm(..)));
    let asked = (0_u16..).zip(&selection.rows).map(|(at, _)| at).filter(|at| is_profiling(*at));
    let mut reasons = asked.map(|at| {
        reading.unsupported.iter().find(|(row, _)| *row == at).map(|(_, reason)| *reason)
    });
    let first = reasons.next()??;
    reasons.all(|reason| reason == Some(first)).then_some(first).filter(|_| {
        let instances = reading.instances.iter().flat_map(|instance| &instance.samples);
        !reading.board.iter().chain(instances).any(|sample| is_profiling(sample.row))
    })
}

fn gpu_id(identity: &GpuIdentity) -> GpuId<'_> {
    GpuId { index: identity.index, uuid: &identity.uuid, pci_bus_id: &identity.pci_bus_id }
}

fn instance_ids<'a>(
    gpu: GpuId<'a>,
    reading: &'a GpuReading,
) -> impl Iterator<Item = InstanceId<'a>> {
    reading.instances.iter().map(move |instance| InstanceId {
        gpu,
        gpu_instance: instance.identity.gpu_instance,
        uuid: instance.identity.uuids.first().map_or("", |(_, uuid)| uuid),
    })
}
