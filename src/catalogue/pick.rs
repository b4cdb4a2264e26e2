//! Conversions from NVML's numbers to the value served. Each exists once.

use super::call::{Number, Numbers, RateUnit, slot};
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

/// The only number of a call, unconverted.
#[must_use]
pub fn value(numbers: &Numbers) -> Option<Value> {
    raw(numbers, slot::VALUE)
}

/// The only number of a call, a temperature; see [`celsius`].
#[must_use]
pub fn temperature(numbers: &Numbers) -> Option<Value> {
    celsius(numbers, slot::VALUE)
}

/// MHz to Hz.
#[must_use]
pub fn hertz(numbers: &Numbers) -> Option<Value> {
    times(numbers, slot::VALUE, 1_000_000)
}

/// KiB to bytes.
#[must_use]
pub fn kib_to_bytes(numbers: &Numbers) -> Option<Value> {
    times(numbers, slot::VALUE, 1024)
}

/// mW to W, mJ to J: the thousandths are kept.
#[must_use]
pub fn thousandths(numbers: &Numbers) -> Option<Value> {
    divided(numbers, slot::VALUE, 1e3)
}

/// mW to whole watts; see [`whole_watts`].
#[must_use]
pub fn watts_cut(numbers: &Numbers) -> Option<Value> {
    whole_watts(numbers, slot::VALUE)
}

/// Nanoseconds to seconds.
#[must_use]
pub fn seconds(numbers: &Numbers) -> Option<Value> {
    divided(numbers, slot::VALUE, 1e9)
}

/// Percent to a ratio.
#[must_use]
pub fn ratio(numbers: &Numbers) -> Option<Value> {
    divided(numbers, slot::VALUE, 1e2)
}

/// GPM's percent to a ratio. NaN, which GPM gives where it has nothing to divide by, is no value,
/// and so is what is below 0, as after a reset.
#[must_use]
pub fn gpm_ratio(numbers: &Numbers) -> Option<Value> {
    not_negative(numbers).map(|percent| Value::Float(percent / 1e2))
}

/// GPM's percent of an instance to a ratio of the board.
#[must_use]
pub fn gpm_of_board(numbers: &Numbers) -> Option<Value> {
    let Some(Number::Float(size)) = numbers[slot::SIZE] else { return None };
    not_negative(numbers).map(|percent| Value::Float(percent / 1e2 * size))
}

/// GPM's MiB per second to bytes per second, cut as by DCGM.
#[must_use]
pub fn gpm_bytes(numbers: &Numbers) -> Option<Value> {
    not_negative(numbers).map(|mib| cut(mib * 1_048_576.0))
}

/// GPM's counts and percentages that DCGM serves as integers.
#[must_use]
pub fn gpm_whole(numbers: &Numbers) -> Option<Value> {
    not_negative(numbers).map(cut)
}

fn not_negative(numbers: &Numbers) -> Option<f64> {
    float(numbers, slot::VALUE).filter(|value| *value >= 0.0)
}

#[expect(clippy::cast_possible_truncation, reason = "DCGM cuts; beyond 2^63 the bound is served")]
fn cut(value: f64) -> Value {
    Value::Int(value as i64)
}

/// As a double, for fields that DCGM serves as doubles.
#[must_use]
pub fn double(numbers: &Numbers) -> Option<Value> {
    float(numbers, slot::VALUE).map(Value::Float)
}

/// Used framebuffer over what applications can use, from bytes, 0 to 1.
#[must_use]
pub fn used_share(numbers: &Numbers) -> Option<Value> {
    let used = float(numbers, slot::USED)?;
    // The v1 call counts reserved memory as used and names no reserve.
    let reserved = float(numbers, slot::RESERVED).unwrap_or(0.0);
    let usable = float(numbers, slot::TOTAL)? - reserved;
    (usable > 0.0).then(|| Value::Float(used / usable))
}

/// NVML's compute mode in DCGM's numbering: 0 default, 1 prohibited, 2 exclusive process.
#[must_use]
pub fn compute_mode(numbers: &Numbers) -> Option<Value> {
    match int(numbers, slot::VALUE)? {
        0 => Some(Value::Int(0)),
        2 => Some(Value::Int(1)),
        3 => Some(Value::Int(2)),
        _ => None,
    }
}

/// NVML's `NVML_GPU_FABRIC_STATE_COMPLETED`.
const FABRIC_COMPLETED: i64 = 3;

/// DCGM's fabric status: 0 not supported, 1 not started, 2 in progress, 3 success, 4 failure.
#[must_use]
pub fn fabric_status(numbers: &Numbers) -> Option<Value> {
    match int(numbers, slot::FABRIC_STATE)? {
        state @ 0..=2 => Some(Value::Int(state)),
        FABRIC_COMPLETED => int(numbers, slot::FABRIC_STATUS)
            .map(|status| Value::Int(if status == 0 { 3 } else { 4 })),
        _ => None,
    }
}

/// The code with which the registration ended; "no value" until it has ended.
#[must_use]
pub fn fabric_error(numbers: &Numbers) -> Option<Value> {
    (int(numbers, slot::FABRIC_STATE)? == FABRIC_COMPLETED)
        .then(|| raw(numbers, slot::FABRIC_STATUS))
        .flatten()
}

/// NVML's packed bit error rate (`NVML_NVLINK_ERROR_COUNTER_BER_GET`) as a number: the mantissa
/// in bits 8 to 11 times ten to minus the exponent in bits 0 to 7.
#[must_use]
pub fn bit_error_rate(numbers: &Numbers) -> Option<Value> {
    let packed = int(numbers, slot::VALUE)?;
    let (mantissa, exponent) = ((packed >> 8) & 0xf, packed & 0xff);
    // NVML's code for "no error yet".
    if (mantissa, exponent) == (15, 255) {
        return Some(Value::Float(0.0));
    }
    let exponent = i32::try_from(exponent).ok()?;
    Some(Value::Float(mantissa as f64 * 10_f64.powi(-exponent)))
}

/// The growth of a KiB counter over a time as a rate; a counter that went backwards, as after a
/// link reset, has no rate.
#[must_use]
pub fn rate(grown_kib: i64, seconds: f64, unit: RateUnit) -> Option<Value> {
    if grown_kib < 0 || seconds <= 0.0 {
        return None;
    }
    let kib_per_second = grown_kib as f64 / seconds;
    Some(match unit {
        #[expect(clippy::cast_possible_truncation, reason = "DCGM cuts; no link moves 2^63 KiB/s")]
        RateUnit::ThousandKib => Value::Int((kib_per_second / 1000.0) as i64),
        RateUnit::Bytes => Value::Float(kib_per_second * 1024.0),
    })
}
