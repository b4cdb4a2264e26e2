//! Each finding from the sign that makes it, and nothing without a sign.

use super::*;
use crate::sampler::incidents::{Incidents, Source};
use crate::sampler::signs::Trend;

const WINDOW: Duration = Duration::from_secs(300);

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

/// What a healthy H100 shows.
fn healthy() -> Signs {
    let mut signs = Signs::default();
    for sign in Sign::ALL {
        signs.add(*sign, 0.0);
    }
    for (sign, value) in [
        (Sign::PcieWidth, 16.0),
        (Sign::PcieMaxWidth, 16.0),
        (Sign::PcieGeneration, 5.0),
        (Sign::PcieMaxGeneration, 5.0),
        (Sign::Utilization, 97.0),
        (Sign::InforomValid, 1.0),
        // The power cap.
        (Sign::ClockReasons, 4.0),
    ] {
        signs.add(sign, value);
    }
    let mut links = Signs::default();
    for sign in Sign::ALL {
        let value = if *sign == Sign::LinkUp { Some(1.0) } else { signs.get(*sign) };
        links.add(*sign, value.unwrap());
    }
    links
}

fn with(sign: Sign, value: f64) -> Signs {
    let former = healthy();
    let mut signs = Signs::default();
    for other in Sign::ALL {
        let value = if *other == sign { value } else { former.get(*other).unwrap() };
        signs.add(*other, value);
    }
    signs
}

fn history() -> Incidents {
    let incidents = Incidents::new(WINDOW);
    incidents.watch("GPU-a");
    incidents
}

fn judged(status: Status, signs: Option<&Signs>, incidents: &Incidents) -> Vec<Finding> {
    let history = incidents.of("GPU-a");
    judge(&Evidence { status, signs, history: &history, window: (WINDOW, at(1000)) })
}

fn of(findings: &[Finding], watch: Watch) -> Option<(Verdict, &'static str)> {
    let found = findings.iter().find(|finding| finding.watch == watch)?;
    Some((found.verdict, found.code))
}

/// What the signs alone say, and that nothing else is said.
fn only(signs: &Signs) -> (Watch, Verdict, &'static str) {
    let findings = judged(Status::Up, Some(signs), &history());
    let bad: Vec<_> = findings.iter().filter(|one| one.verdict != Verdict::Pass).collect();
    let [one, all] = bad[..] else { panic!("{findings:?}") };
    assert_eq!((all.watch, all.verdict, all.code), (Watch::All, one.verdict, one.code));
    (one.watch, one.verdict, one.code)
}

#[test]
fn a_healthy_gpu_passes_in_all_parts() {
    let findings = judged(Status::Up, Some(&healthy()), &history());
    assert_eq!(findings.len(), 11);
    assert!(findings.iter().all(|one| one.verdict == Verdict::Pass && one.code == OK));
    assert!(findings.is_sorted_by_key(|one| one.watch));
}

#[test]
fn each_sign_has_its_finding() {
    use Verdict::{Fail, Warn};
    for (sign, value, watch, verdict, code) in [
        (Sign::DoubleBitErrors, 1.0, Watch::Mem, Fail, "DCGM_FR_VOLATILE_DBE_DETECTED"),
        (Sign::RemapFailed, 1.0, Watch::Mem, Fail, "DCGM_FR_ROW_REMAP_FAILURE"),
        (Sign::SramThreshold, 1.0, Watch::Mem, Fail, "DCGM_FR_SRAM_THRESHOLD"),
        (Sign::RetiredSingleBit, 63.0, Watch::Mem, Fail, "DCGM_FR_RETIRED_PAGES_LIMIT"),
        (Sign::RemapPending, 1.0, Watch::Mem, Warn, "DCGM_FR_PENDING_ROW_REMAP"),
        (Sign::RetirementPending, 1.0, Watch::Mem, Warn, "DCGM_FR_PENDING_PAGE_RETIREMENTS"),
        (Sign::PcieWidth, 8.0, Watch::Pcie, Warn, "DCGM_FR_PCIE_WIDTH"),
        (Sign::PcieGeneration, 3.0, Watch::Pcie, Warn, "DCGM_FR_PCIE_GENERATION"),
        (Sign::InforomValid, 0.0, Watch::Inforom, Fail, "DCGM_FR_CORRUPT_INFOROM"),
        (Sign::ClockReasons, 64.0, Watch::Thermal, Warn, "DCGM_FR_CLOCKS_EVENT_THERMAL"),
        (Sign::ClockReasons, 128.0, Watch::Power, Warn, "DCGM_FR_CLOCKS_EVENT_POWER"),
        (Sign::ClockReasons, 8.0, Watch::Power, Warn, "DCGM_FR_CLOCKS_EVENT_POWER"),
        (Sign::RecoveryAction, 1.0, Watch::Driver, Fail, "DCGM_FR_GPU_RECOVERY_RESET"),
        (Sign::RecoveryAction, 2.0, Watch::Driver, Fail, "DCGM_FR_GPU_RECOVERY_REBOOT"),
        (Sign::RecoveryAction, 3.0, Watch::Driver, Warn, "DCGM_FR_GPU_RECOVERY_DRAIN_P2P"),
        (Sign::RecoveryAction, 4.0, Watch::Driver, Fail, "DCGM_FR_GPU_RECOVERY_DRAIN_RESET"),
    ] {
        assert_eq!(only(&with(sign, value)), (watch, verdict, code), "{sign:?}");
    }
}

