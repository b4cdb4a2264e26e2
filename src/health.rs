//! Whether a GPU is healthy, judged as DCGM's passive health watches do where NVML shows what they
//! look at. Pure: from signs and what happened to verdicts.

use std::time::{Duration, SystemTime};

use crate::catalogue::Sign;
use crate::sampler::history::History;
use crate::sampler::signs::Signs;
use crate::sampler::snapshot::Status;
use crate::xid::{self, Class, Severity};

/// A part of the GPU that is watched (`dcgmHealthSystems_t`), by the names of dcgm-exporter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Watch {
    /// The link to the host.
    Pcie,
    /// The links to other GPUs.
    Nvlink,
    /// The power management unit.
    Pmu,
    /// Other micro-controllers: GSP, SEC2.
    Mcu,
    /// Memory.
    Mem,
    /// The multiprocessors and their surroundings.
    Sm,
    /// The board's own records.
    Inforom,
    /// Heat.
    Thermal,
    /// Power.
    Power,
    /// The driver, and whether the GPU answers it.
    Driver,
    /// The worst of all.
    All,
}

impl Watch {
    /// As the label `health_watch` has it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pcie => "PCIE",
            Self::Nvlink => "NVLINK",
            Self::Pmu => "PMU",
            Self::Mcu => "MCU",
            Self::Mem => "MEM",
            Self::Sm => "SM",
            Self::Inforom => "INFOROM",
            Self::Thermal => "THERMAL",
            Self::Power => "POWER",
            Self::Driver => "DRIVER",
            Self::All => "ALL",
        }
    }
}

/// `dcgmHealthWatchResults_t`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// 0.
    Pass,
    /// 10: somebody should look.
    Warn,
    /// 20: work should go elsewhere.
    Fail,
}

impl Verdict {
    /// DCGM's number.
    #[must_use]
    pub const fn number(self) -> i64 {
        match self {
            Self::Pass => 0,
            Self::Warn => 10,
            Self::Fail => 20,
        }
    }
}

/// How one part is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finding {
    /// The part.
    pub watch: Watch,
    /// How it is.
    pub verdict: Verdict,
    /// Why: one of DCGM's `dcgmError_t`.
    pub code: &'static str,
}

const OK: &str = "DCGM_FR_OK";

/// NVML's reasons for lower clocks: hardware slowdown, by heat, by the power brake.
const HW_SLOWDOWN: u64 = 0x08;
const HW_THERMAL: u64 = 0x40;
const POWER_BRAKE: u64 = 0x80;

/// The share of a minute that heat may hold the clocks down; DCGM warns of any.
const THERMAL_SHARE: f64 = 0.1;
/// DCGM: so many retired pages are too many.
const RETIRED_MAX: f64 = 63.0;
/// DCGM: more `NVLink` CRC errors a second than this are too many.
const CRC_A_SECOND: f64 = 100.0;
/// Replays a minute that a lane may have: for generation 3 about what DCGM allows, and twice as
/// many for each further one.
const REPLAYS_A_LANE: f64 = 0.06;
/// Percent of utilisation from which on a link runs at its full generation.
const BUSY: f64 = 50.0;

/// What a judgement is made of.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    /// Whether it answers.
    pub status: Status,
    /// What the newest pass told, if there is one.
    pub signs: Option<&'a Signs>,
    /// What happened to it.
    pub history: &'a History,
    /// How long an XID counts against it, and from when on.
    pub window: (Duration, SystemTime),
}

/// The findings, one for each part of which something is known, by part; the last is of all.
#[must_use]
pub fn judge(evidence: &Evidence<'_>) -> Vec<Finding> {
    let mut findings = Findings::default();
    if let Some(signs) = evidence.signs {
        findings.memory(signs);
        findings.pcie(signs);
        findings.nvlink(signs);
        findings.inforom(signs);
        findings.clocks(signs);
        findings.driver(signs);
    }
    findings.xids(evidence);
    findings.status(evidence.status);
    if matches!(evidence.status, Status::Down(_)) {
        // It does not answer: of no part is it known that it is well.
        findings.0.retain(|finding| finding.verdict != Verdict::Pass);
    }
    findings.all()
}

