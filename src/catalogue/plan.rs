//! From the rows selected to what has to be read for them: each NVML call once, the field values
//! in one batch, facts once at all.

use std::collections::BTreeMap;

use super::call::{Call, Fact, FieldValueRead, Numbers, RateRead};
use super::field::{Entity, Field, Read, Value};
use super::gpm::GpmMetric;
use super::selection::Selection;

/// What a selection needs. `rows` are positions in [`Selection::rows`], `labels` in
/// [`Selection::labels`]; how a row converts the numbers is [`Field::convert`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// Calls on the board's handle.
    pub board: Vec<PlannedCall>,
    /// Calls on each MIG instance's handle, or on the board's when it is a row itself.
    pub instance: Vec<PlannedCall>,
    /// The batch of `nvmlDeviceGetFieldValues`, those entries included that only rates need. An
    /// entry of `Scope::EachLink` stands for one entry a link.
    pub field_values: Vec<PlannedFieldValue>,
    /// Values derived from the growth of field values between two passes.
    pub rates: Vec<PlannedRate>,
    /// Metrics of GPM that only the GPU as a whole has.
    pub gpm_board: Vec<PlannedGpm>,
    /// Metrics of GPM that each MIG instance has, or the GPU when it is a row itself.
    pub gpm_instance: Vec<PlannedGpm>,
    /// What is read when the device is found.
    pub facts: Vec<PlannedFact>,
    /// Rows of the last XID.
    pub last_xid: Takers,
    /// Rows of what happened.
    pub history: Takers,
    /// Rows of how GPUs reach each other.
    pub peers: Takers,
}

/// Who takes the value of one read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Takers {
    /// Positions of families' rows.
    pub rows: Vec<u16>,
    /// Positions of label rows.
    pub labels: Vec<u16>,
    /// Positions of families' rows that count how the value changes.
    pub history: Vec<u16>,
}

/// One NVML call of a pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedCall {
    /// The call.
    pub call: Call,
    /// Whose values its numbers are.
    pub takers: Takers,
}

/// One entry of the field value batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedFieldValue {
    /// The entry.
    pub read: FieldValueRead,
    /// Whose value it is; nobody's if only rates need it.
    pub takers: Takers,
}

/// One rate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedRate {
    /// What grows, where, and the unit; [`super::pick::rate`] computes it.
    pub read: RateRead,
    /// Its counters, as positions in [`Plan::field_values`]; the rate is of their sum.
    pub counters: Vec<usize>,
    /// Whose value it is.
    pub takers: Takers,
}

/// One metric of GPM, or one for each link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedGpm {
    /// The metric.
    pub metric: GpmMetric,
    /// Whose value it is.
    pub takers: Takers,
}

/// One fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedFact {
    /// The fact.
    pub fact: Fact,
    /// Whose value it is.
    pub takers: Takers,
}

