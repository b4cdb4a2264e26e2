//! `NVLink`: state, errors and throughput, of all links and of each.

use super::prelude::*;

const ALL: Scope = Scope::AllLinks;
const EACH: Scope = Scope::EachLink;

const fn rate(scope: Scope, tx: bool, rx: bool) -> Read {
    Read::Rate(RateRead { tx, rx, scope, unit: RateUnit::ThousandKib })
}

const fn byte_rate(scope: Scope) -> Read {
    Read::Rate(RateRead { tx: true, rx: true, scope, unit: RateUnit::Bytes })
}

/// An `NVLink` 5 counter, summed over all links.
const fn sum(id: u16, pick: Pick) -> Read {
    scoped(id, ALL, Decode::Tagged, pick)
}

/// A row of a family that DCGM numbers by link.
macro_rules! link_errors {
    ($name:literal, $new:literal, $error:ident, $text:literal, $($link:literal $id:literal),+) => {
        &[$(
            counter(
                concat!("DCGM_FI_DEV_NVLINK_", $name, "_ERROR_COUNT_L", $link),
                $id,
                Gpu,
                plain(Call::NvLinkErrorCounter($link, LinkError::$error)),
            )
            .doc("count", concat!("Number of ", $text, " on NVLink ", $link, "."))
            .renamed(concat!("DCGM_FI_DEV_NVLINK_", $new, "_ERROR_L", $link, "_TOTAL")),
        )+]
    };
}

/// The rate of one link, one way, in the unit that DCGM calls MB/s.
macro_rules! one_way_rates {
    ($name:literal, $new:literal, $tx:literal, $rx:literal, $text:literal, $($link:literal $id:literal),+) => {
        &[$(
            gauge(
                concat!("DCGM_FI_DEV_NVLINK_", $name, "_L", $link),
                $id,
                Gpu,
                rate(Scope::Link($link), $tx, $rx),
            )
            .doc("1000 KiB/s", concat!("Data ", $text, " over NVLink ", $link, ", in thousands of KiB per second."))
            .renamed(concat!("DCGM_FI_DEV_NVLINK_", $new, "_L", $link)),
        )+]
    };
}

/// The rate of one link, both ways, in the unit that DCGM calls MB/s.
macro_rules! both_ways_rates {
    ($($link:literal $id:literal),+) => {
        &[$(
            gauge(
                concat!("DCGM_FI_DEV_NVLINK_BANDWIDTH_L", $link),
                $id,
                Gpu,
                rate(Scope::Link($link), true, true),
            )
            .doc("1000 KiB/s", concat!("Data sent and received over NVLink ", $link, ", in thousands of KiB per second."))
            .alias(&[concat!("DCGM_FI_DEV_NVLINK_THROUGHPUT_L", $link)])
            .renamed(concat!("DCGM_FI_DEV_NVLINK_THROUGHPUT_L", $link, "_BYTES_PER_SECOND")),
        )+]
    };
}

/// The same in bytes, as DCGM 4.7 has it.
macro_rules! both_ways_bytes {
    ($($link:literal $id:literal),+) => {
        &[$(
            gauge(
                concat!("DCGM_FI_DEV_NVLINK_THROUGHPUT_L", $link, "_BYTES_PER_SECOND"),
                $id,
                Gpu,
                byte_rate(Scope::Link($link)),
            )
            .doc("bytes/s", concat!("Data sent and received over NVLink ", $link, ", in bytes per second.")),
        )+]
    };
}

