//! One pass over one GPU: every call that the plan asks for, each made once.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant, SystemTime};

use super::calls;
use super::code::{Code, Meaning};
use super::facts::{self, FactValue};
use super::field_values::{self, Batch, Stamped, Support};
use super::gpm::Gpm;
use super::library::Session;
use super::mig::{self, Instance, Known};
use super::processes::{Of, Watch};
use super::rates::Rates;
use super::raw::Handle;
pub use super::request::Request;
use super::work::{Work, each_link, links};
use crate::catalogue::{Call, Fact, Number, Numbers, Sign};
use crate::config::{GpuId, InstanceId};
use crate::sampler::incidents::Incidents;
use crate::sampler::owners::ProcRoot;
use crate::sampler::signs::{Signs, Trend};
use crate::sampler::snapshot::{GpuIdentity, GpuReading, InstanceReading, Sample};

/// The `InfoROM` is read from flash.
const FACTS_EVERY: Duration = Duration::from_secs(3600);

/// One GPU to read, and what for.
#[derive(Debug)]
pub struct Target {
    /// The session that gave the handle.
    pub session: Arc<Session>,
    /// The GPU.
    pub handle: Handle,
    /// Who it is.
    pub identity: Arc<GpuIdentity>,
    /// What it is asked.
    pub request: Arc<Request>,
    /// Where to look for the processes that use it.
    pub proc_root: ProcRoot,
    /// The other GPUs, by index, if it is asked how it reaches them.
    pub peers: Vec<(u32, Handle)>,
}

/// What one pass came to.
#[derive(Debug)]
pub struct Pass {
    /// The readings, or the code that ended the pass.
    pub outcome: Result<GpuReading, Code>,
    /// Calls that failed otherwise than by being unsupported: function and code.
    pub errors: Vec<(&'static str, Code)>,
    /// Whether calls for rows failed and none was answered.
    pub silent: bool,
    /// Whether means are missing only because this pass began them: the next one has them.
    pub unpaired: bool,
}

/// Reads one GPU. Holds what is remembered between passes; a new session, handle or request
/// makes it forget.
#[derive(Debug, Default)]
pub struct Reader {
    bound: Option<Bound>,
}

/// What a reader remembers of one GPU under one session and one request.
#[derive(Debug)]
struct Bound {
    /// Weak, so that it can end; held, so that no later one has its address.
    session: Weak<Session>,
    handle: Handle,
    request: Arc<Request>,
    batch: Batch,
    rates: Rates,
    gpm: Gpm,
    mig: Support,
    /// Whether MIG is on, and whether there are no instances.
    mode: Option<(bool, bool)>,
    known: Known,
    /// How many `NVLinks` the GPU has, if anything planned is read once a link.
    links: u8,
    board: Vec<Support>,
    whole: Vec<Support>,
    /// By MIG UUID: a handle can come back with another instance behind it.
    instances: HashMap<String, Vec<Support>>,
    facts: Vec<Result<FactValue, Code>>,
    facts_read: Instant,
    processes: Watch,
    trend: Trend,
}

impl Reader {
    /// Makes one pass. Blocks for as long as the driver does.
    pub fn pass(&mut self, target: &Target, incidents: &Incidents) -> Pass {
        let Target { session, handle, identity, request, .. } = target;
        let begun = Instant::now();
        let mut work = Work::new(target, incidents);
        let bound = self.bind(session, *handle, request);
        let outcome = bound.read(&mut work, identity).map(|(whole, board, texts, instances)| {
            let read_at = SystemTime::now();
            GpuReading {
                signs: bound.signs(&board, read_at),
                peers: std::mem::take(&mut work.peers),
                read_at,
                took: begun.elapsed(),
                whole,
                board,
                labels: std::mem::take(&mut work.labels),
                texts,
                instances,
                mig_slices: bound.known.slots.filter(|_| bound.mode.is_some_and(|(mig, _)| mig)),
                unsupported: std::mem::take(&mut work.unsupported),
                processes: work.processes.take(),
                accounting: std::mem::take(&mut work.accounting),
            }
        });
        if outcome.is_err() {
            bound.gpm.interrupt();
        }
        let silent = work.answered == 0 && !work.errors.is_empty();
        work.errors.append(&mut work.aside);
        // A pass that fails leaves no sample, and a GPU that goes on failing is in no hurry.
        let unpaired = work.unpaired && outcome.is_ok();
        Pass { outcome, errors: work.errors, silent, unpaired }
    }

