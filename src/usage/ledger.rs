//! What the users of devices have spent, added up from snapshot to snapshot.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::divide::{Division, Part, divide};
use super::{By, Details, DeviceUse, GpuUse, Tenant, Usage};
use crate::catalogue::{Meter, Selection};
use crate::sampler::snapshot::{GpuReading, InstanceIdentity, Sample, Snapshot};

/// An account stays for so long after its tenant has left, so that its last value is scraped and
/// a pod that comes back under its name goes on where it was.
pub const KEPT: Duration = Duration::from_secs(300);

/// So many accounts of one GPU are kept; beyond that those go first whose tenants left first.
const MOST: usize = 1024;

/// Energy that no tenant is charged for, by a reason that is a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// Nobody held the device, or that part of it.
    Idle,
    /// Several held it, and NVML does not tell what each used.
    NotDivisible,
    /// Processes of others than those who held it.
    Others,
    /// It is not known who held it.
    HoldersUnknown,
    /// The GPU was not read for longer than readings stay fresh.
    Unread,
}

impl Reason {
    /// Every one.
    pub const ALL: [Self; 5] =
        [Self::Idle, Self::NotDivisible, Self::Others, Self::HoldersUnknown, Self::Unread];

    /// As a label.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::NotDivisible => "not_divisible",
            Self::Others => "other_processes",
            Self::HoldersUnknown => "holders_unknown",
            Self::Unread => "unread",
        }
    }
}

/// What one tenant has spent of one device since this process first saw it there.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Account {
    /// What else is known of the tenant.
    pub details: Details,
    /// The MIG instance, if it is one.
    pub instance: Option<Arc<InstanceIdentity>>,
    /// Joules; `None` if the board tells neither energy nor power, or as long as nothing tells what
    /// each of several had of it.
    pub joules: Option<f64>,
    /// Seconds for which it held the device, a MIG instance counted by its slices and a shared
    /// device by the number of those who share it.
    pub held_seconds: f64,
    /// Those of them in which the device worked for it; `None` if that is not known.
    pub busy_seconds: Option<f64>,
    /// When it was last there.
    last: Option<SystemTime>,
}

/// Which device of a GPU, and whose.
type Key = (Option<u32>, Tenant);

/// The accounts of one GPU.
#[derive(Debug, Default)]
struct Books {
    last: Option<Mark>,
    accounts: BTreeMap<Key, Account>,
    unattributed: BTreeMap<(By, Reason), f64>,
}

/// Where a reading stood.
#[derive(Debug, Clone, Copy)]
struct Mark {
    at: SystemTime,
    millijoules: Option<f64>,
    watts: Option<f64>,
}

/// What was spent between two readings.
#[derive(Debug, Clone, Copy)]
struct Spent {
    seconds: f64,
    joules: Option<f64>,
    /// Whether it is too long ago to say who held the device all the time.
    gap: bool,
}

/// The accounts of all GPUs, by index.
#[derive(Debug, Default)]
pub struct Ledger(BTreeMap<u32, Books>);

impl Ledger {
    /// Charges for the time since the former reading of each GPU, if there is a new one: all of it
    /// to those who are there now. Readings further apart than `max_gap` are charged to nobody.
    pub fn charge(&mut self, snapshot: &Snapshot, usage: &Usage, max_gap: Duration) {
        for gpu in &snapshot.gpus {
            let Some(reading) = &gpu.reading else { continue };
            let index = gpu.identity.index;
            let uses: Vec<&GpuUse> = usage.gpus.iter().filter(|one| one.gpu == index).collect();
            if uses.is_empty() {
                continue;
            }
            let books = self.0.entry(index).or_default();
            let meters = Meters { selection: &snapshot.selection, reading };
            let spent = books.advance(&meters, max_gap);
            for one in uses {
                books.charge(one, &meters, spent);
            }
            books.forget(reading.read_at);
        }
    }

    /// The accounts of a GPU, by device, then tenant.
    pub fn accounts(&self, gpu: u32) -> impl Iterator<Item = (&Tenant, &Account)> {
        let accounts = self.0.get(&gpu).into_iter().flat_map(|books| &books.accounts);
        accounts.map(|((_, tenant), account)| (tenant, account))
    }

    /// Joules of a GPU that nobody was charged for, by kind of tenants and reason.
    pub fn unattributed(&self, gpu: u32) -> impl Iterator<Item = (By, Reason, f64)> {
        let all = self.0.get(&gpu).into_iter().flat_map(|books| &books.unattributed);
        all.map(|((by, reason), joules)| (*by, *reason, *joules))
    }
}

impl Books {
    fn advance(&mut self, meters: &Meters<'_>, max_gap: Duration) -> Option<Spent> {
        let now = Mark {
            at: meters.reading.read_at,
            millijoules: meters.board(Meter::Energy),
            watts: meters.board(Meter::Power),
        };
        let last = self.last.replace(now)?;
        if last.at == now.at {
            return None;
        }
        // A clock that was set back makes no time.
        let time = now.at.duration_since(last.at).unwrap_or_default();
        let seconds = time.as_secs_f64();
        let counted = last.millijoules.zip(now.millijoules).map(|(before, after)| {
            // The counter begins anew when the driver does.
            let grown = if after >= before { after - before } else { after };
            grown / 1e3
        });
        let estimated =
            || last.watts.zip(now.watts).map(|(before, after)| before.midpoint(after) * seconds);
        Some(Spent { seconds, joules: counted.or_else(estimated), gap: time > max_gap })
    }

