//! GPM, NVML's performance monitoring since Hopper: each pass takes a sample of a device, and what
//! lies between it and the sample of the pass before are the metrics. So they are means over the
//! time between two passes, and cost no wait.
//!
//! Streaming mode is left as it is: it needs rights, and others may rely on it.

use std::collections::HashMap;
use std::thread::sleep;
use std::time::{Duration, Instant};

use nvml_wrapper_sys::bindings as sys;

use self::buffers::Buffer;
pub(super) use self::buffers::Buffers;
use self::metrics::Metrics;
use super::code::{Code, Meaning};
use super::field_values::Support;
use super::library::Session;
use super::raw::{Handle, nvml_call, zeroed};
use super::work::Work;
use crate::catalogue::call::slot;
use crate::catalogue::plan::{Plan, PlannedGpm, Takers};
use crate::catalogue::{Number, Numbers};
use crate::sampler::snapshot::{InstanceIdentity, Sample};

mod buffers;
mod metrics;

/// Two samples lie further apart than this: the driver refreshes its counters every 100 ms, and
/// between two samples of one refresh rates are 0 and shares are not numbers. Only passes at the
/// shortest interval ever wait for it.
const MIN_GAP: Duration = Duration::from_millis(101);

const SUPPORT: &str = "nvmlGpmQueryDeviceSupport";
const ALLOCATE: &str = "nvmlGpmSampleAlloc";
const METRICS: &str = "nvmlGpmMetricsGet";

/// What is remembered of one GPU between passes.
#[derive(Debug)]
pub(super) struct Gpm {
    /// What `nvmlGpmQueryDeviceSupport` said.
    support: Support,
    supported: bool,
    links: u8,
    board: Source,
    /// By MIG UUID.
    instances: HashMap<String, Source>,
    metrics: Metrics,
}

/// One device that is sampled.
#[derive(Debug)]
struct Source {
    entries: Vec<Entry>,
    sampling: Support,
    buffers: [Option<Buffer>; 2],
    /// Which of both holds the sample of the pass before, and when it was taken.
    filled: Option<(usize, Instant)>,
    /// Which share of the board's slices the device is, if that is known.
    size: Option<f64>,
}

/// One metric of a device.
#[derive(Debug)]
struct Entry {
    metric: u16,
    link: Option<u8>,
    /// Position in the plan's list of the board's metrics, then in that of the instances'.
    planned: usize,
    support: Support,
}

/// Of whom samples are taken.
#[derive(Debug, Clone, Copy)]
enum Device {
    Whole(Handle),
    Instance(Handle, u32),
}

impl Device {
    const fn function(self) -> &'static str {
        match self {
            Self::Whole(_) => "nvmlGpmSampleGet",
            Self::Instance(..) => "nvmlGpmMigSampleGet",
        }
    }
}

impl Gpm {
    /// For a GPU with so many links.
    pub(super) fn new(plan: &Plan, links: u8) -> Self {
        let planned = plan.gpm_board.iter().chain(&plan.gpm_instance);
        Self {
            support: Support::default(),
            supported: false,
            links,
            board: Source::new(planned, links),
            instances: HashMap::new(),
            metrics: Metrics::default(),
        }
    }

    /// Samples the GPU; `whole` says whether it is a row itself, with the metrics that otherwise
    /// are its instances'.
    pub(super) fn read_board(
        &mut self,
        work: &mut Work<'_>,
        handle: Handle,
        whole: bool,
        samples: &mut Vec<Sample>,
    ) -> Result<(), Code> {
        let plan = &work.request.plan;
        let shown = plan.gpm_board.len() + if whole { plan.gpm_instance.len() } else { 0 };
        if shown == 0 {
            return Ok(());
        }
        let supported = self.ask_support(work, handle)?;
        let planned: Vec<_> = plan.gpm_board.iter().chain(&plan.gpm_instance).collect();
        let planned = &planned[..shown];
        match supported {
            Ok(()) => {
                let of = (Device::Whole(handle), planned);
                self.board.read(work, &mut self.metrics, of, samples)
            }
            Err(code) => {
                refuse(work, planned, code);
                Ok(())
            }
        }
    }

