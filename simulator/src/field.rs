//! The values behind `nvmlDeviceGetFieldValues`.

use nvml_wrapper_sys::bindings::nvmlValue_t;

use crate::clock::{nearest, whole};
use crate::code::{Answer, INVALID_ARGUMENT, NOT_SUPPORTED};
use crate::device::Device;
use crate::model::Ecc;
use crate::scenario::version_numbers;
use crate::setting::Key;

/// The scope that stands for all links.
pub(crate) const ALL: u32 = u32::MAX;

/// `NVML_NVLINK_VERSION_5_0`.
const NVLINK_5: u32 = 7;
/// `NVML_NVLINK_VERSION_4_0`.
const NVLINK_4: u32 = 6;
/// `NVML_NVLINK_VERSION_3_0`.
const NVLINK_3: u32 = 4;
/// `NVML_DEVICE_ARCH_AMPERE`.
const AMPERE: u32 = 7;
/// `NVML_DEVICE_ARCH_HOPPER`.
const HOPPER: u32 = 9;
/// `NVML_DEVICE_ARCH_BLACKWELL`.
const BLACKWELL: u32 = 10;

/// A field value, of the type that the real library gives the field.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Value {
    U32(u32),
    U64(u64),
    I32(i32),
    /// A `u64` that is labelled as a double: the library never sets the type of ECC totals.
    Mislabelled(u64),
    /// The library says "success" and leaves the caller's struct alone: ECC totals without ECC.
    Untouched,
}

impl Value {
    /// The value as the union and type of an `nvmlFieldValue_t`; `None` if neither is touched.
    pub(crate) fn encode(self) -> Option<(nvmlValue_t, u32)> {
        Some(match self {
            // The union is written whole: what the narrow types leave over is zero.
            Self::U32(value) => (nvmlValue_t { ullVal: u64::from(value) }, 1),
            Self::U64(value) => (nvmlValue_t { ullVal: value }, 3),
            Self::I32(value) => (nvmlValue_t { ullVal: u64::from(value.cast_unsigned()) }, 5),
            Self::Mislabelled(value) => (nvmlValue_t { ullVal: value }, 0),
            Self::Untouched => return None,
        })
    }
}

/// The number that a field has had since driver 580.82, which moved power smoothing (then 256 to
/// 273) before the clock event counters (then 251 to 255).
fn modern_id(device: &Device<'_>, id: u32) -> u32 {
    let moved = version_numbers(&device.world.driver.version) >= vec![580, 82];
    match id {
        251..=255 if !moved => id + 18,
        256..=273 if !moved => id - 5,
        _ => id,
    }
}

/// One past the highest id that a driver knows.
fn known_ids(branch: u32) -> u32 {
    match branch {
        0..470 => 148,
        470..510 => 161,
        510..525 => 170,
        525..535 => 193,
        535..545 => 200,
        545..555 => 226,
        555..560 => 230,
        560..565 => 251,
        565..580 => 274,
        _ => 308,
    }
}

/// The value of a field.
pub(crate) fn value(device: &Device<'_>, id: u32, scope: u32) -> Answer<Value> {
    let listed = |list: &[u32]| list.contains(&id);
    if id == 0 || id >= known_ids(device.world.branch()) {
        return Err(INVALID_ARGUMENT);
    }
    if device.part.is_some()
        || listed(&device.model.unsupported_fields)
        || listed(&device.gpu.unsupported_fields)
    {
        return Err(NOT_SUPPORTED);
    }
    match modern_id(device, id) {
        id @ (1..=31 | 92..=93 | 142..=145) => memory_errors(device, id),
        id @ (138..=141 | 146 | 161..=168) => nvlink(device, id, scope),
        // Where the id names the link, a link that is not there is a field that is not there.
        id @ (32..=73 | 84..=91 | 96..=137 | 147..=160) => {
            nvlink(device, id, 0).map_err(|_| NOT_SUPPORTED)
        }
        id @ (201..=225 | 235..=250) => nvlink_5(device, id, scope),
        id @ (74..=83 | 185..=196 | 269..=273) => power(device, id, scope),
        id @ (94..=95 | 169 | 173..=183 | 197..=198 | 228..=229) => pcie(device, id),
        id @ (170..=172 | 231..=234) => c2c(device, id, scope),
        184 => Ok(mig(device, HOPPER)),
        199 => Ok(mig(device, AMPERE)),
        200 => link_power(device, 8_191),
        id @ 251..=268 => power_smoothing(device, id),
        226 | 227 if device.model.architecture >= HOPPER => Ok(Value::U32(0)),
        230 => Ok(Value::U32(nearest(device.setting(Key::RecoveryAction, || 0.0)))),
        _ => Err(NOT_SUPPORTED),
    }
}