    /// Opens the accounts of those who are there, and charges them.
    fn charge(&mut self, gpu: &GpuUse, meters: &Meters<'_>, spent: Option<Spent>) {
        let knows_energy = self.last.is_some_and(|mark| mark.millijoules.or(mark.watts).is_some());
        let parts: Vec<Part> =
            gpu.devices.iter().map(|device| meters.part(gpu.by, device)).collect();
        for (device, part) in gpu.devices.iter().zip(&parts) {
            for one in device.uses.iter().filter(|one| one.holds) {
                let account = self.account(device, &one.tenant);
                if account.details != one.details {
                    account.details = one.details.clone();
                }
                account.instance.clone_from(&device.instance);
                account.last = Some(meters.reading.read_at);
                // What cannot be told has no counter, and not one that stays at 0.
                if knows_energy && part.is_divisible() {
                    account.joules.get_or_insert_default();
                }
            }
        }
        // A counter that begins at 0 loses no growth to `increase()`.
        for reason in Reason::ALL {
            self.leave(gpu.by, reason, knows_energy.then_some(0.0));
        }
        let Some(spent) = spent else { return };
        if spent.gap {
            return self.leave(gpu.by, Reason::Unread, spent.joules);
        }
        if !gpu.held_known {
            return self.leave(gpu.by, Reason::HoldersUnknown, spent.joules);
        }
        let division = divide(&parts);
        for ((device, part), shares) in gpu.devices.iter().zip(&parts).zip(&division.tenants) {
            let seconds = spent.seconds * part.size / part.tenants.len().max(1) as f64;
            let holders = device.uses.iter().filter(|one| one.holds);
            for ((one, own), share) in holders.zip(&part.tenants).zip(shares) {
                let account = self.account(device, &one.tenant);
                account.held_seconds += seconds;
                // The device's activity is that of one who has it for itself.
                let alone =
                    part.tenants.len() == 1 && (!part.foreign || part.assigned && own.is_none());
                let active = part.activity.filter(|_| alone).or(*own);
                if let Some(active) = active {
                    let busy = account.busy_seconds.get_or_insert_default();
                    *busy += spent.seconds * part.size * active;
                }
                if let (Some(joules), Some(total)) = (spent.joules, &mut account.joules) {
                    *total += joules * share;
                }
            }
        }
        let Division { idle, unknown, others, .. } = division;
        for (reason, share) in
            [(Reason::Idle, idle), (Reason::NotDivisible, unknown), (Reason::Others, others)]
        {
            self.leave(gpu.by, reason, spent.joules.map(|joules| joules * share));
        }
    }

    fn account(&mut self, device: &DeviceUse, tenant: &Tenant) -> &mut Account {
        let instance = device.instance.as_ref().map(|instance| instance.gpu_instance);
        self.accounts.entry((instance, tenant.clone())).or_default()
    }

    fn leave(&mut self, by: By, reason: Reason, joules: Option<f64>) {
        if let Some(joules) = joules {
            *self.unattributed.entry((by, reason)).or_default() += joules;
        }
    }

    fn forget(&mut self, now: SystemTime) {
        let age = |account: &Account| {
            account.last.map_or(Duration::ZERO, |last| now.duration_since(last).unwrap_or_default())
        };
        self.accounts.retain(|_, account| age(account) <= KEPT);
        while self.accounts.len() > MOST {
            let oldest = self.accounts.iter().max_by_key(|(_, account)| age(account));
            let Some(key) = oldest.map(|(key, _)| key.clone()) else { return };
            self.accounts.remove(&key);
        }
    }
}

/// What one reading tells for accounts.
struct Meters<'a> {
    selection: &'a Selection,
    reading: &'a GpuReading,
}

impl Meters<'_> {
    fn board(&self, meter: Meter) -> Option<f64> {
        self.of(&self.reading.board, meter)
    }

    fn of(&self, samples: &[Sample], meter: Meter) -> Option<f64> {
        let found = samples.iter().rev().find(|one| self.selection.meter(one.row) == Some(meter));
        found.map(|sample| sample.value.as_f64()).filter(|value| value.is_finite())
    }

    fn part(&self, by: By, device: &DeviceUse) -> Part {
        let holders = device.uses.iter().filter(|one| one.holds);
        let tenants = holders.map(|one| one.utilization.map(|used| used.sm)).collect();
        let (size, activity) = match &device.instance {
            Some(instance) => (self.size(instance), self.instance_activity(instance.gpu_instance)),
            None => (1.0, self.board_activity()),
        };
        let activity = activity.map(|activity| activity.clamp(0.0, 1.0));
        Part {
            size,
            activity,
            tenants,
            others: device.others,
            unseen: device.unseen,
            foreign: device.foreign,
            // By the kubelet's word; all others hold what they use.
            assigned: by == By::Pod,
        }
    }

    fn board_activity(&self) -> Option<f64> {
        let percent = self.board(Meter::Utilization).map(|percent| percent / 100.0);
        percent.or_else(|| self.board(Meter::Engine))
    }

    fn instance_activity(&self, id: u32) -> Option<f64> {
        let mut instances = self.reading.instances.iter();
        let instance = instances.find(|one| one.identity.gpu_instance == id)?;
        self.of(&instance.samples, Meter::Engine)
    }

    /// A driver that does not tell leaves equal parts.
    fn size(&self, instance: &InstanceIdentity) -> f64 {
        let equal = || 1.0 / self.reading.instances.len().max(1) as f64;
        instance.share_of(self.reading.mig_slices).unwrap_or_else(equal)
    }
}