    /// Samples one instance of the GPU.
    pub(super) fn read_instance(
        &mut self,
        work: &mut Work<'_>,
        (parent, instance, uuid): (Handle, &InstanceIdentity, &str),
        slices: Option<u32>,
        samples: &mut Vec<Sample>,
    ) -> Result<(), Code> {
        let plan = &work.request.plan;
        let planned: Vec<_> = plan.gpm_instance.iter().collect();
        if planned.is_empty() {
            return Ok(());
        }
        if let Err(code) = self.ask_support(work, parent)? {
            refuse(work, &planned, code);
            return Ok(());
        }
        if !self.instances.contains_key(uuid) {
            self.instances
                .insert(uuid.to_owned(), Source::new(planned.iter().copied(), self.links));
        }
        let Some(source) = self.instances.get_mut(uuid) else { return Ok(()) };
        source.size = instance.share_of(slices);
        let of = (Device::Instance(parent, instance.gpu_instance), &planned[..]);
        source.read(work, &mut self.metrics, of, samples)
    }

    /// Lets go of instances that are not there any more.
    pub(super) fn keep_instances(&mut self, session: &Session, kept: impl Fn(&str) -> bool) {
        self.instances.retain(|uuid, source| {
            let keep = kept(uuid);
            if !keep {
                source.release(session);
            }
            keep
        });
    }

    /// Forgets samples, without freeing their buffers: what comes next may not follow from them.
    pub(super) fn interrupt(&mut self) {
        self.board.filled = None;
        self.instances.values_mut().for_each(|source| source.filled = None);
    }

    /// Gives all buffers back and asks for everything again at the next pass.
    pub(super) fn forget(&mut self, session: &Session) {
        (self.support, self.supported) = (Support::default(), false);
        self.keep_instances(session, |_| false);
        self.board.release(session);
        self.board.sampling = Support::default();
        for entry in &mut self.board.entries {
            entry.support = Support::default();
        }
    }

    /// Whether the GPU has GPM at all; if not, the code that its rows are missing for.
    fn ask_support(
        &mut self,
        work: &mut Work<'_>,
        handle: Handle,
    ) -> Result<Result<(), Code>, Code> {
        if self.supported {
            return Ok(Ok(()));
        }
        if let Some(code) = self.support.refusal() {
            return Ok(Err(code));
        }
        let mut answer: sys::nvmlGpmSupport_t = zeroed();
        answer.version = sys::NVML_GPM_SUPPORT_VERSION;
        let nvml = work.session.nvml();
        let said = nvml_call!(nvml, nvmlGpmQueryDeviceSupport(handle.0, &raw mut answer))
            .and(if answer.isSupportedDevice == 0 { Err(Code::NOT_SUPPORTED) } else { Ok(()) });
        self.support.learn(&said);
        self.supported = said.is_ok();
        if let Err(code) = said {
            work.failed(SUPPORT, code)?;
        }
        Ok(said)
    }
}

