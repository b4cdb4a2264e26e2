//! The exported functions, by subject.

mod clocks;
mod ecc;
mod identity;
mod lookup;
mod memory;
mod mig;
mod power;
mod session;
mod thermal;
mod utilization;