impl Takers {
    fn add(&mut self, taker: Taker) {
        match taker {
            Taker::Row(at) => self.rows.push(at),
            Taker::Label(at) => self.labels.push(at),
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Taker {
    Row(u16),
    Label(u16),
}

/// The plan while rows are still being added.
#[derive(Default)]
struct Draft {
    board: BTreeMap<Call, Takers>,
    instance: BTreeMap<Call, Takers>,
    field_values: BTreeMap<FieldValueRead, Takers>,
    rates: BTreeMap<RateRead, Takers>,
    gpm_board: BTreeMap<GpmMetric, Takers>,
    gpm_instance: BTreeMap<GpmMetric, Takers>,
    facts: BTreeMap<Fact, Takers>,
    last_xid: Takers,
    history: Takers,
    peers: Takers,
}

impl Draft {
    fn add(&mut self, field: &Field, taker: Taker) {
        match field.read {
            // A label is the same on all rows of a GPU, so that it comes from the board.
            Read::Call(call, _) => match (field.entity, taker) {
                (Entity::Instance, Taker::Row(_)) => self.instance.entry(call).or_default(),
                _ => self.board.entry(call).or_default(),
            }
            .add(taker),
            Read::FieldValue(read, _) => self.field_values.entry(read).or_default().add(taker),
            Read::Rate(read) => {
                self.rates.entry(read).or_default().add(taker);
                for counter in read.counters() {
                    self.field_values.entry(counter).or_default();
                }
            }
            Read::Gpm(metric, _) => match (field.entity, taker) {
                (Entity::Instance, Taker::Row(_)) => self.gpm_instance.entry(metric).or_default(),
                _ => self.gpm_board.entry(metric).or_default(),
            }
            .add(taker),
            Read::Fact(fact) => self.facts.entry(fact).or_default().add(taker),
            Read::LastXid => self.last_xid.add(taker),
            Read::History(read) => {
                self.history.add(taker);
                if let (true, Taker::Row(at)) = (read.is_clocks(), taker) {
                    let takers = self.board.entry(Call::ClocksEventReasons).or_default();
                    takers.history.push(at);
                }
            }
            Read::Peers => self.peers.add(taker),
            // Health is judged of signs, which have rows of their own.
            Read::Health | Read::Unavailable(_) => {}
        }
    }
}

impl Plan {
    /// The plan for a selection.
    #[must_use]
    pub fn new(selection: &Selection) -> Self {
        let mut draft = Draft::default();
        for (at, row) in (0..).zip(&selection.rows) {
            draft.add(row.field, Taker::Row(at));
        }
        let served = u16::try_from(selection.rows.len()).unwrap_or(u16::MAX);
        for (at, field) in (served..).zip(selection.unserved()) {
            draft.add(field, Taker::Row(at));
        }
        for (at, row) in (0..).zip(&selection.labels) {
            draft.add(row.field, Taker::Label(at));
        }
        let entries: Vec<FieldValueRead> = draft.field_values.keys().copied().collect();
        let position = |counter| entries.binary_search(&counter).ok();
        Self {
            board: calls(draft.board),
            instance: calls(draft.instance),
            gpm_board: metrics(draft.gpm_board),
            gpm_instance: metrics(draft.gpm_instance),
            rates: draft
                .rates
                .into_iter()
                .map(|(read, takers)| PlannedRate {
                    read,
                    counters: read.counters().filter_map(position).collect(),
                    takers,
                })
                .collect(),
            field_values: draft
                .field_values
                .into_iter()
                .map(|(read, takers)| PlannedFieldValue { read, takers })
                .collect(),
            facts: draft
                .facts
                .into_iter()
                .map(|(fact, takers)| PlannedFact { fact, takers })
                .collect(),
            last_xid: draft.last_xid,
            history: draft.history,
            peers: draft.peers,
        }
    }
}

fn calls(calls: BTreeMap<Call, Takers>) -> Vec<PlannedCall> {
    calls.into_iter().map(|(call, takers)| PlannedCall { call, takers }).collect()
}

fn metrics(metrics: BTreeMap<GpmMetric, Takers>) -> Vec<PlannedGpm> {
    metrics.into_iter().map(|(metric, takers)| PlannedGpm { metric, takers }).collect()
}

impl Field {
    /// The row's value out of the numbers of its call or field value. Rates, facts and XIDs do
    /// not come from numbers.
    #[must_use]
    pub fn convert(&self, numbers: &Numbers) -> Option<Value> {
        match self.read {
            Read::Call(_, pick) | Read::FieldValue(_, pick) | Read::Gpm(_, pick) => pick(numbers),
            Read::Rate(_)
            | Read::Fact(_)
            | Read::LastXid
            | Read::History(_)
            | Read::Health
            | Read::Peers
            | Read::Unavailable(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::call::{Clock, Decode, Scope};
    use super::super::counters::{default_selection, parse};
    use super::super::selection::MetricNames;
    use super::*;

    fn plan(lines: &[&str]) -> (Selection, Plan) {
        let text = lines.join("\n");
        let selection = parse(&text, "test.csv", MetricNames::Legacy).unwrap().selection;
        let plan = Plan::new(&selection);
        (selection, plan)
    }

    fn names<'a>(selection: &'a Selection, takers: &Takers) -> Vec<&'a str> {
        let name = |rows: &'a [super::super::Row], at: &u16| &*rows[usize::from(*at)].name;
        let rows = takers.rows.iter().map(|at| name(&selection.rows, at));
        rows.chain(takers.labels.iter().map(|at| name(&selection.labels, at))).collect()
    }

    #[test]
    fn rows_of_one_call_share_it() {
        let (selection, plan) = plan(&[
            "DCGM_FI_DEV_FB_USED, gauge, a",
            "DCGM_FI_DEV_FB_FREE, gauge, b",
            "DCGM_FI_DEV_SM_CLOCK, gauge, c",
            "dcgm_sm_clock, gauge, d",
        ]);
        let [memory] = plan.instance.as_slice() else { panic!("{plan:?}") };
        assert_eq!(memory.call, Call::MemoryInfo);
        assert_eq!(
            names(&selection, &memory.takers),
            ["DCGM_FI_DEV_FB_FREE", "DCGM_FI_DEV_FB_USED"]
        );
        let [clock] = plan.board.as_slice() else { panic!("{plan:?}") };
        assert_eq!(clock.call, Call::ClockInfo(Clock::Sm));
        assert_eq!(names(&selection, &clock.takers), ["DCGM_FI_DEV_SM_CLOCK", "dcgm_sm_clock"]);
    }

    #[test]
    fn a_call_that_no_row_needs_is_not_made() {
        let (_, plan) = plan(&["DCGM_FI_DEV_NVSWITCH_PHYS_ID, gauge, a"]);
        assert_eq!(plan, Plan::default());
    }

    #[test]
    fn a_rate_shares_its_counters_with_the_rows_that_serve_them() {
        let (selection, plan) = plan(&[
            "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL, gauge, a",
            "nvml_nvlink_tx_bytes_total, counter, b",
        ]);
        let reads: Vec<_> =
            plan.field_values.iter().map(|value| (value.read.id, value.read.scope)).collect();
        assert_eq!(reads, [(138, Scope::AllLinks), (139, Scope::AllLinks)]);
        assert_eq!(names(&selection, &plan.field_values[0].takers), ["nvml_nvlink_tx_bytes_total"]);
        assert_eq!(plan.field_values[1].takers, Takers::default());
        let [rate] = plan.rates.as_slice() else { panic!("{plan:?}") };
        assert_eq!(rate.counters, [0, 1]);
        assert_eq!(names(&selection, &rate.takers), ["DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL"]);
    }

    #[test]
    fn links_stay_symbolic() {
        let (_, plan) = plan(&[
            "DCGM_FI_DEV_NVLINK_GET_STATE, gauge, a",
            "DCGM_FI_DEV_NVLINK_TX_THROUGHPUT_PER_LINK, gauge, b",
            "nvml_nvlink_up, gauge, c",
        ]);
        let each = |id, decode| FieldValueRead { id, scope: Scope::EachLink, decode };
        let reads: Vec<_> = plan.field_values.iter().map(|value| value.read).collect();
        assert_eq!(reads, [each(138, Decode::Tagged), each(165, Decode::U32)]);
        assert_eq!(plan.board.len(), 1);
        assert_eq!(plan.board[0].call, Call::EachNvLinkState);
    }

    #[test]
    fn facts_and_calls_may_be_labels() {
        let (selection, plan) = plan(&[
            "DCGM_FI_DRIVER_VERSION, label, a",
            "DCGM_FI_DEV_BRAND, gauge, b",
            "DCGM_FI_DEV_FB_TOTAL, label, c",
            "DCGM_FI_DEV_XID_ERRORS, gauge, d",
        ]);
        let facts: Vec<_> =
            plan.facts.iter().map(|fact| (fact.fact, names(&selection, &fact.takers))).collect();
        assert_eq!(
            facts,
            [
                (Fact::DriverVersion, vec!["DCGM_FI_DRIVER_VERSION"]),
                (Fact::Brand, vec!["DCGM_FI_DEV_BRAND"]),
            ]
        );
        assert_eq!(plan.facts[0].takers.labels.len(), 1);
        // A label of every row of the GPU is the board's, whatever its row in a family would be.
        assert_eq!(plan.instance, []);
        assert_eq!(names(&selection, &plan.board[0].takers), ["DCGM_FI_DEV_FB_TOTAL"]);
        assert_eq!(names(&selection, &plan.last_xid), ["DCGM_FI_DEV_XID_ERRORS"]);
    }

    #[test]
    fn every_row_has_exactly_one_source() {
        for names in [MetricNames::Legacy, MetricNames::Dcgm47, MetricNames::Both] {
            let selection = default_selection(names);
            let plan = Plan::new(&selection);
            let takers = (plan.board.iter().chain(&plan.instance).map(|call| &call.takers))
                .chain(plan.field_values.iter().map(|value| &value.takers))
                .chain(plan.rates.iter().map(|rate| &rate.takers))
                .chain(plan.gpm_board.iter().map(|metric| &metric.takers))
                .chain(plan.gpm_instance.iter().map(|metric| &metric.takers))
                .chain(plan.facts.iter().map(|fact| &fact.takers))
                .chain([&plan.last_xid, &plan.history, &plan.peers]);
            let mut rows: Vec<usize> =
                takers.flat_map(|t| &t.rows).map(|at| usize::from(*at)).collect();
            // Signs come after the rows; a judgement is made of them and not read itself.
            rows.retain(|at| *at < selection.rows.len());
            let judged = |at: &usize| matches!(selection.rows[*at].field.read, Read::Health);
            rows.extend((0..selection.rows.len()).filter(judged));
            rows.sort_unstable();
            assert!(rows.iter().copied().eq(0..selection.rows.len()), "{names:?}");
        }
    }
}