impl Source {
    fn new<'a>(planned: impl Iterator<Item = &'a PlannedGpm>, links: u8) -> Self {
        let entries = planned.enumerate().flat_map(|(at, planned)| {
            planned.metric.ids(links).map(move |(metric, link)| Entry {
                metric,
                link,
                planned: at,
                support: Support::default(),
            })
        });
        Self {
            entries: entries.collect(),
            sampling: Support::default(),
            buffers: [None, None],
            filled: None,
            size: Some(1.0),
        }
    }

    /// Takes a sample, and reads the metrics between it and the one of the pass before.
    fn read(
        &mut self,
        work: &mut Work<'_>,
        metrics: &mut Metrics,
        (device, planned): (Device, &[&PlannedGpm]),
        samples: &mut Vec<Sample>,
    ) -> Result<(), Code> {
        if let Some(code) = self.sampling.refusal() {
            refuse(work, planned, code);
            return Ok(());
        }
        let taken = self.sample(work.session, device);
        self.sampling.learn(&taken.map_err(|(_, code)| code));
        match taken {
            Ok(None) => {
                work.answered += 1;
                work.unpaired = true;
                Ok(())
            }
            Ok(Some(pair)) => {
                work.answered += 1;
                self.read_metrics(work, metrics, (pair, planned), samples)
            }
            Err((call, code)) => {
                self.filled = None;
                if code.meaning() == Meaning::Stale {
                    // A buffer may be what means nothing any more.
                    self.release(work.session);
                }
                refuse(work, planned, code);
                work.failed(call, code)
            }
        }
    }

    /// The samples of the pass before and of now, once there are both.
    fn sample(
        &mut self,
        session: &Session,
        device: Device,
    ) -> Result<Option<(Buffer, Buffer)>, (&'static str, Code)> {
        let nvml = session.nvml();
        let into = self.filled.map_or(0, |(before, _)| 1 - before);
        let buffer = match self.buffers[into] {
            Some(buffer) => buffer,
            None => session.gpm.allocate(nvml).map_err(|code| (ALLOCATE, code))?,
        };
        self.buffers[into] = Some(buffer);
        if let Some((_, at)) = self.filled {
            sleep(MIN_GAP.saturating_sub(at.elapsed()));
        }
        match device {
            Device::Whole(handle) => nvml_call!(nvml, nvmlGpmSampleGet(handle.0, buffer.0)),
            Device::Instance(parent, id) => {
                nvml_call!(nvml, nvmlGpmMigSampleGet(parent.0, id, buffer.0))
            }
        }
        .map_err(|code| (device.function(), code))?;
        let before = self.filled.replace((into, Instant::now()));
        Ok(before.and_then(|(at, _)| self.buffers[at]).map(|before| (before, buffer)))
    }

    fn read_metrics(
        &mut self,
        work: &mut Work<'_>,
        metrics: &mut Metrics,
        (pair, planned): ((Buffer, Buffer), &[&PlannedGpm]),
        samples: &mut Vec<Sample>,
    ) -> Result<(), Code> {
        let shown = |entry: &&mut Entry| entry.planned < planned.len();
        let mut asked = Vec::with_capacity(self.entries.len());
        for entry in self.entries.iter_mut().filter(shown) {
            match entry.support.refusal() {
                Some(code) => work.refused(&planned[entry.planned].takers, entry.link, code),
                None => asked.push(entry),
            }
        }
        if asked.is_empty() {
            return Ok(());
        }
        let ids: Vec<_> = asked.iter().map(|entry| entry.metric).collect();
        let values = match metrics.between(work.session, pair, &ids) {
            Ok(values) => values,
            Err(code) => {
                for entry in asked {
                    work.refused(&planned[entry.planned].takers, entry.link, code);
                }
                return work.failed(METRICS, code);
            }
        };
        for (entry, value) in asked.into_iter().zip(values) {
            entry.support.learn(&value);
            let value = value.map(|value| {
                let mut numbers = Numbers::default();
                numbers[slot::VALUE] = Some(Number::Float(value));
                numbers[slot::SIZE] = self.size.map(Number::Float);
                numbers
            });
            take(work, &planned[entry.planned].takers, (entry.link, value), samples)?;
        }
        Ok(())
    }

    fn release(&mut self, session: &Session) {
        self.filled = None;
        for buffer in self.buffers.iter_mut().filter_map(Option::take) {
            session.gpm.free(session.nvml(), buffer);
        }
    }
}

/// Makes samples of one metric's numbers, or notes what was missed.
fn take(
    work: &mut Work<'_>,
    takers: &Takers,
    (link, value): (Option<u8>, Result<Numbers, Code>),
    samples: &mut Vec<Sample>,
) -> Result<(), Code> {
    match value {
        Ok(numbers) => {
            work.samples(takers, &numbers, link, samples);
            Ok(())
        }
        Err(code) => {
            work.refused(takers, link, code);
            // As with field values: here it is a metric that the driver does not know.
            if matches!(code.meaning(), Meaning::Unsupported | Meaning::Stale) {
                return Ok(());
            }
            work.failed(METRICS, code)
        }
    }
}

/// Notes that none of the metrics has a value.
fn refuse(work: &mut Work<'_>, planned: &[&PlannedGpm], code: Code) {
    for planned in planned {
        work.refused(&planned.takers, None, code);
    }
}