/// Totals come from the driver's own sums; the families by link stand below.
#[rustfmt::skip]
pub(super) const ROWS: &[Field] = &[
    counter("DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", 409, Gpu, field(38, pick::value))
        .doc("count", "Number of flow control CRC errors on all NVLinks, counted before Hopper.")
        .alias(&["dcgm_nvlink_flit_crc_error_count_total"])
        .renamed("DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_TOTAL").on(),
    counter("DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL", 419, Gpu, field(45, pick::value))
        .doc("count", "Number of data CRC errors on all NVLinks, counted before Hopper.")
        .alias(&["dcgm_nvlink_data_crc_error_count_total"])
        .renamed("DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_TOTAL").on(),
    counter("DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", 429, Gpu, field(52, pick::value))
        .doc("count", "Number of replays on all NVLinks, counted before Hopper.")
        .alias(&["dcgm_nvlink_replay_error_count_total"])
        .renamed("DCGM_FI_DEV_NVLINK_REPLAY_ERROR_TOTAL").on(),
    counter("DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL", 439, Gpu, field(59, pick::value))
        .doc("count", "Number of recoveries on all NVLinks, counted before Hopper.")
        .alias(&["dcgm_nvlink_recovery_error_count_total"])
        .renamed("DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_TOTAL").on(),
    counter("DCGM_FI_DEV_NVLINK_ERROR_DL_CRC", 497, Gpu, field(163, pick::value))
        .doc("count", "Number of data link CRC errors on all NVLinks, counted on Hopper.")
        .renamed("DCGM_FI_DEV_NVLINK_CRC_ERROR_TOTAL").on(),
    counter("DCGM_FI_DEV_NVLINK_ERROR_DL_RECOVERY", 498, Gpu, field(162, pick::value))
        .doc("count", "Number of data link recoveries on all NVLinks, counted on Hopper.")
        .renamed("DCGM_FI_DEV_NVLINK_RECOVERY_TOTAL").on(),
    counter("DCGM_FI_DEV_NVLINK_ERROR_DL_REPLAY", 499, Gpu, field(161, pick::value))
        .doc("count", "Number of data link replays on all NVLinks, counted on Hopper.")
        .renamed("DCGM_FI_DEV_NVLINK_REPLAY_TOTAL").on(),
    counter("DCGM_FI_DEV_NVLINK_ECC_DATA_ERROR_COUNT_TOTAL", 1220, Gpu, field(160, pick::value))
        .doc("count", "Number of ECC errors in data on all NVLinks.")
        .renamed("DCGM_FI_DEV_NVLINK_ECC_ERROR_TOTAL").on(),

    counter("DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_PER_LINK_TOTAL", 1525, Link, plain(Call::EachNvLinkErrorCounter(LinkError::CrcFlit)))
        .doc("count", "Number of flow control CRC errors on the NVLink."),
    counter("DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_PER_LINK_TOTAL", 1526, Link, plain(Call::EachNvLinkErrorCounter(LinkError::CrcData)))
        .doc("count", "Number of data CRC errors on the NVLink."),
    counter("DCGM_FI_DEV_NVLINK_REPLAY_ERROR_PER_LINK_TOTAL", 1527, Link, plain(Call::EachNvLinkErrorCounter(LinkError::Replay)))
        .doc("count", "Number of replays on the NVLink."),
    counter("DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_PER_LINK_TOTAL", 1528, Link, plain(Call::EachNvLinkErrorCounter(LinkError::Recovery)))
        .doc("count", "Number of recoveries on the NVLink."),
    gauge("DCGM_FI_DEV_NVLINK_THROUGHPUT_PER_LINK", 1529, Link, rate(EACH, true, true))
        .doc("1000 KiB/s", "Data sent and received over the NVLink, in thousands of KiB per second."),
    gauge("DCGM_FI_DEV_NVLINK_TX_THROUGHPUT_PER_LINK", 1530, Link, rate(EACH, true, false))
        .doc("1000 KiB/s", "Data sent over the NVLink, in thousands of KiB per second."),
    gauge("DCGM_FI_DEV_NVLINK_RX_THROUGHPUT_PER_LINK", 1531, Link, rate(EACH, false, true))
        .doc("1000 KiB/s", "Data received over the NVLink, in thousands of KiB per second."),
    gauge("DCGM_FI_DEV_NVLINK_GET_STATE", 1508, Link, scoped(165, EACH, Decode::U32, pick::value))
        .doc("state", "State of the NVLink: 0 inactive, 1 active, 2 asleep, 3 active without traffic.")
        .renamed("DCGM_FI_DEV_NVLINK_LINK_STATUS"),
    gauge("nvml_nvlink_up", 0, Link, plain(Call::EachNvLinkState))
        .doc("0/1", "Whether the NVLink is active (1) or not (0).").on(),
    gauge("nvml_nvlinks", 0, Gpu, field(91, pick::value))
        .doc("count", "Number of NVLinks that the GPU has."),

    gauge("DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", 449, Gpu, rate(ALL, true, true))
        .doc("1000 KiB/s", "Data sent and received over all NVLinks, a rate in thousands of KiB per second.")
        .alias(&["dcgm_nvlink_bandwidth_total", "DCGM_FI_DEV_NVLINK_THROUGHPUT_TOTAL"])
        .renamed("DCGM_FI_DEV_NVLINK_THROUGHPUT_BYTES_PER_SECOND").on(),
    gauge("DCGM_FI_DEV_NVLINK_TX_BANDWIDTH_TOTAL", 843, Gpu, rate(ALL, true, false))
        .doc("1000 KiB/s", "Data sent over all NVLinks, a rate in thousands of KiB per second.")
        .renamed("DCGM_FI_DEV_NVLINK_TX_THROUGHPUT_TOTAL"),
    gauge("DCGM_FI_DEV_NVLINK_RX_BANDWIDTH_TOTAL", 897, Gpu, rate(ALL, false, true))
        .doc("1000 KiB/s", "Data received over all NVLinks, a rate in thousands of KiB per second.")
        .renamed("DCGM_FI_DEV_NVLINK_RX_THROUGHPUT_TOTAL"),
    gauge("DCGM_FI_DEV_NVLINK_THROUGHPUT_BYTES_PER_SECOND", 1648, Gpu, byte_rate(ALL))
        .doc("bytes/s", "Data sent and received over all NVLinks, a rate in bytes per second."),
    counter("nvml_nvlink_tx_bytes_total", 0, Gpu, scoped(138, ALL, Decode::Tagged, pick::kib_to_bytes))
        .doc("bytes", "Bytes of data sent over all NVLinks.").on(),
    counter("nvml_nvlink_rx_bytes_total", 0, Gpu, scoped(139, ALL, Decode::Tagged, pick::kib_to_bytes))
        .doc("bytes", "Bytes of data received over all NVLinks.").on(),
];