fn mig(device: &Device<'_>, since: u32) -> Value {
    Value::U32(u32::from(device.model.mig.is_some() && device.model.architecture >= since))
}

fn memory_errors(device: &Device<'_>, id: u32) -> Answer<Value> {
    let on = device.ecc_on()?;
    let ecc = device.model.ecc;
    let count = |key| Ok(Value::U32(nearest(device.setting(key, || 0.0))));
    let pages = |key| if ecc == Ecc::Pages { count(key) } else { Err(NOT_SUPPORTED) };
    // Header: rows cannot be asked for while there are instances.
    let divided = device.gpu.mig.as_ref().is_some_and(|m| !m.is_empty());
    let rows = |key| if ecc == Ecc::Rows && !divided { count(key) } else { Err(NOT_SUPPORTED) };
    match id {
        1 => Ok(Value::U32(u32::from(on))),
        2 => Ok(Value::U32(nearest(device.setting(Key::EccPending, || f64::from(u8::from(on)))))),
        3..=6 if !on => Ok(Value::Untouched),
        3 | 4 if device.gpu.mig.is_some() => Err(NOT_SUPPORTED),
        3..=6 => Ok(Value::Mislabelled(device.ecc_errors(id.is_multiple_of(2), id >= 5))),
        29 => pages(Key::RetiredSbe),
        30 => pages(Key::RetiredDbe),
        31 | 93 => pages(Key::RetiredPending),
        92 => pages(Key::RetiredPending).map(|_| Value::U32(0)),
        142 => rows(Key::RemappedCorrectable),
        143 => rows(Key::RemappedUncorrectable),
        144 => rows(Key::RemappedPending),
        145 => rows(Key::RemappedFailure),
        _ => located_errors(device, id, on),
    }
}

/// Ids 7 to 28: errors by place, volatile ones first.
fn located_errors(device: &Device<'_>, id: u32, on: bool) -> Answer<Value> {
    if device.model.ecc != Ecc::Pages || !on {
        return Err(NOT_SUPPORTED);
    }
    let (aggregate, nth) = if id < 18 { (false, id - 7) } else { (true, id - 18) };
    let uncorrected = nth % 2 == 1 || nth == 10;
    let errors = device.ecc_errors(uncorrected, aggregate);
    let l2 = if uncorrected { errors / 4 } else { 0 };
    Ok(Value::U64(match nth / 2 {
        1 => l2,
        2 => errors - l2,
        _ => 0,
    }))
}

fn power(device: &Device<'_>, id: u32, scope: u32) -> Answer<Value> {
    let limits = &device.model.temperature;
    let margin = |limit: u32| -> Answer<Value> {
        if device.model.architecture < HOPPER {
            return Err(NOT_SUPPORTED);
        }
        Ok(Value::I32(limits.slowdown.cast_signed() - limit.cast_signed()))
    };
    let held = |key, share| Ok(Value::U64(device.violation(key, share)));
    match id {
        74 => held(Some(Key::ViolationPower), 0.03),
        75 | 269 => held(Some(Key::ViolationThermal), 0.0),
        77 => held(Some(Key::ViolationBoard), 0.0),
        78 => held(None, 0.001),
        79 => held(Some(Key::ViolationReliability), 0.0),
        270 => held(Some(Key::ViolationHwThermal), 0.0),
        271 => held(Some(Key::ViolationPowerBrake), 0.0),
        76 | 80 | 81 => Ok(Value::U64(0)),
        82 => device.memory_temperature().map(Value::U32),
        // The module of a superchip takes what the GPU takes, and the CPU.
        185 | 186 if scope == 1 => {
            device.model.c2c.as_ref().ok_or(NOT_SUPPORTED)?;
            Ok(Value::U32(device.power_milliwatts() + 110_000))
        }
        185..=192 if scope > 0 => Err(NOT_SUPPORTED),
        185 if device.model.architecture < AMPERE => Err(NOT_SUPPORTED),
        185 | 186 => Ok(Value::U32(device.power_milliwatts())),
        187 => Ok(Value::U32(nearest(device.model.power.min * 1e3))),
        188 => Ok(Value::U32(nearest(device.model.power.max * 1e3))),
        189 => Ok(Value::U32(nearest(device.model.power.limit * 1e3))),
        190 | 192 => Ok(Value::U32(device.power_limit_milliwatts())),
        83 | 191 => Ok(Value::U64(device.energy_millijoules())),
        193 => margin(limits.shutdown),
        194 => margin(limits.slowdown),
        195 => margin(limits.memory_max.ok_or(NOT_SUPPORTED)?),
        196 => margin(limits.max_operating),
        _ => Err(NOT_SUPPORTED),
    }
}

