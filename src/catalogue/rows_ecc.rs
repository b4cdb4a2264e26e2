//! Memory health: ECC errors, retired pages, remapped rows.

use super::prelude::*;

/// An ECC total. NVML leaves the tag of these four at double whatever it writes.
const fn total(id: u16) -> Read {
    decoded(id, Decode::U64, pick::value)
}

const fn banks(pick: Pick) -> Read {
    call(Call::RowRemapperHistogram, pick)
}

#[rustfmt::skip]
pub(super) const ROWS: &[Field] = &[
    gauge("DCGM_FI_DEV_ECC_CURRENT", 300, Gpu, call(Call::EccMode, |n| pick::raw(n, slot::CURRENT)))
        .doc("0/1", "Whether ECC is on now (1) or off (0).")
        .renamed("DCGM_FI_DEV_ECC_MODE").on(),
    gauge("DCGM_FI_DEV_ECC_PENDING", 301, Gpu, call(Call::EccMode, |n| pick::raw(n, slot::PENDING)))
        .doc("0/1", "Whether ECC will be on (1) or off (0) after the next reset.").on(),
    counter("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", 310, Gpu, total(3))
        .doc("count", "Number of corrected single-bit memory errors since the driver was loaded.")
        .alias(&["dcgm_ecc_sbe_volatile_total"]).on(),
    counter("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", 311, Gpu, total(4))
        .doc("count", "Number of uncorrected double-bit memory errors since the driver was loaded.")
        .alias(&["dcgm_ecc_dbe_volatile_total"]).on(),
    counter("DCGM_FI_DEV_ECC_SBE_AGG_TOTAL", 312, Gpu, total(5))
        .doc("count", "Number of corrected single-bit memory errors over the life of the board.")
        .alias(&["dcgm_ecc_sbe_aggregate_total"]).on(),
    counter("DCGM_FI_DEV_ECC_DBE_AGG_TOTAL", 313, Gpu, total(6))
        .doc("count", "Number of uncorrected double-bit memory errors over the life of the board.")
        .alias(&["dcgm_ecc_dbe_aggregate_total"]).on(),
    gauge("DCGM_FI_DEV_THRESHOLD_SRM", 346, Gpu, call(Call::SramEccErrorStatus, |n| pick::raw(n, slot::SRAM_THRESHOLD_EXCEEDED)))
        .doc("0/1", "Whether SRAM errors have passed the threshold at which the board is due for return (1) or not (0).")
        .renamed("DCGM_FI_DEV_SRAM_EXCEEDED").on(),
    gauge("DCGM_FI_DEV_MEMORY_UNREPAIRABLE_FLAG", 1507, Gpu, plain(Call::UnrepairableMemoryFlag))
        .doc("0/1", "Whether device memory has a defect that can no longer be repaired (1) or not (0).")
        .renamed("DCGM_FI_DEV_MEMORY_UNREPAIRABLE").on(),

    // Page retirement ends with Volta and Turing, row remapping begins with Ampere.
    counter("DCGM_FI_DEV_RETIRED_SBE", 390, Gpu, plain(Call::RetiredPages(RetirementCause::SingleBit)))
        .doc("pages", "Number of memory pages retired because of repeated single-bit errors.")
        .alias(&["dcgm_retired_pages_sbe"]).renamed("DCGM_FI_DEV_PAGE_RETIRED_SBE_TOTAL").on(),
    counter("DCGM_FI_DEV_RETIRED_DBE", 391, Gpu, field(30, pick::value))
        .doc("pages", "Number of memory pages retired because of a double-bit error.")
        .alias(&["dcgm_retired_pages_dbe"]).renamed("DCGM_FI_DEV_PAGE_RETIRED_DBE_TOTAL").on(),
    gauge("DCGM_FI_DEV_RETIRED_PENDING", 392, Gpu, field(31, pick::value))
        .doc("0/1", "Whether pages wait for the next reset to be retired (1) or not (0).")
        .alias(&["dcgm_retired_pages_pending"]).renamed("DCGM_FI_DEV_PAGE_RETIRED_PENDING").on(),
    counter("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", 393, Gpu, field(143, pick::value))
        .doc("rows", "Number of memory rows remapped because of uncorrectable errors.")
        .renamed("DCGM_FI_DEV_ROW_REMAP_UNCORRECTABLE_TOTAL").on(),
    counter("DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", 394, Gpu, field(142, pick::value))
        .doc("rows", "Number of memory rows remapped because of correctable errors.")
        .renamed("DCGM_FI_DEV_ROW_REMAP_CORRECTABLE_TOTAL").on(),
    gauge("DCGM_FI_DEV_ROW_REMAP_FAILURE", 395, Gpu, field(145, pick::value))
        .doc("0/1", "Whether a row could not be remapped, so that the board is due for return (1) or not (0).")
        .renamed("DCGM_FI_DEV_ROW_REMAP_FAILED").on(),
    gauge("DCGM_FI_DEV_ROW_REMAP_PENDING", 396, Gpu, field(144, pick::value))
        .doc("0/1", "Whether rows wait for the next reset to be remapped (1) or not (0).").on(),
    gauge("DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_MAX", 385, Gpu, banks(|n| pick::raw(n, slot::BANKS_MAX)))
        .doc("banks", "Number of memory banks with all spare rows left.")
        .renamed("DCGM_FI_DEV_BANK_REMAP_AVAIL_MAX"),
    gauge("DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_HIGH", 386, Gpu, banks(|n| pick::raw(n, slot::BANKS_HIGH)))
        .doc("banks", "Number of memory banks with many spare rows left.")
        .renamed("DCGM_FI_DEV_BANK_REMAP_AVAIL_HIGH"),
    gauge("DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_PARTIAL", 387, Gpu, banks(|n| pick::raw(n, slot::BANKS_PARTIAL)))
        .doc("banks", "Number of memory banks with some spare rows left.")
        .renamed("DCGM_FI_DEV_BANK_REMAP_AVAIL_PARTIAL"),
    gauge("DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_LOW", 388, Gpu, banks(|n| pick::raw(n, slot::BANKS_LOW)))
        .doc("banks", "Number of memory banks with few spare rows left.")
        .renamed("DCGM_FI_DEV_BANK_REMAP_AVAIL_LOW"),
    gauge("DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_NONE", 389, Gpu, banks(|n| pick::raw(n, slot::BANKS_NONE)))
        .doc("banks", "Number of memory banks with no spare row left.")
        .renamed("DCGM_FI_DEV_BANK_REMAP_AVAIL_NONE").on(),
];

