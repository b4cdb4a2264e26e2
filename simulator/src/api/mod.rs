//! The exported functions, by subject.

mod accounting;
mod clocks;
mod ecc;
mod events;
mod fabric;
mod fields;
mod gpm;
mod identity;
mod instances;
mod licence;
mod lookup;
mod memory;
mod mig;
mod modes;
mod nvlink;
mod pcie;
mod power;
mod process;
mod session;
mod stubs;
mod thermal;
mod topology;
mod utilization;