/// Power smoothing, which came with Blackwell; here it is off, with its five presets.
fn power_smoothing(device: &Device<'_>, id: u32) -> Answer<Value> {
    if device.model.architecture < BLACKWELL {
        return Err(NOT_SUPPORTED);
    }
    let watts = |share: f64| nearest(device.model.power.limit * share);
    Ok(Value::U32(match id {
        254 => watts(1.0),
        256 | 258 => 100,
        259 => 5,
        261 | 262 => watts(1e3),
        263 => 500,
        // No override is set.
        265..=268 => u32::MAX,
        _ => 0,
    }))
}

fn pcie(device: &Device<'_>, id: u32) -> Answer<Value> {
    let hopper = device.model.architecture >= HOPPER;
    let ampere = device.model.architecture >= AMPERE;
    match id {
        94 => Ok(Value::U32(u32::try_from(device.pcie_replays()).unwrap_or(u32::MAX))),
        95 => Ok(Value::U32(0)),
        197 if ampere => Ok(Value::U64(device.pcie_bytes().0)),
        198 if ampere => Ok(Value::U64(device.pcie_bytes().1)),
        173 if hopper => Ok(Value::U32(u32::try_from(device.pcie_replays()).unwrap_or(0))),
        169 | 174..=183 if hopper => Ok(Value::U32(0)),
        228 | 229 if hopper => Ok(Value::U32(0x7f)),
        _ => Err(NOT_SUPPORTED),
    }
}

fn c2c(device: &Device<'_>, id: u32, scope: u32) -> Answer<Value> {
    let c2c = device.model.c2c.as_ref();
    if id == 170 && device.model.architecture >= HOPPER {
        return Ok(Value::U32(c2c.map_or(0, |c| c.links)));
    }
    let c2c = c2c.ok_or(NOT_SUPPORTED)?;
    if scope != ALL && scope >= c2c.links {
        return Err(INVALID_ARGUMENT);
    }
    Ok(Value::U32(match id {
        171 => 1,
        172 => c2c.bandwidth,
        _ => 0,
    }))
}

fn link_power(device: &Device<'_>, value: u32) -> Answer<Value> {
    if device.nvlink()?.version < NVLINK_4 {
        return Err(NOT_SUPPORTED);
    }
    Ok(Value::U32(value))
}

