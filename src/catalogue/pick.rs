//! Conversions from NVML's numbers to the value served. Each exists once.

use super::call::{Number, Numbers};
use super::field::Value;

/// The number at `slot` as an integer; a double is "no value".
#[must_use]
pub fn int(numbers: &Numbers, slot: usize) -> Option<i64> {
    match numbers.get(slot).copied().flatten()? {
        Number::Int(value) => Some(value),
        Number::Uint(value) => i64::try_from(value).ok(),
        Number::Float(_) => None,
    }
}

/// The number at `slot` as a double.
#[must_use]
pub fn float(numbers: &Numbers, slot: usize) -> Option<f64> {
    let value = match numbers.get(slot).copied().flatten()? {
        Number::Int(value) => value as f64,
        Number::Uint(value) => value as f64,
        Number::Float(value) => value,
    };
    value.is_finite().then_some(value)
}

/// Unconverted.
#[must_use]
pub fn raw(numbers: &Numbers, slot: usize) -> Option<Value> {
    Some(match numbers.get(slot).copied().flatten()? {
        Number::Int(value) => Value::Int(value),
        Number::Uint(value) => Value::Uint(value),
        Number::Float(value) => Value::Float(value.is_finite().then_some(value)?),
    })
}

/// Bytes to MiB, each number by its own integer division, as DCGM does.
#[must_use]
pub fn mib(numbers: &Numbers, slot: usize) -> Option<Value> {
    int(numbers, slot).map(|bytes| Value::Int(bytes / 1_048_576))
}

/// Divided in floating point: mW to W, mJ to J, percent to ratio.
#[must_use]
pub fn divided(numbers: &Numbers, slot: usize, divisor: f64) -> Option<Value> {
    float(numbers, slot).map(|value| Value::Float(value / divisor))
}

/// mW to whole watts in a double: DCGM's power limits lose the milliwatts.
#[must_use]
pub fn whole_watts(numbers: &Numbers, slot: usize) -> Option<Value> {
    int(numbers, slot).map(|milliwatts| Value::Float((milliwatts / 1000) as f64))
}

/// Multiplied in integers: MHz to Hz, KiB to bytes.
#[must_use]
pub fn times(numbers: &Numbers, slot: usize, factor: i64) -> Option<Value> {
    let value = int(numbers, slot)?;
    Some(
        value
            .checked_mul(factor)
            .map_or_else(|| Value::Float(value as f64 * factor as f64), Value::Int),
    )
}

/// One bit of a mask as 0 or 1.
#[must_use]
pub fn bit(numbers: &Numbers, slot: usize, bit: u32) -> Option<Value> {
    int(numbers, slot).map(|mask| Value::Int((mask >> bit) & 1))
}

/// A temperature in Celsius; above 200 it is a defect of the sensor and dropped, as by DCGM.
#[must_use]
pub fn celsius(numbers: &Numbers, slot: usize) -> Option<Value> {
    int(numbers, slot).filter(|value| *value <= 200).map(Value::Int)
}
