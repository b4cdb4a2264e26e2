//! The single `nvmlDeviceGetFieldValues` batch of a pass.
//!
//! nvml-wrapper's own version has no `scopeId` and decodes by `valueType`, which drivers set
//! wrongly for some fields, so the batch is made through the symbol table.

use std::time::{Duration, Instant};

use nvml_wrapper::FieldIdScheme;
use nvml_wrapper_sys::bindings as sys;

use super::code::{Code, Meaning};
use super::library::Session;
use super::raw::{Handle, nvml_call, zeroed};
use crate::catalogue::call::{Decode, Scope};
use crate::catalogue::{FieldValueRead, Number};

/// `scopeId` for the sum over all links.
const ALL_LINKS: u32 = u32::MAX;

/// `NVML_FI_DEV_NVLINK_LINK_COUNT`.
const LINK_COUNT: u32 = 91;

/// No GPU has more `NVLinks`; a larger answer is a driver's mistake.
const LINKS_MAX: u32 = 64;

/// One entry of the batch.
#[derive(Debug)]
struct Entry {
    id: u32,
    scope: u32,
    read: FieldValueRead,
    link: Option<u8>,
    supported: Support,
    value: Option<Result<Stamped, Code>>,
}

impl Entry {
    fn ask(&self) -> sys::nvmlFieldValue_st {
        let mut asked: sys::nvmlFieldValue_st = zeroed();
        asked.fieldId = self.id;
        asked.scopeId = self.scope;
        asked
    }
}

/// A decoded value and NVML's own time of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stamped {
    /// The value, undecoded units.
    pub(super) number: Number,
    /// CPU time in microseconds since 1970, as NVML stamps it; 0 if it does not.
    pub(super) timestamp: i64,
}

/// The negative cache of one call or entry on one device.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Support {
    answered: bool,
    refused: Option<(Code, Instant)>,
}

/// A call that a device never answered is asked again after this long: drivers and modes change.
const ASK_AGAIN: Duration = Duration::from_secs(300);

impl Support {
    /// The code that stands in for a call that need not be made now.
    pub(super) fn refusal(&self) -> Option<Code> {
        self.refused.filter(|(_, at)| at.elapsed() < ASK_AGAIN).map(|(code, _)| code)
    }

    /// Remembers what the call said. A call that once answered is a fault when it refuses, not a
    /// property of the device, so it is tried again on every pass.
    pub(super) fn learn<T>(&mut self, answer: &Result<T, Code>) {
        match answer {
            Ok(_) => *self = Self { answered: true, refused: None },
            Err(code) if code.meaning() == Meaning::Unsupported && !self.answered => {
                self.refused = Some((*code, Instant::now()));
            }
            // An unknown field id or argument is as good as not supported.
            Err(Code::INVALID_ARGUMENT) if !self.answered => {
                self.refused = Some((Code::INVALID_ARGUMENT, Instant::now()));
            }
            Err(_) => self.refused = None,
        }
    }
}

/// All entries that a plan asks of one GPU, with their newest values.
#[derive(Default)]
pub(super) struct Batch {
    entries: Vec<Entry>,
    buffer: Vec<sys::nvmlFieldValue_st>,
}

impl std::fmt::Debug for Batch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Batch").field("entries", &self.entries).finish_non_exhaustive()
    }
}

impl Batch {
    /// Expands `Scope::EachLink` over the GPU's links and translates ids to the driver's numbering.
    pub(super) fn new(session: &Session, handle: Handle, reads: &[FieldValueRead]) -> Self {
        let links = if reads.iter().any(|read| read.scope == Scope::EachLink) {
            link_count(session, handle)
        } else {
            0
        };
        let scheme = session.nvml().field_id_scheme();
        let mut batch = Self::default();
        for read in reads {
            let id = translate(scheme, read.id.into());
            match read.scope {
                Scope::Device => batch.push(id, 0, *read, None),
                Scope::AllLinks => batch.push(id, ALL_LINKS, *read, None),
                Scope::Link(link) => batch.push(id, link.into(), *read, None),
                Scope::EachLink => {
                    for link in 0..links {
                        batch.push(id, link.into(), *read, Some(link));
                    }
                }
            }
        }
        batch
    }

    /// Asks for everything again at the next pass.
    pub(super) fn forget_refusals(&mut self) {
        for entry in &mut self.entries {
            entry.supported = Support::default();
        }
    }

    fn push(&mut self, id: u32, scope: u32, read: FieldValueRead, link: Option<u8>) {
        self.entries.push(Entry {
            id,
            scope,
            read,
            link,
            supported: Support::default(),
            value: None,
        });
    }

    /// One call for all entries that are not known to be unsupported. Should a library refuse the
    /// whole batch for the sake of one entry, they are asked one by one, which finds the culprit.
    pub(super) fn read(&mut self, session: &Session, handle: Handle) -> Result<(), Code> {
        let mut asked = Vec::with_capacity(self.entries.len());
        self.buffer.clear();
        for (position, entry) in self.entries.iter_mut().enumerate() {
            entry.value = entry.supported.refusal().map(Err);
            if entry.value.is_none() {
                asked.push(position);
                self.buffer.push(entry.ask());
            }
        }
        if asked.is_empty() {
            return Ok(());
        }
        let answer = get(session, handle, &mut self.buffer);
        let refused = matches!(answer, Err(Code::INVALID_ARGUMENT | Code::NOT_SUPPORTED));
        for (position, value) in asked.iter().zip(&mut self.buffer) {
            let entry = &mut self.entries[*position];
            let answer = if refused && asked.len() > 1 {
                get(session, handle, std::slice::from_mut(value))
            } else {
                answer
            };
            let decoded = answer.and_then(|()| decode(value, entry.read.decode));
            entry.supported.learn(&decoded);
            entry.value = Some(decoded);
        }
        if refused { Ok(()) } else { answer }
    }