    fn bind(
        &mut self,
        session: &Arc<Session>,
        handle: Handle,
        request: &Arc<Request>,
    ) -> &mut Bound {
        let is_held = |bound: &Bound| bound.session.as_ptr() == Arc::as_ptr(session);
        let same = |bound: &Bound| {
            is_held(bound) && bound.handle == handle && Arc::ptr_eq(&bound.request, request)
        };
        let mut bound = self.bound.take();
        if let Some(mut former) = bound.take_if(|bound| !same(bound)).filter(is_held) {
            former.gpm.forget(session);
        }
        self.bound.insert(bound.unwrap_or_else(|| Bound::new(session, handle, request)))
    }
}

/// The parts of a reading: whether the GPU is a row, board samples, texts, instances.
type Parts = (bool, Vec<Sample>, Vec<(u16, Arc<str>)>, Vec<InstanceReading>);

impl Bound {
    fn new(session: &Arc<Session>, handle: Handle, request: &Arc<Request>) -> Self {
        let plan = &request.plan;
        let reads: Vec<_> = plan.field_values.iter().map(|planned| planned.read).collect();
        let each_call = plan.board.iter().any(|planned| each_link(planned.call));
        let links = if each_call || plan.gpm_board.iter().any(|planned| planned.metric.is_each()) {
            field_values::link_count(session, handle)
        } else {
            0
        };
        Self {
            session: Arc::downgrade(session),
            handle,
            batch: Batch::new(session, handle, &reads),
            rates: Rates::default(),
            mig: Support::default(),
            mode: None,
            known: Known::default(),
            gpm: Gpm::new(plan, links),
            links,
            board: Vec::new(),
            whole: vec![Support::default(); plan.instance.len()],
            instances: HashMap::new(),
            facts: plan
                .facts
                .iter()
                .map(|planned| facts::read(session, handle, planned.fact))
                .collect(),
            facts_read: Instant::now(),
            processes: Watch::default(),
            trend: Trend::default(),
            request: Arc::clone(request),
        }
    }

    fn read(&mut self, work: &mut Work<'_>, identity: &GpuIdentity) -> Result<Parts, Code> {
        let plan = &work.request.plan;
        let mut board = Vec::with_capacity(work.request.selection.rows.len());
        let mig = self.read_mig_mode(work, &mut board)?;
        let found = if mig { self.find_instances(work)? } else { Vec::new() };
        self.forget_refusals_of_other_modes(work.session, (mig, found.is_empty()));
        let mut position = 0;
        for planned in plan.board.iter().filter(|planned| planned.call != Call::MigMode) {
            for link in links(planned.call, self.links) {
                if position == self.board.len() {
                    self.board.push(Support::default());
                }
                let support = &mut self.board[position];
                work.link_call((self.handle, link), planned, support, &mut board)?;
                position += 1;
            }
        }
        self.read_batch(work, &mut board)?;
        self.read_facts_again(work.session);
        let texts = work.facts(&self.facts, &mut board);
        let devices = &work.request.devices;
        let gpu =
            GpuId { index: identity.index, uuid: &identity.uuid, pci_bus_id: &identity.pci_bus_id };
        let whole = devices.selects_gpu(&gpu, !found.is_empty());
        if whole {
            for (planned, support) in plan.instance.iter().zip(&mut self.whole) {
                work.call(self.handle, planned, support, &mut board)?;
            }
            work.last_xid(None, &mut board);
        }
        self.gpm.read_board(work, self.handle, whole, &mut board)?;
        let mut instances = Vec::new();
        let mut parts = Vec::new();
        for instance in found {
            let uuids = &instance.identity.uuids;
            let id = InstanceId {
                gpu,
                gpu_instance: instance.identity.gpu_instance,
                uuid: uuids.first().map_or("", |(_, uuid)| uuid),
            };
            let selected = devices.selects_instance(&id);
            // The whole GPU is all of its instances.
            if work.request.processes && (selected || whole) {
                parts.push((id.gpu_instance, instance.parts.clone()));
            }
            if selected {
                instances.push(self.read_instance(work, instance)?);
            }
        }
        let is_read = |uuid: &str| {
            let first = |reading: &InstanceReading| reading.identity.uuids.first().cloned();
            instances.iter().filter_map(first).any(|(_, first)| first == uuid)
        };
        self.instances.retain(|uuid, _| is_read(uuid));
        self.gpm.keep_instances(work.session, is_read);
        if work.request.processes {
            let of = if mig { Of::Instances(&parts) } else { Of::Whole(self.handle) };
            work.processes = Some(self.processes.read(work, &of));
        }
        if let Some(row) = work.request.plan.peers.rows.first() {
            work.read_peers(self.handle, *row)?;
        }
        board.sort_by_key(|sample| (sample.row, sample.link));
        Ok((whole, board, texts, instances))
    }

    /// What the samples that are not served tell of the GPU's health.
    fn signs(&mut self, board: &[Sample], at: SystemTime) -> Option<Signs> {
        let selection = &self.request.selection;
        if !selection.has_health() {
            return None;
        }
        let mut signs = Signs::default();
        for sample in board {
            let sign = usize::from(sample.row).checked_sub(selection.rows.len());
            if let Some(sign) = sign.and_then(|at| Sign::ALL.get(at)) {
                signs.add(*sign, sample.value.as_f64());
            }
        }
        Some(self.trend.follow(signs, at))
    }