#[test]
fn growth_in_a_minute_has_its_finding_and_a_little_has_none() {
    let grown = |sign: Sign, by: f64| {
        let mut trend = Trend::default();
        trend.follow(healthy(), at(0));
        trend.follow(with(sign, by), at(60))
    };
    // 0.06 replays a minute for each lane and step of speed: 30.7 at generation 5 and 16 lanes.
    for (sign, few, many, watch, code) in [
        (Sign::PcieReplays, 30.0, 31.0, Watch::Pcie, "DCGM_FR_PCI_REPLAY_RATE"),
        (Sign::LinkRecoveries, 0.0, 1.0, Watch::Nvlink, "DCGM_FR_NVLINK_ERROR_CRITICAL"),
        (Sign::LinkReplays, 0.0, 1.0, Watch::Nvlink, "DCGM_FR_NVLINK_ERROR_CRITICAL"),
        (Sign::LinkRecoveryEvents, 0.0, 1.0, Watch::Nvlink, "DCGM_FR_NVLINK_ERROR_CRITICAL"),
        (Sign::LinkCrcFlit, 6000.0, 6001.0, Watch::Nvlink, "DCGM_FR_NVLINK_CRC_ERROR_THRESHOLD"),
        (Sign::ThermalViolation, 6e9, 7e9, Watch::Thermal, "DCGM_FR_CLOCKS_EVENT_THERMAL"),
    ] {
        let findings = judged(Status::Up, Some(&grown(sign, few)), &history());
        assert!(findings.iter().all(|one| one.verdict == Verdict::Pass), "{sign:?} {findings:?}");
        let (found, _, why) = only(&grown(sign, many));
        assert_eq!((found, why), (watch, code), "{sign:?}");
    }
}

#[test]
fn a_link_that_is_down_beside_others_fails_and_unwired_ones_are_nothing() {
    let mut signs = healthy();
    signs.add(Sign::LinkUp, 0.0);
    assert_eq!(only(&signs), (Watch::Nvlink, Verdict::Fail, "DCGM_FR_NVLINK_DOWN"));
    let findings = judged(Status::Up, Some(&with(Sign::LinkUp, 0.0)), &history());
    assert_eq!(of(&findings, Watch::Nvlink), None);
}

#[test]
fn an_idle_link_may_be_slow() {
    let mut signs = with(Sign::PcieGeneration, 1.0);
    let mut idle = Signs::default();
    for sign in Sign::ALL {
        let value = if *sign == Sign::Utilization { Some(0.0) } else { signs.get(*sign) };
        idle.add(*sign, value.unwrap());
    }
    signs = idle;
    let findings = judged(Status::Up, Some(&signs), &history());
    assert_eq!(of(&findings, Watch::Pcie), Some((Verdict::Pass, OK)));
}

#[test]
fn an_xid_counts_against_its_part_while_the_window_holds_it() {
    use Verdict::{Fail, Warn};
    for (code, watch, verdict, why) in [
        (79, Watch::Pcie, Fail, "DCGM_FR_FALLEN_OFF_BUS"),
        (95, Watch::Mem, Fail, "DCGM_FR_UNCONTAINED_ERROR"),
        (94, Watch::Mem, Warn, "DCGM_FR_XID_ERROR"),
        (74, Watch::Nvlink, Fail, "DCGM_FR_XID_ERROR"),
        (62, Watch::Pmu, Fail, "DCGM_FR_XID_ERROR"),
        (119, Watch::Mcu, Fail, "DCGM_FR_XID_ERROR"),
        (54, Watch::Power, Warn, "DCGM_FR_XID_ERROR"),
    ] {
        let incidents = history();
        incidents.xid("GPU-a", (None, code), Source::Nvml, at(900));
        let findings = judged(Status::Up, Some(&healthy()), &incidents);
        assert_eq!(of(&findings, watch), Some((verdict, why)), "{code}");
        assert_eq!(of(&findings, Watch::All), Some((verdict, why)), "{code}");
        let old = history();
        old.xid("GPU-a", (None, code), Source::Nvml, at(600));
        let findings = judged(Status::Up, Some(&healthy()), &old);
        assert_eq!(of(&findings, Watch::All), Some((Verdict::Pass, OK)), "{code}");
    }
}

#[test]
fn what_applications_do_is_nobodys_fault() {
    let incidents = history();
    for code in [13, 31, 43, 4711] {
        incidents.xid("GPU-a", (None, code), Source::Nvml, at(999));
    }
    let findings = judged(Status::Up, Some(&healthy()), &incidents);
    assert_eq!(of(&findings, Watch::All), Some((Verdict::Pass, OK)));
}

#[test]
fn a_gpu_that_does_not_answer_fails_and_the_rest_of_it_is_not_known() {
    for (reason, code) in [
        ("lost", "DCGM_FR_FALLEN_OFF_BUS"),
        ("reset_required", "DCGM_FR_GPU_RECOVERY_RESET"),
        ("timeout", "DCGM_FR_API_FAIL_GPU"),
    ] {
        let findings = judged(Status::Down(reason), None, &history());
        assert_eq!(of(&findings, Watch::Driver), Some((Verdict::Fail, code)));
        assert_eq!(of(&findings, Watch::All), Some((Verdict::Fail, code)));
        assert_eq!(of(&findings, Watch::Mem), None);
    }
}

#[test]
fn of_what_nothing_is_known_nothing_is_said() {
    let unknown = Incidents::new(WINDOW);
    assert_eq!(judged(Status::Starting, None, &unknown), []);
    assert_eq!(judged(Status::Up, Some(&Signs::default()), &unknown), []);
}
