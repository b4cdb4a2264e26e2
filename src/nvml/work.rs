//! A pass under way: makes planned calls and collects what they give.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::SystemTime;

use super::calls;
use super::code::{Code, Meaning};
use super::facts::FactValue;
use super::field_values::{Stamped, Support};
use super::library::Session;
use super::peers;
use super::raw_handle::Handle;
use super::reader::{Request, Target};
use crate::catalogue::call::{LinkError, slot};
use crate::catalogue::plan::{PlannedCall, Takers};
use crate::catalogue::{Call, Number, Numbers, Value};
use crate::sampler::incidents::Incidents;
use crate::sampler::owners::ProcRoot;
use crate::sampler::snapshot::{Accounted, Processes, Sample};

/// The reason of a row whose call answered, but not with a value that can be served: the older
/// version of a struct lacks it, or a sensor shows what cannot be.
const NO_VALUE: &str = "NO_VALUE";

/// A pass under way.
pub(super) struct Work<'a> {
    pub(super) session: &'a Session,
    pub(super) request: &'a Request,
    pub(super) proc_root: &'a ProcRoot,
    incidents: &'a Incidents,
    uuid: &'a str,
    pub(super) errors: Vec<(&'static str, Code)>,
    /// Errors of calls that no row needs.
    pub(super) aside: Vec<(&'static str, Code)>,
    pub(super) processes: Option<Processes>,
    pub(super) accounting: Vec<Accounted>,
    /// How the GPU reaches the others.
    pub(super) peers: Vec<(u32, u32)>,
    others: &'a [(u32, Handle)],
    /// Calls and field values that the driver answered in this pass.
    pub(super) answered: usize,
    /// Whether a device was sampled for the first time.
    pub(super) unpaired: bool,
    pub(super) unsupported: Vec<(u16, &'static str)>,
    pub(super) labels: Vec<(u16, Arc<str>)>,
    /// What was answered about links: DCGM's rows of one link and ours of all links share it.
    link_errors: HashMap<(LinkError, u8), calls::Answer>,
}

impl<'a> Work<'a> {
    /// Starts with nothing read.
    pub(super) fn new(target: &'a Target, incidents: &'a Incidents) -> Self {
        Self {
            session: &target.session,
            request: &target.request,
            proc_root: &target.proc_root,
            incidents,
            uuid: &target.identity.uuid,
            errors: Vec::new(),
            aside: Vec::new(),
            processes: None,
            accounting: Vec::new(),
            peers: Vec::new(),
            others: &target.peers,
            answered: 0,
            unpaired: false,
            unsupported: Vec::new(),
            labels: Vec::new(),
            link_errors: HashMap::new(),
        }
    }

    /// Makes one planned call and turns its numbers into samples.
    pub(super) fn call(
        &mut self,
        handle: Handle,
        planned: &PlannedCall,
        support: &mut Support,
        samples: &mut Vec<Sample>,
    ) -> Result<(), Code> {
        self.link_call((handle, None), planned, support, samples)
    }

    /// The same for one link of the device, if the call is made once a link.
    pub(super) fn link_call(
        &mut self,
        (handle, link): (Handle, Option<u8>),
        planned: &PlannedCall,
        support: &mut Support,
        samples: &mut Vec<Sample>,
    ) -> Result<(), Code> {
        if let Some(code) = support.refusal() {
            // It was counted when it was learnt.
            self.refused(&planned.takers, link, code);
            return Ok(());
        }
        let answer = self.execute(handle, planned.call, link.unwrap_or_default());
        support.learn(&answer);
        self.answered(planned, link, answer, samples)
    }

    fn execute(&mut self, handle: Handle, call: Call, link: u8) -> calls::Answer {
        let make = || calls::execute(self.session, handle, call, link);
        let about = match call {
            Call::NvLinkErrorCounter(link, error) => (error, link),
            Call::EachNvLinkErrorCounter(error) => (error, link),
            _ => return make(),
        };
        *self.link_errors.entry(about).or_insert_with(make)
    }

    /// Turns what a planned call answered into samples, or notes what it missed.
    pub(super) fn answered(
        &mut self,
        planned: &PlannedCall,
        link: Option<u8>,
        answer: calls::Answer,
        samples: &mut Vec<Sample>,
    ) -> Result<(), Code> {
        match answer {
            Ok(numbers) => {
                self.answered += 1;
                self.samples(&planned.takers, &numbers, link, samples);
                Ok(())
            }
            Err(code) => {
                self.refused(&planned.takers, link, code);
                self.failed(planned.call.function(), code)
            }
        }
    }

    /// Notes rows that have no value. A GPU with links that are not there misses nothing.
    pub(super) fn refused(&mut self, takers: &Takers, link: Option<u8>, code: Code) {
        if link.is_none() {
            let rows = takers.rows.iter().chain(&takers.history);
            self.unsupported.extend(rows.map(|row| (*row, code.name())));
        }
    }

    pub(super) fn samples(
        &mut self,
        takers: &Takers,
        numbers: &Numbers,
        link: Option<u8>,
        samples: &mut Vec<Sample>,
    ) {
        for row in &takers.rows {
            let field = self.request.selection.field(*row);
            match field.and_then(|field| field.convert(numbers)) {
                Some(value) => samples.push(Sample { row: *row, link, value }),
                None if link.is_none() => self.unsupported.push((*row, NO_VALUE)),
                None => {}
            }
        }
        if let (false, Some(Number::Int(mask))) = (takers.history.is_empty(), numbers[slot::VALUE])
        {
            self.incidents.clocks(self.uuid, mask.cast_unsigned(), SystemTime::now());
        }
        for label in &takers.labels {
            let label_row = self.request.selection.labels.get(usize::from(*label));
            let value = label_row.and_then(|row| row.field.convert(numbers));
            self.labels.extend(value.map(|value| (*label, text(value).into())));
        }
    }

    /// Turns facts, which were read before, into samples, labels and texts by row.
    pub(super) fn facts(
        &mut self,
        facts: &[Result<FactValue, Code>],
        board: &mut Vec<Sample>,
    ) -> Vec<(u16, Arc<str>)> {
        let mut texts = Vec::new();
        for (planned, value) in self.request.plan.facts.iter().zip(facts) {
            let Takers { rows, labels, .. } = &planned.takers;
            let text: Arc<str> = match value {
                Ok(FactValue::Text(text)) => {
                    let text: Arc<str> = text.as_str().into();
                    texts.extend(rows.iter().map(|row| (*row, Arc::clone(&text))));
                    text
                }
                Ok(FactValue::Number(number)) => {
                    let value = Value::Int(*number);
                    board.extend(rows.iter().map(|row| Sample { row: *row, link: None, value }));
                    number.to_string().into()
                }
                Err(code) => {
                    self.unsupported.extend(rows.iter().map(|row| (*row, code.name())));
                    continue;
                }
            };
            self.labels.extend(labels.iter().map(|row| (*row, Arc::clone(&text))));
        }
        texts
    }

    /// Notes a call that no row needs, if it failed. That is no reason to end the pass, whatever it
    /// is: the calls that rows need will tell.
    pub(super) fn note<T>(&mut self, call: &'static str, answer: &Result<T, Code>) {
        if let Err(code) = answer
            && code.meaning() != Meaning::Unsupported
        {
            self.aside.push((call, *code));
        }
    }

    /// Notes a failed call; ends the pass when the GPU or the session is gone.
    pub(super) fn failed(&mut self, call: &'static str, code: Code) -> Result<(), Code> {
        match code.meaning() {
            Meaning::Unsupported => Ok(()),
            Meaning::Stale | Meaning::Transient => {
                self.errors.push((call, code));
                Ok(())
            }
            Meaning::Lost | Meaning::ResetRequired | Meaning::Session => {
                self.errors.push((call, code));
                Err(code)
            }
        }
    }

    /// `--dcgm-quirks`: DCGM shows 0 for these two fields on a board without the sensor
    /// (`NVML_FI_DEV_MEMORY_TEMP`, `NVML_FI_DEV_POWER_INSTANT`).
    pub(super) fn sensorless(&self, id: u16, code: Code) -> Result<Stamped, Code> {
        if self.request.quirks && matches!(id, 82 | 186) && code == Code::NOT_SUPPORTED {
            return Ok(Stamped { number: Number::Int(0), timestamp: 0 });
        }
        Err(code)
    }

    /// Asks how the GPU reaches the others, for the row given.
    pub(super) fn read_peers(&mut self, handle: Handle, row: u16) -> Result<(), Code> {
        let (found, failed) = peers::read(self.session, handle, self.others);
        self.answered += found.len();
        self.peers = found;
        let Some(code) = failed else { return Ok(()) };
        self.unsupported.push((row, code.name()));
        self.failed("nvmlDeviceGetP2PStatus", code)
    }

    pub(super) fn last_xid(&self, instance: Option<u32>, samples: &mut Vec<Sample>) {
        let Some(xid) = self.incidents.of(self.uuid).last_xid(instance) else { return };
        samples.extend(self.request.plan.last_xid.rows.iter().map(|row| Sample {
            row: *row,
            link: None,
            value: Value::Int(i64::try_from(xid).unwrap_or(i64::MAX)),
        }));
    }
}

fn text(value: Value) -> String {
    match value {
        Value::Int(value) => value.to_string(),
        Value::Uint(value) => value.to_string(),
        Value::Float(value) => value.to_string(),
    }
}

/// Whether a call is made for every link of the GPU.
pub(super) fn each_link(call: Call) -> bool {
    matches!(call, Call::EachNvLinkErrorCounter(_) | Call::EachNvLinkState)
}

/// The links that a call is made for: itself alone, or every link of the GPU.
pub(super) fn links(call: Call, count: u8) -> impl Iterator<Item = Option<u8>> {
    let (once, each) = if each_link(call) { (None, 0..count) } else { (Some(None), 0..0) };
    once.into_iter().chain(each.map(Some))
}