    /// What a board refuses in MIG mode, or while it has instances, it may give otherwise.
    fn forget_refusals_of_other_modes(&mut self, session: &Session, mode: (bool, bool)) {
        if self.mode.replace(mode).is_some_and(|former| former != mode) {
            self.board.fill(Support::default());
            self.whole.fill(Support::default());
            self.batch.forget_refusals();
            self.processes.forget_refusals();
            self.gpm.forget(session);
        }
    }

    /// Whether MIG is on; `false` too when it is unknown to this GPU or driver. Asked once a pass,
    /// for the look-up of instances and for the rows that show it.
    fn read_mig_mode(
        &mut self,
        work: &mut Work<'_>,
        board: &mut Vec<Sample>,
    ) -> Result<bool, Code> {
        let mut planned = work.request.plan.board.iter().filter(|one| one.call == Call::MigMode);
        let planned = planned.next();
        if let Some(code) = self.mig.refusal() {
            planned.inspect(|planned| work.refused(&planned.takers, None, code));
            return Ok(false);
        }
        let mode = calls::execute(work.session, self.handle, Call::MigMode, 0);
        self.mig.learn(&mode);
        let on = mode.is_ok_and(|numbers| numbers[0] == Some(Number::Int(1)));
        match (planned, mode) {
            (Some(planned), mode) => work.answered(planned, None, mode, board)?,
            (None, Err(code)) => work.failed(Call::MigMode.function(), code)?,
            (None, Ok(_)) => {}
        }
        Ok(on)
    }

    /// The GPU's MIG instances.
    fn find_instances(&mut self, work: &mut Work<'_>) -> Result<Vec<Instance>, Code> {
        let asked = work.request.placements;
        match mig::instances(work.session, self.handle, &mut self.known, asked) {
            Ok(all) => {
                for (call, code) in all.failed {
                    work.failed(call, code)?;
                }
                Ok(all.found)
            }
            Err(code) => {
                work.failed("nvmlDeviceGetMaxMigDeviceCount", code)?;
                Ok(Vec::new())
            }
        }
    }

    fn read_instance(
        &mut self,
        work: &mut Work<'_>,
        instance: Instance,
    ) -> Result<InstanceReading, Code> {
        let plan = &work.request.plan;
        let key =
            instance.identity.uuids.first().map_or_else(String::new, |(_, uuid)| uuid.clone());
        let mut samples = Vec::with_capacity(plan.instance.len());
        let of = (self.handle, &*instance.identity, key.as_str());
        self.gpm.read_instance(work, of, self.known.slots, &mut samples)?;
        let supports = self
            .instances
            .entry(key)
            .or_insert_with(|| vec![Support::default(); plan.instance.len()]);
        for (planned, support) in plan.instance.iter().zip(supports) {
            work.call(instance.handle, planned, support, &mut samples)?;
        }
        work.last_xid(Some(instance.identity.gpu_instance), &mut samples);
        samples.sort_by_key(|sample| (sample.row, sample.link));
        Ok(InstanceReading { identity: instance.identity, samples })
    }

    fn read_batch(&mut self, work: &mut Work<'_>, board: &mut Vec<Sample>) -> Result<(), Code> {
        if let Err(code) = self.batch.read(work.session, self.handle) {
            work.failed("nvmlDeviceGetFieldValues", code)?;
        }
        for planned in &work.request.plan.field_values {
            for (link, value) in self.batch.values(planned.read) {
                let value = value.or_else(|code| work.sensorless(planned.read.id, code));
                match value {
                    Ok(Stamped { number, .. }) => {
                        let mut numbers: Numbers = Default::default();
                        work.answered += 1;
                        numbers[0] = Some(number);
                        work.samples(&planned.takers, &numbers, link, board);
                    }
                    Err(code) => {
                        // A stale handle fails the whole call: here it is an id that the driver
                        // does not know.
                        if !matches!(code.meaning(), Meaning::Unsupported | Meaning::Stale) {
                            work.failed("nvmlDeviceGetFieldValues", code)?;
                        }
                        work.refused(&planned.takers, link, code);
                    }
                }
            }
        }
        self.rates.derive(&work.request.plan, &self.batch, board);
        Ok(())
    }

    /// One fact can change while the driver stays loaded, and is too slow for every pass.
    fn read_facts_again(&mut self, session: &Session) {
        if self.facts_read.elapsed() < FACTS_EVERY {
            return;
        }
        self.facts_read = Instant::now();
        for (planned, value) in self.request.plan.facts.iter().zip(&mut self.facts) {
            if planned.fact == Fact::InforomValid {
                *value = facts::read(session, self.handle, planned.fact);
            }
        }
    }
}
