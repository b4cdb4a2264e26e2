//! A device as a call sees it: a GPU, or a part of one, at a moment.

use std::cell::OnceCell;

use crate::clock::{nearest, whole};
use crate::code::{Answer, INVALID_ARGUMENT, NOT_SUPPORTED};
use crate::curve::{Work, mix};
use crate::gpu::{Gpu, uuid};
use crate::handle::{Kind, Target};
use crate::mig::{ComputeInstance, GpuInstance};
use crate::model::Model;
use crate::setting::{Key, Scope};
use crate::world::World;

/// One mebibyte.
pub(crate) const MIB: u64 = 1 << 20;

/// `NVML_CLOCK_*`: graphics and SM run together, then memory and video.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClockDomain {
    Sm,
    Memory,
    Video,
}

impl ClockDomain {
    /// The domain of an `nvmlClockType_t`.
    pub(crate) fn new(kind: u32) -> Answer<Self> {
        match kind {
            0 | 1 => Ok(Self::Sm),
            2 => Ok(Self::Memory),
            3 => Ok(Self::Video),
            _ => Err(INVALID_ARGUMENT),
        }
    }
}

/// A device.
pub(crate) struct Device<'a> {
    pub(crate) world: &'a World,
    pub(crate) gpu: &'a Gpu,
    pub(crate) model: &'a Model,
    /// The instances, if the device is a MIG device or the compute instance behind one.
    pub(crate) part: Option<(&'a GpuInstance, &'a ComputeInstance)>,
    /// The GPU instance, if the device is one.
    gpu_instance: Option<&'a GpuInstance>,
    pub(crate) now: f64,
    /// What most counters of one call ask for again and again.
    busy_seconds: OnceCell<f64>,
}

impl<'a> Device<'a> {
    /// The device of a resolved handle.
    pub(crate) fn new(world: &'a World, target: Target) -> Answer<Self> {
        let gpu = &world.gpus[target.gpu];
        let model = &world.models[gpu.model];
        let instance = || gpu.instance(target.gi).ok_or(INVALID_ARGUMENT);
        let (mut part, mut gpu_instance) = (None, None);
        match target.kind {
            Kind::Device => {}
            Kind::GpuInstance => gpu_instance = Some(instance()?),
            Kind::Mig | Kind::ComputeInstance => {
                let gi = instance()?;
                let ci = gi.compute.iter().find(|c| c.id == target.ci).ok_or(INVALID_ARGUMENT)?;
                part = Some((gi, ci));
            }
        }
        Ok(Self {
            world,
            gpu,
            model,
            part,
            gpu_instance,
            now: world.now(),
            busy_seconds: OnceCell::new(),
        })
    }

