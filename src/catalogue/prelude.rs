//! Short forms in which the tables of rows are written, so that a row fits a glance.

pub(super) use super::call::{
    Call, Clock, Decode, EccCounter, EccError, EccLocation, Fact, FieldValueRead, LinkError,
    RateRead, RateUnit, RetirementCause, Scope, Threshold, slot,
};
pub(super) use super::field::Entity::{Gpu, Instance, Link, Node};
pub(super) use super::field::{Entity, Field, Kind, Pick, Read};
pub(super) use super::gpm::GpmMetric;
pub(super) use super::pick;

/// A row whose value goes both ways.
pub(super) const fn gauge(name: &'static str, id: u16, entity: Entity, read: Read) -> Field {
    Field::new(name, id, Kind::Gauge, entity, read)
}

/// A row whose value only grows while the driver stays loaded.
pub(super) const fn counter(name: &'static str, id: u16, entity: Entity, read: Read) -> Field {
    Field::new(name, id, Kind::Counter, entity, read)
}

/// A row that becomes a label on every other sample.
pub(super) const fn label(name: &'static str, id: u16, entity: Entity, fact: Fact) -> Field {
    Field::new(name, id, Kind::Label, entity, Read::Fact(fact))
}

/// One of the numbers of a call.
pub(super) const fn call(call: Call, pick: Pick) -> Read {
    Read::Call(call, pick)
}

/// The only number of a call, unconverted.
pub(super) const fn plain(call: Call) -> Read {
    Read::Call(call, pick::value)
}

/// A field value of the whole device, decoded as NVML tags it.
pub(super) const fn field(id: u16, pick: Pick) -> Read {
    scoped(id, Scope::Device, Decode::Tagged, pick)
}

/// A field value whose tag NVML gets wrong.
pub(super) const fn decoded(id: u16, decode: Decode, pick: Pick) -> Read {
    scoped(id, Scope::Device, decode, pick)
}

/// A field value of one or all links.
pub(super) const fn scoped(id: u16, scope: Scope, decode: Decode, pick: Pick) -> Read {
    Read::FieldValue(FieldValueRead { id, scope, decode }, pick)
}

/// One metric of GPM.
pub(super) const fn gpm(metric: u16, pick: Pick) -> Read {
    Read::Gpm(GpmMetric::Id(metric), pick)
}
