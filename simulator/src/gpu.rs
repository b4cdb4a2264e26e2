//! One GPU of the running scenario: who it is, and what state it is in.

use crate::account::Accounts;
use crate::curve::{Curve, Work, mix};
use crate::ffi::Handle;
use crate::handle::{Kind, Target};
use crate::mig::GpuInstance;
use crate::model::Model;
use crate::process::{Process, stand_in};
use crate::scenario::{Gpus, Scenario, parse_bus_id};
use crate::setting::{Key, Scope, Settings};

/// How many seconds the temperature lags behind the power.
const THERMAL_LAG: f64 = 45.0;

/// What tells a GPU from its siblings.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    /// The UUID without its prefix.
    pub(crate) uuid: String,
    pub(crate) serial: u64,
    /// Domain, bus, device.
    pub(crate) pci: [u32; 3],
    pub(crate) minor: u32,
    pub(crate) numa_node: u32,
    pub(crate) seed: u64,
}

/// A GPU.
#[derive(Debug)]
pub(crate) struct Gpu {
    /// Its number in the scenario, which stays when other GPUs come and go.
    pub(crate) number: usize,
    /// Its model, by the index in the list of models.
    pub(crate) model: usize,
    pub(crate) id: Identity,
    pub(crate) work: Work,
    pub(crate) media: bool,
    curve: Curve,
    /// Whether the driver has the GPU.
    pub(crate) attached: bool,
    /// Whether it fell off the bus.
    pub(crate) lost: bool,
    /// Counts what makes device handles stale.
    pub(crate) generation: u16,
    /// Counts what makes MIG handles stale.
    pub(crate) mig_generation: u16,
    /// The instances, while MIG mode is on.
    pub(crate) mig: Option<Vec<GpuInstance>>,
    pub(crate) settings: Settings,
    /// Processes to report, unless those of the client.
    pub(crate) processes: Option<Vec<Process>>,
    /// The same for GPU instances that a command names.
    pub(crate) instance_processes: Vec<(u32, Vec<Process>)>,
    /// The accounts of processes, while accounting mode is on.
    pub(crate) accounts: Option<Accounts>,
    pub(crate) unsupported: Vec<String>,
    pub(crate) unsupported_fields: Vec<u32>,
    /// What keeps counters continuous when settings change: see [`Gpu::change`].
    load_carry: f64,
    energy_carry: f64,
}

impl Gpu {
    /// The `nth` GPU of a group, with the running number and seed of the scenario.
    pub(crate) fn new(
        scenario: &Scenario,
        gpus: &Gpus,
        (nth, number, model): (usize, usize, usize),
        seed: u64,
    ) -> Self {
        let own = mix(seed, number as u64);
        let listed = |list: Option<&Vec<u32>>| list.and_then(|l| l.get(nth)).copied();
        let pci = gpus
            .bus_ids
            .as_ref()
            .and_then(|list| list.get_ref().get(nth))
            .and_then(|id| parse_bus_id(id))
            .unwrap_or([0, 0x10 + 8 * to_u32(number), 0]);
        let node = u32::from(number >= total(scenario).div_ceil(2) && total(scenario) > 2);
        let id = Identity {
            uuid: uuid(own),
            serial: 1_320_000_000_000 + mix(own, 2) % 10_000_000_000,
            pci,
            minor: listed(gpus.minors.as_ref().map(toml::Spanned::get_ref))
                .unwrap_or_else(|| to_u32(number)),
            numa_node: listed(gpus.numa_nodes.as_ref().map(toml::Spanned::get_ref)).unwrap_or(node),
            seed: own,
        };
        Self {
            number,
            model,
            id,
            work: gpus.work,
            media: gpus.media,
            curve: Curve::new(gpus.work, seed, own),
            attached: true,
            lost: false,
            generation: 1,
            mig_generation: 1,
            mig: None,
            settings: Settings::default(),
            processes: gpus
                .processes
                .as_ref()
                .map(|pids| pids.iter().map(|pid| Process::new(*pid)).collect()),
            instance_processes: Vec::new(),
            accounts: None,
            unsupported: gpus.unsupported.clone(),
            unsupported_fields: gpus.unsupported_fields.clone(),
            load_carry: 0.0,
            energy_carry: 0.0,
        }
    }

    /// The load now, 0 to 1: of the GPU, or of one of its instances.
    pub(crate) fn load(&self, instance: Option<&GpuInstance>, t: f64) -> f64 {
        self.over_load(instance, |curve| curve.value(t), |pinned| pinned)
    }

    /// The load as a slow follower sees it.
    pub(crate) fn lagged_load(&self, instance: Option<&GpuInstance>, t: f64, tau: f64) -> f64 {
        self.over_load(instance, |curve| curve.lagged(t, tau), |pinned| pinned)
    }

    /// Seconds of full load since the driver was loaded. All counters are multiples of this.
    pub(crate) fn busy_seconds(&self, instance: Option<&GpuInstance>, t: f64) -> f64 {
        let carry = instance.map_or(self.load_carry, |i| i.load_carry);
        carry + self.over_load(instance, |curve| curve.integral(t), |pinned| pinned * t)
    }