#[rustfmt::skip]
pub(super) const CRC_FLIT_BY_LINK: &[Field] = link_errors!("CRC_FLIT", "CRC_FLIT", CrcFlit, "flow control CRC errors",
    0 400, 1 401, 2 402, 3 403, 4 404, 5 405, 6 451, 7 452, 8 453, 9 454, 10 455, 11 456,
    12 406, 13 407, 14 408, 15 481, 16 482, 17 483);
#[rustfmt::skip]
pub(super) const CRC_DATA_BY_LINK: &[Field] = link_errors!("CRC_DATA", "CRC_DATA", CrcData, "data CRC errors",
    0 410, 1 411, 2 412, 3 413, 4 414, 5 415, 6 457, 7 458, 8 459, 9 460, 10 461, 11 462,
    12 416, 13 417, 14 418, 15 484, 16 485, 17 486);
#[rustfmt::skip]
pub(super) const REPLAY_BY_LINK: &[Field] = link_errors!("REPLAY", "REPLAY", Replay, "replays",
    0 420, 1 421, 2 422, 3 423, 4 424, 5 425, 6 463, 7 464, 8 465, 9 466, 10 467, 11 468,
    12 426, 13 427, 14 428, 15 487, 16 488, 17 489);
#[rustfmt::skip]
pub(super) const RECOVERY_BY_LINK: &[Field] = link_errors!("RECOVERY", "RECOVERY", Recovery, "recoveries",
    0 430, 1 431, 2 432, 3 433, 4 434, 5 435, 6 469, 7 470, 8 471, 9 472, 10 473, 11 474,
    12 436, 13 437, 14 438, 15 491, 16 492, 17 493);
#[rustfmt::skip]
pub(super) const RATE_BY_LINK: &[Field] = both_ways_rates!(
    0 440, 1 441, 2 442, 3 443, 4 444, 5 445, 6 475, 7 476, 8 477, 9 478, 10 479, 11 480,
    12 446, 13 447, 14 448, 15 494, 16 495, 17 496);
#[rustfmt::skip]
pub(super) const BYTE_RATE_BY_LINK: &[Field] = both_ways_bytes!(
    0 1630, 1 1631, 2 1632, 3 1633, 4 1634, 5 1635, 6 1636, 7 1637, 8 1638, 9 1639, 10 1640,
    11 1641, 12 1642, 13 1643, 14 1644, 15 1645, 16 1646, 17 1647);
