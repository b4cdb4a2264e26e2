//! Memory errors, and what the board did about them.

use nvml_wrapper_sys::bindings::{
    nvmlEccErrorCounts_t, nvmlEccSramErrorStatus_t, nvmlRowRemapperHistogramValues_t,
};

use crate::call::{device_api, device_getters};
use crate::clock::nearest;
use crate::code::{Answer, INVALID_ARGUMENT, NOT_SUPPORTED};
use crate::device::Device;
use crate::ffi::{Array, Out};
use crate::model::Ecc;
use crate::setting::Key;

/// The two selectors that all counters share: uncorrected, aggregate.
fn selectors(error: u32, counter: u32) -> Answer<(bool, bool)> {
    if error > 1 || counter > 1 { Err(INVALID_ARGUMENT) } else { Ok((error == 1, counter == 1)) }
}

/// ECC errors, where ECC is on and MIG does not hide them.
fn errors(device: &Device<'_>, uncorrected: bool, aggregate: bool) -> Answer<u64> {
    if !device.ecc_on()? || (device.gpu.mig.is_some() && !aggregate) {
        return Err(NOT_SUPPORTED);
    }
    Ok(device.ecc_errors(uncorrected, aggregate))
}

/// The part of the errors that a place in the board has seen: nearly all of them in DRAM, one in
/// four uncorrected ones in SRAM.
fn located(device: &Device<'_>, select: (bool, bool), location: u32) -> Answer<u64> {
    let (uncorrected, aggregate) = select;
    if let Some((..)) = device.part {
        // A MIG device knows of uncorrected volatile errors outside DRAM, and of no others.
        return if uncorrected && !aggregate && location != 2 { Ok(0) } else { Err(NOT_SUPPORTED) };
    }
    let all = errors(device, uncorrected, aggregate)?;
    let sram = if uncorrected { all / 4 } else { 0 };
    match (location, device.model.ecc) {
        (2, _) => Ok(all - sram),
        (7, Ecc::Rows) | (1, Ecc::Pages) => Ok(sram),
        (0 | 3 | 4, Ecc::Pages) => Ok(0),
        (0..=7, _) => Err(NOT_SUPPORTED),
        _ => Err(INVALID_ARGUMENT),
    }
}

fn rows(device: &Device<'_>) -> Answer {
    if device.model.ecc == Ecc::Rows { Ok(()) } else { Err(NOT_SUPPORTED) }
}

fn pages(device: &Device<'_>) -> Answer {
    if device.model.ecc == Ecc::Pages { Ok(()) } else { Err(NOT_SUPPORTED) }
}

fn retired(device: &Device<'_>, cause: u32) -> Answer<Vec<u64>> {
    pages(device)?;
    let count = match cause {
        0 => device.count(Key::RetiredSbe),
        1 => device.count(Key::RetiredDbe),
        _ => return Err(INVALID_ARGUMENT),
    };
    Ok((0..count).map(|i| 0x1_0000_0000 + (i << 16)).collect())
}

device_api! {
    Gpu nvmlDeviceGetEccMode(device, current: Out<u32>, pending: Out<u32>) {
        let on = u32::from(device.ecc_on()?);
        current.put(on)?;
        pending.put(nearest(device.setting(Key::EccPending, || f64::from(on))))
    }

    Gpu nvmlDeviceGetTotalEccErrors(device, error: u32, counter: u32, count: Out<u64>) {
        let (uncorrected, aggregate) = selectors(error, counter)?;
        count.put(errors(device, uncorrected, aggregate)?)
    }

    Gpu nvmlDeviceGetDetailedEccErrors(
        device, error: u32, counter: u32, counts: Out<nvmlEccErrorCounts_t>,
    ) {
        let select = selectors(error, counter)?;
        errors(device, select.0, select.1)?;
        let at = |location| located(device, select, location).unwrap_or(0);
        counts.put(nvmlEccErrorCounts_t {
            l1Cache: at(0), l2Cache: at(1), deviceMemory: at(2), registerFile: at(3),
        })
    }

    Any nvmlDeviceGetMemoryErrorCounter(
        device, error: u32, counter: u32, location: u32, count: Out<u64>,
    ) {
        count.put(located(device, selectors(error, counter)?, location)?)
    }

    Gpu nvmlDeviceGetSramEccErrorStatus(device, status: Out<nvmlEccSramErrorStatus_t>) {
        status.expect_version(1)?;
        rows(device)?;
        device.ecc_on()?;
        let uncorrected = device.ecc_errors(true, true) / 4;
        let volatile = device.ecc_errors(true, false) / 4;
        status.put(nvmlEccSramErrorStatus_t {
            version: status.version()?,
            aggregateUncParity: uncorrected / 2,
            aggregateUncSecDed: uncorrected - uncorrected / 2,
            aggregateCor: 0,
            volatileUncParity: volatile / 2,
            volatileUncSecDed: volatile - volatile / 2,
            volatileCor: 0,
            aggregateUncBucketL2: uncorrected,
            aggregateUncBucketSm: 0,
            aggregateUncBucketPcie: 0,
            aggregateUncBucketMcu: 0,
            aggregateUncBucketOther: 0,
            bThresholdExceeded: nearest(device.setting(Key::SramThresholdExceeded, || 0.0)),
        })
    }

    Gpu nvmlDeviceGetRetiredPages(device, cause: u32, count: Out<u32>, addresses: Array<u64>) {
        addresses.put_list(count, &retired(device, cause)?)
    }

    Gpu nvmlDeviceGetRetiredPages_v2(
        device, cause: u32, count: Out<u32>, addresses: Array<u64>, times: Array<u64>,
    ) {
        let pages = retired(device, cause)?;
        addresses.put_list(count, &pages)?;
        let when = device.world.clock.wall_micros(0.0);
        times.put_some(&vec![when; pages.len()])
    }

    Gpu nvmlDeviceGetRemappedRows(
        device, corrected: Out<u32>, uncorrected: Out<u32>, pending: Out<u32>, failed: Out<u32>,
    ) {
        rows(device)?;
        if device.gpu.mig.as_ref().is_some_and(|m| !m.is_empty()) {
            return Err(NOT_SUPPORTED);
        }
        corrected.put(nearest(device.setting(Key::RemappedCorrectable, || 0.0)))?;
        uncorrected.put(nearest(device.setting(Key::RemappedUncorrectable, || 0.0)))?;
        pending.put(nearest(device.setting(Key::RemappedPending, || 0.0)))?;
        failed.put(nearest(device.setting(Key::RemappedFailure, || 0.0)))
    }

    Gpu nvmlDeviceGetRowRemapperHistogram(device, values: Out<nvmlRowRemapperHistogramValues_t>) {
        rows(device)?;
        let banks = device.model.memory.bus_bits / 8;
        let used = nearest(device.setting(Key::RemappedUncorrectable, || 0.0)).min(banks);
        values.put(nvmlRowRemapperHistogramValues_t {
            max: banks - used, high: used, partial: 0, low: 0, none: 0,
        })
    }
}

device_getters! {
    Gpu nvmlDeviceGetDefaultEccMode: u32 = |device| u32::from(device.ecc_on().is_ok());
    Gpu nvmlDeviceGetRetiredPagesPendingStatus: u32 = |device| {
        pages(device)?;
        nearest(device.setting(Key::RetiredPending, || 0.0))
    };
}