    /// Some function of the load, which is linear in it: a pinned load, the curve of an instance,
    /// or, with MIG mode on, the sum of the instances by their share of the GPU.
    fn over_load(
        &self,
        instance: Option<&GpuInstance>,
        of_curve: impl Fn(&Curve) -> f64 + Copy,
        of_pinned: impl Fn(f64) -> f64 + Copy,
    ) -> f64 {
        let scope = instance.map_or(Scope::Gpu, |i| Scope::Instance(i.id));
        if let Some(pinned) = self.settings.pinned(scope, Key::Load) {
            return of_pinned(pinned);
        }
        match (instance, &self.mig) {
            (Some(i), _) if i.compute.is_empty() => 0.0,
            (Some(i), _) => of_curve(&i.curve),
            (None, Some(instances)) => instances
                .iter()
                .map(|i| {
                    let share = f64::from(i.profile.slices) / 7.0;
                    share * self.over_load(Some(i), of_curve, of_pinned)
                })
                .sum(),
            (None, None) => of_curve(&self.curve),
        }
    }

    /// Cuts the GPU into instances, or makes it whole.
    pub(crate) fn divide(&mut self, mut layout: Option<Vec<GpuInstance>>) {
        for instance in layout.iter_mut().flatten() {
            let seed = mix(self.id.seed, 100 + u64::from(instance.id));
            instance.curve = Curve::new(self.work, seed, seed);
        }
        if layout.is_some() {
            self.accounts = None;
        }
        self.mig = layout;
    }

    /// Power in watts.
    pub(crate) fn power(&self, model: &Model, t: f64) -> f64 {
        let span = self.power_span(model);
        self.settings.value(Scope::Gpu, Key::Power, || model.power.idle + span * self.load(None, t))
    }

    /// Energy since the driver was loaded, in joules: the integral of the power.
    pub(crate) fn energy(&self, model: &Model, t: f64) -> f64 {
        let joules = match self.settings.pinned(Scope::Gpu, Key::Power) {
            Some(watts) => watts * t,
            None => model.power.idle * t + self.power_span(model) * self.busy_seconds(None, t),
        };
        joules + self.energy_carry
    }

    /// The power limit in watts.
    pub(crate) fn power_limit(&self, model: &Model) -> f64 {
        self.settings.value(Scope::Gpu, Key::PowerLimit, || model.power.limit)
    }

    /// Watts between idle and full load: full load comes close to the limit.
    fn power_span(&self, model: &Model) -> f64 {
        (0.98 * self.power_limit(model) - model.power.idle).max(0.0)
    }

    /// Temperature in degrees Celsius.
    pub(crate) fn temperature(&self, model: &Model, t: f64) -> f64 {
        self.settings.value(Scope::Gpu, Key::Temperature, || {
            let spread = (mix(self.id.seed, 3) % 5) as f64 - 2.0;
            let span = model.temperature.full - model.temperature.idle;
            model.temperature.idle + spread + span * self.lagged_load(None, t, THERMAL_LAG)
        })
    }

    /// Changes the state of the GPU at a time such that no counter jumps: what the integrals
    /// would lose or gain by the change is carried from here on.
    pub(crate) fn change(&mut self, model: &Model, t: f64, change: impl FnOnce(&mut Self)) {
        let busy = self.busy_seconds(None, t);
        let energy = self.energy(model, t);
        let instances: Vec<(u32, f64)> =
            self.mig.iter().flatten().map(|i| (i.id, self.busy_seconds(Some(i), t))).collect();
        change(self);
        let after: Vec<f64> =
            self.mig.iter().flatten().map(|i| self.busy_seconds(Some(i), t)).collect();
        for (instance, now) in self.mig.iter_mut().flatten().zip(after) {
            if let Some((_, before)) = instances.iter().find(|(id, _)| *id == instance.id) {
                instance.load_carry += before - now;
            }
        }
        self.load_carry += busy - self.busy_seconds(None, t);
        self.energy_carry += energy - self.energy(model, t);
    }

    /// Puts processes on the GPU, or on one of its instances.
    pub(crate) fn put_processes(&mut self, instance: Option<u32>, list: Option<&Vec<Process>>) {
        let Some(instance) = instance else {
            self.processes = list.cloned();
            self.instance_processes.clear();
            return;
        };
        self.instance_processes.retain(|(id, _)| *id != instance);
        self.instance_processes.extend(list.map(|list| (instance, list.clone())));
    }

    /// The processes to report on the GPU itself, whether anything runs or not.
    pub(crate) fn listed(&self) -> Vec<Process> {
        self.processes.clone().unwrap_or_else(|| vec![stand_in()])
    }

    /// The GPU instance of an id.
    pub(crate) fn instance(&self, id: u32) -> Option<&GpuInstance> {
        self.mig.iter().flatten().find(|i| i.id == id)
    }

    /// The handle of the GPU.
    pub(crate) fn handle(&self) -> Handle {
        let generation = self.generation;
        Target { kind: Kind::Device, generation, gpu: self.number, gi: 0, ci: 0 }.to_handle()
    }

    /// The bus id in the form of today, `00000000:1B:00.0`.
    pub(crate) fn bus_id(&self) -> String {
        let [domain, bus, device] = self.id.pci;
        format!("{domain:08X}:{bus:02X}:{device:02X}.0")
    }

    /// The UUID as NVML gives it.
    pub(crate) fn uuid(&self) -> String {
        format!("GPU-{}", self.id.uuid)
    }
}

fn total(scenario: &Scenario) -> usize {
    scenario.gpu.iter().map(|g| g.count).sum()
}

fn to_u32(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// A UUID (version 4 in form) from a seed.
pub(crate) fn uuid(seed: u64) -> String {
    let (a, b) = (mix(seed, 0), mix(seed, 1));
    format!(
        "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
        a >> 32,
        a >> 16 & 0xffff,
        a & 0xfff,
        b >> 48 & 0x3fff | 0x8000,
        b & 0xffff_ffff_ffff
    )
}