#[derive(Debug, Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn note(&mut self, watch: Watch, verdict: Verdict, code: &'static str) {
        self.0.push(Finding { watch, verdict, code });
    }

    /// A part of which something is known is well, unless something else is noted.
    fn known(&mut self, watch: Watch, is_known: bool) {
        if is_known {
            self.note(watch, Verdict::Pass, OK);
        }
    }

    fn note_if(&mut self, condition: bool, watch: Watch, verdict: Verdict, code: &'static str) {
        if condition {
            self.note(watch, verdict, code);
        }
    }

    fn memory(&mut self, signs: &Signs) {
        use Verdict::{Fail, Warn};
        let there = |sign| signs.get(sign).is_some_and(|value| value > 0.0);
        let retired = [Sign::RetiredSingleBit, Sign::RetiredDoubleBit];
        let retired: f64 = retired.iter().filter_map(|sign| signs.get(*sign)).sum();
        let signs_of = [Sign::DoubleBitErrors, Sign::RemapFailed, Sign::RetirementPending];
        self.known(Watch::Mem, signs_of.iter().any(|sign| signs.get(*sign).is_some()));
        let mut note =
            |condition, verdict, code| self.note_if(condition, Watch::Mem, verdict, code);
        note(there(Sign::DoubleBitErrors), Fail, "DCGM_FR_VOLATILE_DBE_DETECTED");
        note(there(Sign::RemapFailed), Fail, "DCGM_FR_ROW_REMAP_FAILURE");
        note(there(Sign::SramThreshold), Fail, "DCGM_FR_SRAM_THRESHOLD");
        note(retired >= RETIRED_MAX, Fail, "DCGM_FR_RETIRED_PAGES_LIMIT");
        note(there(Sign::RemapPending), Warn, "DCGM_FR_PENDING_ROW_REMAP");
        note(there(Sign::RetirementPending), Warn, "DCGM_FR_PENDING_PAGE_RETIREMENTS");
    }

    fn pcie(&mut self, signs: &Signs) {
        let known = [Sign::PcieReplays, Sign::PcieWidth];
        self.known(Watch::Pcie, known.iter().any(|sign| signs.get(*sign).is_some()));
        let below = |now, most| signs.get(now).zip(signs.get(most)).is_some_and(|(n, m)| n < m);
        let narrow = below(Sign::PcieWidth, Sign::PcieMaxWidth);
        // An idle link drops its speed on purpose.
        let busy = signs.get(Sign::Utilization).is_some_and(|percent| percent >= BUSY);
        let slow = busy && below(Sign::PcieGeneration, Sign::PcieMaxGeneration);
        let (generation, width) = (signs.get(Sign::PcieMaxGeneration), signs.get(Sign::PcieWidth));
        let allowed = generation.zip(width).map(|(g, w)| REPLAYS_A_LANE * g.exp2() * w);
        let replays = signs.grown(Sign::PcieReplays).zip(allowed).is_some_and(|(n, max)| n > max);
        let mut note = |condition, code| self.note_if(condition, Watch::Pcie, Verdict::Warn, code);
        note(replays, "DCGM_FR_PCI_REPLAY_RATE");
        note(narrow, "DCGM_FR_PCIE_WIDTH");
        note(slow, "DCGM_FR_PCIE_GENERATION");
    }

    fn nvlink(&mut self, signs: &Signs) {
        // Where no link is up none is wired, or the fabric is not there at all.
        let used = signs.get(Sign::LinkUp).is_some_and(|up| up > 0.0);
        self.known(Watch::Nvlink, used);
        let down = used && signs.least(Sign::LinkUp).is_some_and(|up| up < 1.0);
        let grown = |sign: Sign| signs.grown(sign).unwrap_or_default();
        let errors = [Sign::LinkReplays, Sign::LinkRecoveries, Sign::LinkRecoveryEvents];
        let errors = errors.into_iter().any(|sign| grown(sign) > 0.0);
        let crc = grown(Sign::LinkCrcFlit) + grown(Sign::LinkCrcData);
        let crc = crc > CRC_A_SECOND * signs.over().as_secs_f64();
        let mut note =
            |condition, code| self.note_if(condition, Watch::Nvlink, Verdict::Fail, code);
        note(down, "DCGM_FR_NVLINK_DOWN");
        note(errors, "DCGM_FR_NVLINK_ERROR_CRITICAL");
        note(crc, "DCGM_FR_NVLINK_CRC_ERROR_THRESHOLD");
    }

    fn inforom(&mut self, signs: &Signs) {
        let valid = signs.get(Sign::InforomValid);
        self.known(Watch::Inforom, valid.is_some());
        let damaged = valid.is_some_and(|valid| valid < 1.0);
        self.note_if(damaged, Watch::Inforom, Verdict::Fail, "DCGM_FR_CORRUPT_INFOROM");
    }

    fn clocks(&mut self, signs: &Signs) {
        let reasons = signs.get(Sign::ClockReasons);
        let has = |bit: u64| reasons.is_some_and(|mask| whole(mask) & bit != 0);
        let held = signs.grown(Sign::ThermalViolation).map(|nanoseconds| nanoseconds / 1e9);
        let share = held.is_some_and(|held| held > THERMAL_SHARE * signs.over().as_secs_f64());
        for watch in [Watch::Thermal, Watch::Power] {
            self.known(watch, reasons.is_some());
        }
        let hot = has(HW_THERMAL) || share;
        self.note_if(hot, Watch::Thermal, Verdict::Warn, "DCGM_FR_CLOCKS_EVENT_THERMAL");
        // A power cap is how a busy GPU works; a brake is pulled from outside. The older bit alone
        // does not tell which of the two it is.
        let braked = has(POWER_BRAKE) || (has(HW_SLOWDOWN) && !has(HW_THERMAL));
        self.note_if(braked, Watch::Power, Verdict::Warn, "DCGM_FR_CLOCKS_EVENT_POWER");
    }

    fn driver(&mut self, signs: &Signs) {
        let Some(action) = signs.get(Sign::RecoveryAction) else { return };
        let (verdict, code) = match whole(action) {
            0 => (Verdict::Pass, OK),
            2 | 7 => (Verdict::Fail, "DCGM_FR_GPU_RECOVERY_REBOOT"),
            3 => (Verdict::Warn, "DCGM_FR_GPU_RECOVERY_DRAIN_P2P"),
            4 => (Verdict::Fail, "DCGM_FR_GPU_RECOVERY_DRAIN_RESET"),
            5 => (Verdict::Fail, "DCGM_FR_GPU_RECOVERY_IMEX_DOMAIN"),
            _ => (Verdict::Fail, "DCGM_FR_GPU_RECOVERY_RESET"),
        };
        self.note(Watch::Driver, verdict, code);
    }

    /// XIDs that are not an application's count for as long as the window holds them.
    fn xids(&mut self, evidence: &Evidence<'_>) {
        let (window, now) = evidence.window;
        let history = evidence.history;
        let told = history.watched || !history.xids.is_empty();
        for watch in [Watch::Pmu, Watch::Mcu, Watch::Sm, Watch::Driver] {
            self.known(watch, told);
        }
        for ((_, code), count) in &history.xids {
            let Some(known) = xid::find(*code) else { continue };
            let verdict = match known.severity {
                Severity::Critical => Verdict::Fail,
                Severity::Warning => Verdict::Warn,
                Severity::Info => continue,
            };
            if count.recent.within(window, now) > 0 {
                let (watch, reason) = place(known);
                self.note(watch, verdict, reason);
            }
        }
    }

    fn status(&mut self, status: Status) {
        let code = match status {
            Status::Down("lost" | "detached") => "DCGM_FR_FALLEN_OFF_BUS",
            Status::Down("reset_required") => "DCGM_FR_GPU_RECOVERY_RESET",
            Status::Down("timeout" | "error") => "DCGM_FR_API_FAIL_GPU",
            Status::Up | Status::Starting | Status::Down(_) => return,
        };
        self.note(Watch::Driver, Verdict::Fail, code);
    }

    /// The worst of each part, the first of those alike, and the worst of all.
    fn all(self) -> Vec<Finding> {
        let mut worst: Vec<Finding> = Vec::new();
        for finding in self.0 {
            match worst.iter_mut().find(|known| known.watch == finding.watch) {
                None => worst.push(finding),
                Some(known) if known.verdict < finding.verdict => *known = finding,
                Some(_) => {}
            }
        }
        worst.sort_by_key(|finding| finding.watch);
        let all = worst
            .iter()
            .copied()
            .reduce(|worst, next| if next.verdict > worst.verdict { next } else { worst });
        worst.extend(all.map(|all| Finding { watch: Watch::All, ..all }));
        worst
    }
}

/// Of NVML's masks and enumerations, which are small.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "they are whole numbers from 0 on"
)]
const fn whole(value: f64) -> u64 {
    value as u64
}

/// The part that an XID is about, and DCGM's code for it.
fn place(xid: &xid::Xid) -> (Watch, &'static str) {
    let watch = match (xid.code, xid.class) {
        (79 | 167, _) => Watch::Pcie,
        (54 | 162..=165, _) => Watch::Power,
        (59 | 61 | 62 | 122..=124, _) => Watch::Pmu,
        (119 | 120 | 169, _) => Watch::Mcu,
        (125, _) => Watch::Inforom,
        (_, Class::Memory) => Watch::Mem,
        (_, Class::Nvlink) => Watch::Nvlink,
        (_, Class::Hardware) => Watch::Sm,
        _ => Watch::Driver,
    };
    let code = match xid.code {
        79 => "DCGM_FR_FALLEN_OFF_BUS",
        95 => "DCGM_FR_UNCONTAINED_ERROR",
        _ => "DCGM_FR_XID_ERROR",
    };
    (watch, code)
}

#[cfg(test)]
mod tests;