    /// The GPU instance that the device is.
    pub(crate) fn instance(&self) -> Answer<&'a GpuInstance> {
        self.gpu_instance.ok_or(INVALID_ARGUMENT)
    }

    /// A value that can be taken in hand.
    pub(crate) fn setting(&self, key: Key, natural: impl FnOnce() -> f64) -> f64 {
        self.gpu.settings.value(Scope::Gpu, key, natural)
    }

    /// A setting that is 0 unless taken in hand.
    pub(crate) fn count(&self, key: Key) -> u64 {
        whole(self.setting(key, || 0.0))
    }

    /// The load of the device, 0 to 1.
    pub(crate) fn load(&self) -> f64 {
        self.gpu.load(self.part.map(|(gi, _)| gi), self.now)
    }

    /// Seconds of full load of the GPU since the driver was loaded.
    pub(crate) fn busy_seconds(&self) -> f64 {
        *self.busy_seconds.get_or_init(|| self.gpu.busy_seconds(None, self.now))
    }

    /// Whether next to nothing runs.
    pub(crate) fn idle(&self) -> bool {
        self.load() < 0.005
    }

    /// Power in milliwatts.
    pub(crate) fn power_milliwatts(&self) -> u32 {
        nearest(self.gpu.power(self.model, self.now) * 1e3)
    }

    /// Energy in millijoules.
    pub(crate) fn energy_millijoules(&self) -> u64 {
        whole(self.gpu.energy(self.model, self.now) * 1e3)
    }

    /// The power limit in milliwatts.
    pub(crate) fn power_limit_milliwatts(&self) -> u32 {
        nearest(self.gpu.power_limit(self.model) * 1e3)
    }

    /// Degrees Celsius.
    pub(crate) fn temperature(&self) -> u32 {
        nearest(self.gpu.temperature(self.model, self.now))
    }

    /// Degrees Celsius of the memory, where there is a sensor.
    pub(crate) fn memory_temperature(&self) -> Answer<u32> {
        self.model.temperature.memory_max.ok_or(NOT_SUPPORTED)?;
        Ok(nearest(self.setting(Key::MemoryTemperature, || {
            self.gpu.temperature(self.model, self.now) + 4.0 + 6.0 * self.gpu.load(None, self.now)
        })))
    }

    /// Percent of time in which kernels ran.
    pub(crate) fn gpu_utilization(&self) -> u32 {
        nearest(self.setting(Key::GpuUtilization, || 100.0 * self.load()).min(100.0))
    }

    /// Percent of time in which the memory was busy.
    pub(crate) fn memory_utilization(&self) -> u32 {
        nearest(self.setting(Key::MemoryUtilization, || 62.0 * self.load()).min(100.0))
    }

    /// Percent of time in which a video engine was busy: `share` of the load if media runs at all.
    pub(crate) fn engine_utilization(&self, key: Key, share: f64) -> u32 {
        let natural = || if self.gpu.media { 100.0 * share * self.load() } else { 0.0 };
        nearest(self.setting(key, natural).min(100.0))
    }

    /// MHz.
    pub(crate) fn clock(&self, domain: ClockDomain) -> u32 {
        let clocks = &self.model.clocks;
        let (key, natural) = match domain {
            ClockDomain::Sm => (Key::SmClock, self.natural_sm_clock()),
            ClockDomain::Memory => (Key::MemoryClock, self.natural_memory_clock()),
            ClockDomain::Video => {
                let ratio = f64::from(clocks.video) / f64::from(clocks.max);
                (Key::VideoClock, (ratio * self.natural_sm_clock() / 15.0).round() * 15.0)
            }
        };
        nearest(self.setting(key, || natural))
    }

    /// The highest clock in MHz.
    pub(crate) fn max_clock(&self, domain: ClockDomain) -> u32 {
        let clocks = &self.model.clocks;
        match domain {
            ClockDomain::Sm => clocks.max,
            ClockDomain::Memory => clocks.memory.first().copied().unwrap_or(0),
            ClockDomain::Video => clocks.video,
        }
    }

    fn natural_sm_clock(&self) -> f64 {
        let clocks = &self.model.clocks;
        let load = self.gpu.load(None, self.now);
        if load < 0.005 {
            return f64::from(clocks.idle);
        }
        let max = f64::from(clocks.max);
        let reasons = self.clock_reasons();
        // What brakes the clocks, by the reasons given: the power cap a little, heat a lot.
        let brake = if reasons & 0xe8 != 0 {
            0.5
        } else if reasons & 0x24 != 0 {
            (self.power_share() - POWER_CAP).max(0.0) * 1.5
        } else {
            0.0
        };
        ((max * (1.0 - brake)) / 15.0).floor() * 15.0
    }

    fn natural_memory_clock(&self) -> f64 {
        let clocks = &self.model.clocks.memory;
        let at_rest = if self.performance_state() > 2 { clocks.last() } else { clocks.first() };
        f64::from(at_rest.copied().unwrap_or(0))
    }

    /// Power as a share of the limit.
    fn power_share(&self) -> f64 {
        self.gpu.power(self.model, self.now) / self.gpu.power_limit(self.model).max(1.0)
    }

    /// The mask of clock event reasons.
    pub(crate) fn clock_reasons(&self) -> u64 {
        whole(self.setting(Key::ClockReasons, || {
            let heat = self.gpu.temperature(self.model, self.now);
            let mut mask = 0;
            if self.gpu.load(None, self.now) < 0.005 {
                mask |= 0x1;
            }
            if self.power_share() > POWER_CAP {
                mask |= 0x4;
            }
            if heat >= f64::from(self.model.temperature.slowdown) {
                mask |= 0x8 | 0x40;
            } else if heat >= f64::from(self.model.temperature.max_operating) {
                mask |= 0x20;
            }
            f64::from(mask)
        }))
    }

    /// The performance state: compute boards stay in P0, others rest in P8.
    pub(crate) fn performance_state(&self) -> u32 {
        nearest(self.setting(Key::PerformanceState, || {
            let rests = self.model.clocks.memory.len() > 1 && self.model.nvlink.is_none();
            let rests = rests || self.model.display;
            if rests && self.gpu.load(None, self.now) < 0.005 { 8.0 } else { 0.0 }
        }))
    }

    /// Framebuffer of the device in bytes: total, reserved, used.
    pub(crate) fn memory(&self) -> (u64, u64, u64) {
        let memory = &self.model.memory;
        let (total, reserved) = match self.part {
            None => (memory.total_mib * MIB, memory.reserved_mib * MIB),
            Some((gi, _)) => (gi.profile.memory_mib * MIB, self.instance_reserved(gi)),
        };
        let used = match (self.part, &self.gpu.mig) {
            (Some((gi, _)), _) => self.instance_memory_used(gi),
            (None, divided) => whole(self.setting(Key::MemoryUsed, || match divided {
                Some(all) => all.iter().map(|gi| self.instance_memory_used(gi)).sum::<u64>(),
                None => self.natural_memory_used(None, total - reserved),
            } as f64)),
        };
        (total, reserved, used.min(total - reserved))
    }

    /// The part of the reserved memory that an instance bears.
    fn instance_reserved(&self, gi: &GpuInstance) -> u64 {
        self.model.memory.reserved_mib * MIB * u64::from(gi.profile.size) / 8
    }

    /// Framebuffer in use in an instance, in bytes.
    pub(crate) fn instance_memory_used(&self, gi: &GpuInstance) -> u64 {
        let room = gi.profile.memory_mib * MIB - self.instance_reserved(gi);
        let scope = Scope::Instance(gi.id);
        let used = self
            .gpu
            .settings
            .value(scope, Key::MemoryUsed, || self.natural_memory_used(Some(gi), room) as f64);
        whole(used).min(room)
    }

    /// What runs fills the memory slowly, and keeps most of it.
    fn natural_memory_used(&self, instance: Option<&GpuInstance>, room: u64) -> u64 {
        let busy = self.gpu.lagged_load(instance, self.now, 300.0);
        let resting = 4 * MIB;
        if self.gpu.work == Work::Idle && busy < 0.001 || busy < 1e-6 {
            return resting.min(room);
        }
        let filled = 0.35 + 0.6 * busy;
        (whole(room as f64 * filled) / (2 * MIB) * (2 * MIB)).max(resting).min(room)
    }

    /// BAR1 in bytes: total, used.
    pub(crate) fn bar1(&self) -> (u64, u64) {
        let mut total = self.model.memory.bar1_mib * MIB;
        if let Some((gi, _)) = self.part {
            total = total / 8 * u64::from(gi.profile.size);
        }
        let used = whole(
            self.setting(Key::Bar1Used, || (MIB + if self.idle() { 0 } else { 3 * MIB }) as f64),
        );
        (total, used.min(total))
    }

    /// The name, with the profile of a MIG device.
    pub(crate) fn name(&self) -> String {
        match self.part {
            None => self.model.name.clone(),
            Some(part) => format!("{} MIG {}", self.model.name, Self::profile_name(part)),
        }
    }

    /// The profile name of a MIG device: `3g.40gb`, or `1c.3g.40gb` for a part of the instance.
    pub(crate) fn profile_name((gi, ci): (&GpuInstance, &ComputeInstance)) -> String {
        if ci.slices == gi.profile.slices {
            gi.profile.name.to_owned()
        } else {
            format!("{}c.{}", ci.slices, gi.profile.name)
        }
    }

    /// The UUID. Drivers before R470 made that of a MIG device from the parent's.
    pub(crate) fn uuid(&self) -> String {
        match self.part {
            None => self.gpu.uuid(),
            Some((gi, ci)) if self.world.branch() < 470 => {
                format!("MIG-{}/{}/{}", self.gpu.uuid(), gi.id, ci.id)
            }
            Some((gi, ci)) => {
                let salt = 1_000 + u64::from(gi.id) * 16 + u64::from(ci.id);
                let slices = u64::from(gi.profile.slices * 16 + ci.slices) << 32;
                format!("MIG-{}", uuid(mix(self.gpu.id.seed, salt + slices)))
            }
        }
    }
}

/// From which share of the limit on the power cap holds the clocks back.
const POWER_CAP: f64 = 0.93;