#[rustfmt::skip]
pub(super) const TX_RATE_BY_LINK: &[Field] = one_way_rates!("TX_BANDWIDTH", "TX_THROUGHPUT", true, false, "sent",
    0 825, 1 826, 2 827, 3 828, 4 829, 5 830, 6 831, 7 832, 8 833, 9 834, 10 835, 11 836,
    12 837, 13 838, 14 839, 15 840, 16 841, 17 842);
#[rustfmt::skip]
pub(super) const RX_RATE_BY_LINK: &[Field] = one_way_rates!("RX_BANDWIDTH", "RX_THROUGHPUT", false, true, "received",
    0 879, 1 880, 2 881, 3 882, 4 883, 5 884, 6 885, 7 886, 8 887, 9 888, 10 889, 11 890,
    12 891, 13 892, 14 893, 15 894, 16 895, 17 896);

/// Counters that came with `NVLink` 5 (Blackwell), asked for as the sum over all links.
#[rustfmt::skip]
pub(super) const NVLINK5: &[Field] = &[
    counter("DCGM_FI_DEV_NVLINK_COUNT_TX_PACKETS", 1200, Gpu, sum(201, pick::value))
        .doc("packets", "Number of packets sent over all NVLinks.")
        .renamed("DCGM_FI_DEV_NVLINK_TX_PACKET_TOTAL"),
    counter("DCGM_FI_DEV_NVLINK_COUNT_TX_BYTES", 1201, Gpu, sum(202, pick::value))
        .doc("bytes", "Number of bytes sent over all NVLinks.")
        .renamed("DCGM_FI_DEV_NVLINK_TX_BYTES_TOTAL"),
    counter("DCGM_FI_DEV_NVLINK_COUNT_RX_PACKETS", 1202, Gpu, sum(203, pick::value))
        .doc("packets", "Number of packets received over all NVLinks.")
        .renamed("DCGM_FI_DEV_NVLINK_RX_PACKET_TOTAL"),
    counter("DCGM_FI_DEV_NVLINK_COUNT_RX_BYTES", 1203, Gpu, sum(204, pick::value))
        .doc("bytes", "Number of bytes received over all NVLinks.")
        .renamed("DCGM_FI_DEV_NVLINK_RX_BYTES_TOTAL"),
    counter("DCGM_FI_DEV_NVLINK_COUNT_RX_MALFORMED_PACKET_ERRORS", 1204, Gpu, sum(206, pick::value))
        .doc("packets", "Number of malformed packets received over all NVLinks.")
        .renamed("DCGM_FI_DEV_NVLINK_RX_PACKET_MALFORMED_TOTAL"),
    counter("DCGM_FI_DEV_NVLINK_COUNT_RX_BUFFER_OVERRUN_ERRORS", 1205, Gpu, sum(207, pick::value))
        .doc("packets", "Number of packets dropped on reception over all NVLinks because a buffer was full.")
        .renamed("DCGM_FI_DEV_NVLINK_RX_PACKET_DROPPED_TOTAL"),
    counter("DCGM_FI_DEV_NVLINK_COUNT_RX_ERRORS", 1206, Gpu, sum(208, pick::value))
        .doc("packets", "Number of packets received with errors over all NVLinks.")
        .renamed("DCGM_FI_DEV_NVLINK_RX_ERROR_TOTAL"),
    counter("DCGM_FI_DEV_NVLINK_COUNT_RX_REMOTE_ERRORS", 1207, Gpu, sum(209, pick::value))
        .doc("packets", "Number of packets received over all NVLinks that the far end had marked as bad.")
        .renamed("DCGM_FI_DEV_NVLINK_RX_REMOTE_ERROR_TOTAL"),
    counter("DCGM_FI_DEV_NVLINK_COUNT_RX_GENERAL_ERRORS", 1208, Gpu, sum(210, pick::value))
        .doc("packets", "Number of packets received with a wrong header over all NVLinks.")
        .renamed("DCGM_FI_DEV_NVLINK_RX_GENERAL_ERROR_TOTAL"),
    counter("DCGM_FI_DEV_NVLINK_COUNT_LOCAL_LINK_INTEGRITY_ERRORS", 1209, Gpu, sum(211, pick::value))
        .doc("count", "Number of times that local errors passed their threshold on all NVLinks.")
        .renamed("DCGM_FI_DEV_NVLINK_INTEGRITY_ERROR_TOTAL"),
    counter("DCGM_FI_DEV_NVLINK_COUNT_TX_DISCARDS", 1210, Gpu, sum(212, pick::value))
        .doc("packets", "Number of packets dropped on sending over all NVLinks."),
    counter("DCGM_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_SUCCESSFUL_EVENTS", 1211, Gpu, sum(213, pick::value))
        .doc("count", "Number of times that an NVLink went into recovery and came back, counted since Blackwell.")
        .renamed("DCGM_FI_DEV_NVLINK_RECOVERY_SUCCESSFUL_TOTAL").on(),
    counter("DCGM_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS", 1212, Gpu, sum(214, pick::value))
        .doc("count", "Number of times that an NVLink went into recovery and stayed down, counted since Blackwell.")
        .renamed("DCGM_FI_DEV_NVLINK_RECOVERY_FAILED_TOTAL").on(),
    counter("DCGM_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_EVENTS", 1213, Gpu, sum(215, pick::value))
        .doc("count", "Number of times that an NVLink went into recovery, counted since Blackwell.")
        .renamed("DCGM_FI_DEV_NVLINK_RECOVERY_EVENT_TOTAL").on(),
    counter("DCGM_FI_DEV_NVLINK_COUNT_RX_SYMBOL_ERRORS", 1214, Gpu, sum(221, pick::value))
        .doc("count", "Number of errors in symbols received over all NVLinks.")
        .renamed("DCGM_FI_DEV_NVLINK_RX_SYMBOL_ERROR_TOTAL"),
    gauge("DCGM_FI_DEV_NVLINK_COUNT_SYMBOL_BER", 1215, Gpu, sum(222, pick::value))
        .doc("packed", "Bit error rate by symbol errors on all NVLinks, in the driver's packed form.")
        .renamed("DCGM_FI_DEV_NVLINK_SYMBOL_BER_RAW"),
    gauge("DCGM_FI_DEV_NVLINK_COUNT_SYMBOL_BER_FLOAT", 1216, Gpu, sum(222, pick::bit_error_rate))
        .doc("ratio", "Bit error rate by symbol errors on all NVLinks, as a ratio.")
        .renamed("DCGM_FI_DEV_NVLINK_SYMBOL_BER_RATIO"),
    gauge("DCGM_FI_DEV_NVLINK_COUNT_EFFECTIVE_BER", 1217, Gpu, sum(220, pick::value))
        .doc("packed", "Bit error rate after correction on all NVLinks, in the driver's packed form.")
        .renamed("DCGM_FI_DEV_NVLINK_EFFECTIVE_BER_RAW"),
    gauge("DCGM_FI_DEV_NVLINK_COUNT_EFFECTIVE_BER_FLOAT", 1218, Gpu, sum(220, pick::bit_error_rate))
        .doc("ratio", "Bit error rate after correction on all NVLinks, as a ratio.")
        .renamed("DCGM_FI_DEV_NVLINK_EFFECTIVE_BER_RATIO"),
    counter("DCGM_FI_DEV_NVLINK_COUNT_EFFECTIVE_ERRORS", 1219, Gpu, sum(219, pick::value))
        .doc("count", "Number of errors left after correction on all NVLinks.")
        .renamed("DCGM_FI_DEV_NVLINK_EFFECTIVE_ERROR_TOTAL"),
];

/// Blocks by how many symbols had to be corrected.
macro_rules! fec_history {
    ($($bin:literal $id:literal $source:literal),+ $(,)?) => {
        &[$(
            counter(concat!("DCGM_FI_DEV_NVLINK_COUNT_FEC_HISTORY_", $bin), $id, Gpu, sum($source, pick::value))
                .doc("count", concat!("Number of NVLink blocks in which ", $bin, " symbols were corrected.")),
        )+]
    };
}

#[rustfmt::skip]
pub(super) const FEC: &[Field] = fec_history!(
    0 1404 235, 1 1405 236, 2 1406 237, 3 1407 238, 4 1408 239, 5 1409 240, 6 1410 241, 7 1411 242,
    8 1412 243, 9 1413 244, 10 1414 245, 11 1415 246, 12 1416 247, 13 1417 248, 14 1418 249, 15 1419 250,
);