/// The four counters of one place in the GPU: single and double bit, volatile and aggregate.
macro_rules! located {
    ($suffix:literal, $place:ident, $text:literal, $vol_sbe:literal $vol_dbe:literal $agg_sbe:literal $agg_dbe:literal) => {
        [
            located!(@one "DCGM_FI_DEV_ECC_SBE_VOL_", $suffix, $vol_sbe, Corrected, Volatile, $place,
                "Number of corrected errors in ", $text, " since the driver was loaded."),
            located!(@one "DCGM_FI_DEV_ECC_DBE_VOL_", $suffix, $vol_dbe, Uncorrected, Volatile, $place,
                "Number of uncorrected errors in ", $text, " since the driver was loaded."),
            located!(@one "DCGM_FI_DEV_ECC_SBE_AGG_", $suffix, $agg_sbe, Corrected, Aggregate, $place,
                "Number of corrected errors in ", $text, " over the life of the board."),
            located!(@one "DCGM_FI_DEV_ECC_DBE_AGG_", $suffix, $agg_dbe, Uncorrected, Aggregate, $place,
                "Number of uncorrected errors in ", $text, " over the life of the board."),
        ]
    };
    (@one $prefix:literal, $suffix:literal, $id:literal, $error:ident, $counter:ident, $place:ident,
        $head:literal, $text:literal, $tail:literal) => {
        counter(
            concat!($prefix, $suffix),
            $id,
            Gpu,
            plain(Call::MemoryErrorCounter(EccError::$error, EccCounter::$counter, EccLocation::$place)),
        )
        .doc("count", concat!($head, $text, $tail))
    };
}

/// Which places a GPU counts differs by generation; since Ampere mostly SRAM and device memory.
pub(super) const LOCATIONS: &[Field] = [
    located!("L1", L1, "the L1 cache", 314 315 324 325),
    located!("L2", L2, "the L2 cache", 316 317 326 327),
    located!("DEV", Device, "device memory", 318 319 328 329),
    located!("REG", Register, "the register file", 320 321 330 331),
    located!("TEX", Texture, "texture memory", 322 323 332 333),
    located!("SHM", Shared, "shared memory", 334 335 338 339),
    located!("CBU", Cbu, "the convergence barrier unit", 336 337 340 341),
    located!("SRM", Sram, "SRAM", 342 343 344 345),
]
.as_flattened();
