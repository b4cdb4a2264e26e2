//! A snapshot's devices by all the names that ids use.

use std::collections::HashMap;

use super::{DeviceKey, Mig, Target};
use crate::sampler::snapshot::{Gpu, InstanceReading, Snapshot};

/// Look-up tables of one snapshot.
pub(super) struct Inventory<'a> {
    gpus: &'a [Gpu],
    by_uuid: HashMap<&'a str, DeviceKey>,
}

impl<'a> Inventory<'a> {
    pub(super) fn new(snapshot: &'a Snapshot) -> Self {
        let mut by_uuid = HashMap::new();
        for gpu in &snapshot.gpus {
            let index = gpu.identity.index;
            if !gpu.identity.uuid.is_empty() {
                by_uuid.insert(&*gpu.identity.uuid, DeviceKey { gpu: index, instance: None });
            }
            for instance in instances(gpu) {
                let key = DeviceKey { gpu: index, instance: Some(instance.identity.gpu_instance) };
                by_uuid
                    .extend(instance.identity.uuids.iter().map(|(_, uuid)| (uuid.as_str(), key)));
            }
        }
        Self { gpus: &snapshot.gpus, by_uuid }
    }

    /// The MIG device of a key that is one.
    pub(super) fn mig(&self, device: DeviceKey) -> Option<Mig<'a>> {
        let id = device.instance?;
        let gpu = self.gpus.iter().find(|gpu| gpu.identity.index == device.gpu)?;
        let found = instances(gpu).find(|instance| instance.identity.gpu_instance == id)?;
        let uuid = found.identity.uuids.first().map_or("", |(_, uuid)| uuid.as_str());
        Some(Mig { uuid, profile: &found.identity.profile })
    }

    /// The devices that an id names: one, or none if it is not on the node now.
    pub(super) fn find(&self, target: &Target) -> Vec<DeviceKey> {
        match target {
            Target::Gpu(uuid) | Target::Mig(uuid) => {
                self.by_uuid.get(uuid.as_str()).copied().into_iter().collect()
            }
            Target::MigOf { gpu, gpu_instance, compute_instance } => {
                let board = self.gpus.iter().find(|board| board.identity.uuid == *gpu);
                instance(board, |found| {
                    let parts = &found.identity.uuids;
                    found.identity.gpu_instance == *gpu_instance
                        && parts.iter().any(|(id, _)| id == compute_instance)
                })
            }
            Target::Minor(minor) => self.minor(*minor).map(whole).into_iter().collect(),
            Target::MinorInstance { minor, gpu_instance } => {
                instance(self.minor(*minor), |found| found.identity.gpu_instance == *gpu_instance)
            }
            Target::Placed { minor, profile_id, start, profile } => {
                self.placed(*minor, (*profile_id, *start), profile)
            }
            Target::Pci(address) => {
                let wanted = pci(address);
                let same = |gpu: &&Gpu| wanted.is_some() && pci(&gpu.identity.pci_bus_id) == wanted;
                self.gpus.iter().find(same).map(whole).into_iter().collect()
            }
            Target::Mdev(_) | Target::Vfio(_) => Vec::new(),
            Target::All => self.gpus.iter().map(whole).collect(),
            // There is one; more would be a machine that this name does not fit.
            Target::Tegra => match self.gpus {
                [gpu] => vec![whole(gpu)],
                _ => Vec::new(),
            },
        }
    }

    fn minor(&self, minor: u32) -> Option<&'a Gpu> {
        self.gpus.iter().find(|gpu| gpu.identity.minor == Some(minor))
    }

    /// By placement; where the driver tells none, by a profile that only one instance has.
    fn placed(&self, minor: u32, place: (u32, u32), profile: &str) -> Vec<DeviceKey> {
        let board = self.minor(minor);
        let by_place = instance(board, |found| {
            let placement = found.identity.placement;
            placement.is_some_and(|placement| (placement.profile_id, placement.start) == place)
        });
        let Some(board) = board.filter(|_| by_place.is_empty() && !profile.is_empty()) else {
            return by_place;
        };
        let mut unplaced = instances(board).filter(|found| {
            found.identity.placement.is_none() && dra_profile(&found.identity.profile) == profile
        });
        match (unplaced.next(), unplaced.next()) {
            (Some(only), None) => vec![key(board, only)],
            _ => Vec::new(),
        }
    }
}

fn instances(gpu: &Gpu) -> impl Iterator<Item = &InstanceReading> {
    gpu.reading.iter().flat_map(|reading| &reading.instances)
}

fn instance(gpu: Option<&Gpu>, is: impl Fn(&InstanceReading) -> bool) -> Vec<DeviceKey> {
    let Some(gpu) = gpu else { return Vec::new() };
    instances(gpu).find(|instance| is(instance)).map(|found| key(gpu, found)).into_iter().collect()
}

fn key(gpu: &Gpu, instance: &InstanceReading) -> DeviceKey {
    DeviceKey { gpu: gpu.identity.index, instance: Some(instance.identity.gpu_instance) }
}

fn whole(gpu: &Gpu) -> DeviceKey {
    DeviceKey { gpu: gpu.identity.index, instance: None }
}

/// A profile as NVIDIA's DRA driver writes it into device names: `1g.18gb+me` is `1g18gb-me`.
fn dra_profile(profile: &str) -> String {
    let kept = profile.chars().filter(|c| *c != '.');
    kept.map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect()
}

/// Domain, bus, device and function; domains are written with four digits or eight.
fn pci(address: &str) -> Option<(u32, u8, u8, u8)> {
    let (domain, rest) = address.split_once(':')?;
    let (bus, rest) = rest.split_once(':')?;
    let (device, function) = rest.split_once('.')?;
    let byte = |text| u8::from_str_radix(text, 16).ok();
    Some((u32::from_str_radix(domain, 16).ok()?, byte(bus)?, byte(device)?, byte(function)?))
}