    /// The newest values of one read: one, or one a link.
    pub(super) fn values(
        &self,
        read: FieldValueRead,
    ) -> impl Iterator<Item = (Option<u8>, Result<Stamped, Code>)> + '_ {
        self.entries
            .iter()
            .filter(move |entry| entry.read == read)
            .filter_map(|entry| entry.value.map(|value| (entry.link, value)))
    }
}

/// How many `NVLinks` the GPU has; 0 when it has none or does not say.
pub(super) fn link_count(session: &Session, handle: Handle) -> u8 {
    let mut asked: sys::nvmlFieldValue_st = zeroed();
    asked.fieldId = LINK_COUNT;
    let answer = get(session, handle, std::slice::from_mut(&mut asked));
    match answer.and_then(|()| decode(&asked, Decode::U32)) {
        Ok(Stamped { number: Number::Int(count), .. }) => {
            u8::try_from(count.clamp(0, LINKS_MAX.into())).unwrap_or(0)
        }
        _ => 0,
    }
}

fn get(
    session: &Session,
    handle: Handle,
    values: &mut [sys::nvmlFieldValue_st],
) -> Result<(), Code> {
    let Ok(count) = i32::try_from(values.len()) else { return Err(Code::INSUFFICIENT_SIZE) };
    let values = values.as_mut_ptr();
    nvml_call!(session.nvml(), nvmlDeviceGetFieldValues(handle.0, count, values))
}

/// Driver 580.82 renumbered 251 to 273; the catalogue holds the older numbers.
fn translate(scheme: FieldIdScheme, id: u32) -> u32 {
    match (scheme, id) {
        (FieldIdScheme::V13Update1, 251..=255) => id + 18,
        (FieldIdScheme::V13Update1, 256..=273) => id - 5,
        _ => id,
    }
}

fn decode(value: &sys::nvmlFieldValue_st, how: Decode) -> Result<Stamped, Code> {
    Code::check(value.nvmlReturn)?;
    // With ECC off some drivers answer success and leave the entry untouched.
    let untouched = value.timestamp == 0 && value.latencyUsec == 0 && value.valueType == 0;
    if how == Decode::U64 && untouched {
        return Err(Code::NOT_SUPPORTED);
    }
    let number = match how {
        Decode::U32 => Number::Int(unsigned(value)),
        Decode::U64 => wide(unsigned_wide(value)),
        Decode::Tagged => tagged(value)?,
    };
    Ok(Stamped { number, timestamp: value.timestamp })
}

fn wide(value: u64) -> Number {
    i64::try_from(value).map_or(Number::Uint(value), Number::Int)
}

fn unsigned_wide(value: &sys::nvmlFieldValue_st) -> u64 {
    // SAFETY: the union was zeroed before the call, so all of its bytes are initialised.
    unsafe { value.value.ullVal }
}

fn unsigned(value: &sys::nvmlFieldValue_st) -> i64 {
    // SAFETY: as in `unsigned_wide`.
    i64::from(unsafe { value.value.uiVal })
}

/// By `nvmlValueType_t`.
fn tagged(value: &sys::nvmlFieldValue_st) -> Result<Number, Code> {
    Ok(match value.valueType {
        // SAFETY: as in `unsigned_wide`; every bit pattern is a double.
        0 => Number::Float(unsafe { value.value.dVal }),
        1 => Number::Int(unsigned(value)),
        2 | 3 => wide(unsigned_wide(value)),
        // SAFETY: as in `unsigned_wide`.
        4 => Number::Int(unsafe { value.value.sllVal }),
        // SAFETY: as in `unsigned_wide`.
        5 => Number::Int(i64::from(unsafe { value.value.siVal })),
        // SAFETY: as in `unsigned_wide`.
        6 => Number::Int(i64::from(unsafe { value.value.usVal })),
        _ => return Err(Code::UNKNOWN),
    })
}

#[cfg(test)]
mod tests {
    use super::{Code, Decode, FieldIdScheme, Number, Support, decode, translate, zeroed};
    use nvml_wrapper_sys::bindings as sys;

    #[test]
    fn ids_of_the_renumbered_range_follow_the_driver() {
        for (id, new) in [(250, 250), (251, 269), (255, 273), (256, 251), (273, 268), (274, 274)] {
            assert_eq!(translate(FieldIdScheme::V13Update1, id), new);
            assert_eq!(translate(FieldIdScheme::V12, id), id);
        }
    }

    #[test]
    fn a_mistagged_value_is_read_as_its_row_says() {
        let mut value: sys::nvmlFieldValue_st = zeroed();
        value.value.uiVal = 55;
        value.timestamp = 1;
        assert_eq!(decode(&value, Decode::U32).map(|v| v.number), Ok(Number::Int(55)));
    }

    #[test]
    fn an_untouched_ecc_entry_is_not_supported() {
        let value: sys::nvmlFieldValue_st = zeroed();
        assert_eq!(decode(&value, Decode::U64).map(|v| v.number), Err(Code::NOT_SUPPORTED));
    }

    #[test]
    fn only_a_call_that_never_answered_is_remembered_as_unsupported() {
        let mut support = Support::default();
        support.learn(&Err::<(), _>(Code::NOT_SUPPORTED));
        assert_eq!(support.refusal(), Some(Code::NOT_SUPPORTED));
        support.learn(&Ok(()));
        support.learn(&Err::<(), _>(Code::NOT_SUPPORTED));
        assert_eq!(support.refusal(), None);
    }
}
