//! XIDs and clock events, counted while the exporter runs.

use super::field::History;
use super::prelude::*;

#[rustfmt::skip]
pub(super) const ROWS: &[Field] = &[
    counter("DCGM_EXP_XID_ERRORS_TOTAL", 9005, Gpu, Read::History(History::XidTotal))
        .doc("count", "XIDs since the exporter started, by code in the label xid; from 0 for codes that are critical or a warning.").on(),
    gauge("nvml_xid_last_timestamp_seconds", 0, Gpu, Read::History(History::XidTime))
        .doc("s", "When the last XID of a code was reported, in seconds of Unix time; absent before the first.").on(),
    gauge("DCGM_EXP_XID_ERRORS_COUNT", 9001, Gpu, Read::History(History::XidWindow))
        .doc("count", "XIDs in the last --xid-count-window-size, by code in the label xid."),
    counter("DCGM_EXP_CLOCK_EVENTS_TOTAL", 9006, Gpu, Read::History(History::ClockTotal))
        .doc("count", "How often a reason for lower clocks appeared since the exporter started, by reason in the label clock_event."),
    gauge("DCGM_EXP_CLOCK_EVENTS_COUNT", 9002, Gpu, Read::History(History::ClockWindow))
        .doc("samples", "Passes in the last --clock-events-count-window-size that showed a reason for lower clocks, by reason in the label clock_event.")
        .alias(&["DCGM_FI_EXP_CLOCK_THROTTLE_REASONS_COUNT"]),

    gauge("DCGM_EXP_GPU_HEALTH_STATUS", 9003, Gpu, Read::Health)
        .doc("verdict", "Health by part in the label health_watch: 0 well, 10 warning, 20 failure, with the reason in the label health_error_code.").on(),
    gauge("DCGM_EXP_P2P_STATUS", 9004, Gpu, Read::Peers)
        .doc("status", "How the GPU reaches another over NVLink: 0 can, 1 to 6 why not, with the words in the label link_status."),
];