/// The fields of `NVLink` 1 to 4, whose ids name a link, a sum, or leave the link to the scope.
fn nvlink(device: &Device<'_>, id: u32, scope: u32) -> Answer<Value> {
    let nvlink = device.nvlink()?;
    let errors = |key, link| Ok(Value::U64(sum(device, link, |l| device.link_errors(l, key))?));
    let speed = |link: u32| {
        check(device, link)?;
        Ok(Value::U32(if device.link_up(link) { nvlink.speed } else { 0 }))
    };
    match id {
        32..=37 => errors(Key::LinkCrcFlit, id - 32),
        38 => errors(Key::LinkCrcFlit, ALL),
        39..=44 => errors(Key::LinkCrcData, id - 39),
        45 => errors(Key::LinkCrcData, ALL),
        46..=51 => errors(Key::LinkReplay, id - 46),
        52 => errors(Key::LinkReplay, ALL),
        53..=58 => errors(Key::LinkRecovery, id - 53),
        59 => errors(Key::LinkRecovery, ALL),
        96..=101 => errors(Key::LinkCrcFlit, id - 90),
        102..=107 => errors(Key::LinkCrcData, id - 96),
        108..=113 => errors(Key::LinkReplay, id - 102),
        114..=119 => errors(Key::LinkRecovery, id - 108),
        60..=73 | 120..=131 => old_bandwidth(device, id),
        84..=89 => speed(id - 84),
        132..=137 => speed(id - 126),
        90 => Ok(Value::U32(nvlink.speed)),
        91 => Ok(Value::U32(nvlink.links)),
        138 | 140 => Ok(Value::U64(sum(device, scope, |l| device.link_bytes(l).0)? / 1024)),
        139 | 141 => Ok(Value::U64(sum(device, scope, |l| device.link_bytes(l).1)? / 1024)),
        146 => check(device, scope).map(|()| Value::U32(scope)),
        147 => Ok(Value::U32(if nvlink.switch { nvlink.links } else { 0 })),
        148..=159 if nvlink.version >= NVLINK_3 => errors(Key::LinkEcc, id - 148),
        160 if nvlink.version >= NVLINK_3 => errors(Key::LinkEcc, ALL),
        161 if nvlink.version >= NVLINK_4 => errors(Key::LinkReplay, scope),
        162 if nvlink.version >= NVLINK_4 => errors(Key::LinkRecovery, scope),
        163 if nvlink.version >= NVLINK_4 => errors(Key::LinkCrcFlit, scope),
        164 => speed(scope),
        165 => check(device, scope).map(|()| Value::U32(u32::from(device.link_up(scope)))),
        166 => check(device, scope).map(|()| Value::U32(nvlink.version)),
        167 => check(device, scope).and_then(|()| link_power(device, 0)),
        168 => check(device, scope).and_then(|()| link_power(device, 1_000)),
        _ => Err(NOT_SUPPORTED),
    }
}

/// Bytes by counter and link, on boards that still have these counters.
fn old_bandwidth(device: &Device<'_>, id: u32) -> Answer<Value> {
    if device.nvlink()?.version >= NVLINK_3 {
        return Err(NOT_SUPPORTED);
    }
    let link = match id {
        60..=65 => id - 60,
        67..=72 => id - 67,
        66 | 73 => ALL,
        120..=125 => id - 114,
        _ => id - 120,
    };
    Ok(Value::U64(sum(device, link, |l| device.link_bytes(l).0 + device.link_bytes(l).1)? / 1024))
}

/// The counters that came with `NVLink` 5, and the low-power thresholds of `NVLink` 4.
fn nvlink_5(device: &Device<'_>, id: u32, scope: u32) -> Answer<Value> {
    let nvlink = device.nvlink()?;
    match id {
        223 => return link_power(device, 1),
        224 => return link_power(device, 0),
        225 => return Ok(Value::U32(u32::from(nvlink.version >= NVLINK_4))),
        _ if nvlink.version < NVLINK_5 || device.model.architecture < BLACKWELL => {
            return Err(NOT_SUPPORTED);
        }
        _ => {}
    }
    let errors = |key| sum(device, scope, |l| device.link_errors(l, key));
    Ok(Value::U64(match id {
        201 => sum(device, scope, |l| device.link_bytes(l).0)? / 256,
        202 => sum(device, scope, |l| device.link_bytes(l).0)?,
        203 => sum(device, scope, |l| device.link_bytes(l).1)? / 256,
        204 => sum(device, scope, |l| device.link_bytes(l).1)?,
        208 => errors(Key::LinkCrcFlit)?,
        213 | 215 => errors(Key::LinkRecovery)?,
        219 | 221 => errors(Key::LinkCrcData)?,
        // Mantissa 15 and exponent 255: the code for no errors at all.
        220 | 222 => 0xfff,
        235 => whole(device.now * 1e3),
        _ => 0,
    }))
}

/// Refuses links that the board does not have.
fn check(device: &Device<'_>, link: u32) -> Answer {
    if link < device.nvlink()?.links { Ok(()) } else { Err(INVALID_ARGUMENT) }
}

/// Something of a link, or its sum over all links.
fn sum(device: &Device<'_>, link: u32, of: impl Fn(u32) -> u64) -> Answer<u64> {
    if link == ALL {
        return Ok((0..device.nvlink()?.links).map(of).sum());
    }
    check(device, link)?;
    Ok(of(link))
}
