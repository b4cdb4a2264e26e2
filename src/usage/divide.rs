//! The rule by which what a board spends is divided among those who hold it and its parts. Pure.

/// The board, or one of its MIG instances.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Part {
    /// Its share of the board, 0 to 1: 1, or its slices of all slices.
    pub(super) size: f64,
    /// Share of time in which its engine worked, if that is known.
    pub(super) activity: Option<f64>,
    /// The multiprocessor share of each who holds it, 0 to 1; `None` where NVML does not tell.
    pub(super) tenants: Vec<Option<f64>>,
    /// The multiprocessor share of processes that are known to be nobody's who holds it.
    pub(super) others: f64,
    /// The same of processes of which that is not known.
    pub(super) unseen: f64,
    /// Whether there are processes of nobody who holds it, whatever is known of their shares.
    pub(super) foreign: bool,
    /// Whether it is held by somebody's word, and not by having processes: then one who holds it
    /// alone has all that is not known to be others'.
    pub(super) assigned: bool,
}

impl Part {
    /// Whether it is known what each who holds it has of it.
    pub(super) fn is_divisible(&self) -> bool {
        match self.tenants.as_slice() {
            [] => true,
            [own] => self.assigned || own.is_some() || !self.foreign,
            several => several.iter().all(Option::is_some),
        }
    }
}

/// Shares of the board's energy; they add up to 1.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Division {
    /// By part, then tenant.
    pub(super) tenants: Vec<Vec<f64>>,
    /// Of what nobody holds.
    pub(super) idle: f64,
    /// Of what several hold and nothing tells how much each uses.
    pub(super) unknown: f64,
    /// Of processes of nobody who holds the device, where several hold it or none.
    pub(super) others: f64,
}

/// Divides.
///
/// What a part that works costs and what one that idles costs is not measured, so the board's
/// energy is taken for two portions: as much as the board was active (A) is that of activity, the
/// rest that of being there. The first goes by activity, the second by size. A part of size s and
/// activity a so has `s * (1 + a - A)`, with `A` the sum of all `s * a`. Within a part it is the
/// same, with multiprocessor shares for activities and equal sizes; one who holds it alone has all.
pub(super) fn divide(parts: &[Part]) -> Division {
    let all: f64 = parts.iter().map(|part| part.size).sum();
    // Sizes that a driver tells wrongly must not make energy.
    let scale = if all > 1.0 { all } else { 1.0 };
    let activities: Option<Vec<f64>> = parts.iter().map(|part| part.activity).collect();
    let activities = activities.unwrap_or_else(|| vec![0.0; parts.len()]);
    let active: f64 = parts.iter().zip(&activities).map(|(part, a)| part.size / scale * a).sum();
    let mut division =
        Division { idle: (1.0 - all / scale).max(0.0) * (1.0 - active), ..Division::default() };
    for (part, activity) in parts.iter().zip(&activities) {
        let share = part.size / scale * (1.0 + activity - active);
        let tenants = within(part, share, &mut division);
        division.tenants.push(tenants);
    }
    division
}

fn within(part: &Part, share: f64, division: &mut Division) -> Vec<f64> {
    let Part { others, unseen, .. } = *part;
    if !part.is_divisible() {
        division.unknown += share;
        return vec![0.0; part.tenants.len()];
    }
    match part.tenants.as_slice() {
        [] => {
            division.others += share * (others + unseen);
            division.idle += share * (1.0 - others - unseen).max(0.0);
            Vec::new()
        }
        [_] if part.assigned => {
            division.others += share * others;
            vec![share * (1.0 - others)]
        }
        all => {
            // Alone and of unknown share, it is the only one who has processes there.
            let used: Vec<f64> = all.iter().map(|used| used.unwrap_or(1.0)).collect();
            let active = others + unseen + used.iter().sum::<f64>();
            let being_there = (1.0 - active).max(0.0) / used.len() as f64;
            division.others += share * others;
            division.unknown += share * unseen;
            used.iter().map(|used| share * (used + being_there)).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn whole(tenants: &[Option<f64>], others: f64) -> Part {
        let tenants = tenants.to_vec();
        let foreign = others > 0.0;
        Part {
            size: 1.0,
            activity: Some(0.5),
            tenants,
            others,
            unseen: 0.0,
            foreign,
            assigned: true,
        }
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    fn total(division: &Division) -> f64 {
        let tenants: f64 = division.tenants.iter().flatten().sum();
        tenants + division.idle + division.unknown + division.others
    }

    #[test]
    fn one_who_holds_a_board_has_all_of_it_also_when_idle() {
        assert_eq!(divide(&[whole(&[Some(0.2)], 0.0)]).tenants, [[1.0]]);
        assert_eq!(divide(&[whole(&[None], 0.0)]).tenants, [[1.0]]);
        // But for what is known to be others'.
        let division = divide(&[whole(&[None], 0.25)]);
        assert_eq!(
            (division.tenants[0][0].to_bits(), division.others.to_bits()),
            (0.75f64.to_bits(), 0.25f64.to_bits())
        );
    }

    #[test]
    fn a_board_that_nobody_holds_is_idle_but_for_what_runs_there() {
        let division = divide(&[whole(&[], 0.25)]);
        assert!(close(division.idle, 0.75) && close(division.others, 0.25), "{division:?}");
    }

    #[test]
    fn sharers_have_what_they_use_and_equal_parts_of_the_rest() {
        let division = divide(&[whole(&[Some(0.6), Some(0.2)], 0.0)]);
        let [shares] = division.tenants.as_slice() else { panic!("{division:?}") };
        assert!(close(shares[0], 0.7) && close(shares[1], 0.3), "{division:?}");
        let division = divide(&[whole(&[Some(0.0), Some(0.0)], 0.0)]);
        assert_eq!(division.tenants, [[0.5, 0.5]]);
    }

    /// Users and the like hold nothing: who has an idle process there does not pay for others.
    #[test]
    fn one_who_is_there_by_its_processes_has_what_they_use_and_what_nobody_does() {
        let there = |own, others, unseen| Part {
            unseen,
            foreign: others + unseen > 0.0,
            assigned: false,
            ..whole(&[own], others)
        };
        let division = divide(&[there(Some(0.1), 0.6, 0.2)]);
        assert!(close(division.tenants[0][0], 0.2), "{division:?}");
        assert!(close(division.others, 0.6) && close(division.unknown, 0.2), "{division:?}");
        assert_eq!(divide(&[there(None, 0.0, 0.0)]).tenants, [[1.0]]);
        let division = divide(&[Part { foreign: true, ..there(None, 0.0, 0.0) }]);
        assert_eq!(division.unknown.to_bits(), 1f64.to_bits());
    }

    #[test]
    fn a_share_that_is_not_known_is_nobodys() {
        let division = divide(&[whole(&[Some(0.6), None], 0.0)]);
        assert_eq!(
            (division.tenants, division.unknown.to_bits()),
            (vec![vec![0.0, 0.0]], 1f64.to_bits())
        );
    }

    #[test]
    fn instances_have_by_slices_and_activity() {
        let part = |slices: f64, activity| Part {
            size: slices / 7.0,
            activity,
            tenants: vec![None],
            others: 0.0,
            unseen: 0.0,
            foreign: false,
            assigned: true,
        };
        // Busy 3 slices, idle 2, 2 not cut: A = 3/7.
        let division = divide(&[part(3.0, Some(1.0)), part(2.0, Some(0.0))]);
        let active = 3.0 / 7.0;
        assert!(close(division.tenants[0][0], 3.0 / 7.0 * (2.0 - active)), "{division:?}");
        assert!(close(division.tenants[1][0], 2.0 / 7.0 * (1.0 - active)), "{division:?}");
        assert!(close(division.idle, 2.0 / 7.0 * (1.0 - active)), "{division:?}");
        // Without activity, slices alone.
        let division = divide(&[part(3.0, None), part(2.0, Some(1.0))]);
        assert!(close(division.tenants[0][0], 3.0 / 7.0), "{division:?}");
        assert!(close(division.idle, 2.0 / 7.0), "{division:?}");
    }

    fn any_part() -> impl Strategy<Value = Part> {
        let share = || 0.0..=1.0;
        let tenants = prop::collection::vec(prop::option::weighted(0.9, share()), 0..4);
        let shares = (share(), share());
        let known = prop::option::weighted(0.9, share());
        (0.0..=0.6, known, tenants, shares, any::<(bool, bool)>()).prop_map(
            |(size, activity, mut tenants, (mut others, mut unseen), (foreign, assigned))| {
                // As the caller scales them.
                let all = others + unseen + tenants.iter().flatten().sum::<f64>();
                if all > 1.0 {
                    others /= all;
                    unseen /= all;
                    tenants.iter_mut().flatten().for_each(|used| *used /= all);
                }
                let foreign = foreign || others + unseen > 0.0;
                Part { size, activity, tenants, others, unseen, foreign, assigned }
            },
        )
    }

    proptest! {
        #[test]
        fn nothing_is_lost_or_made(parts in prop::collection::vec(any_part(), 0..5)) {
            let division = divide(&parts);
            prop_assert!(close(total(&division), 1.0), "{division:?}");
            let shares = division.tenants.iter().flatten();
            prop_assert!(shares.copied().all(|share| share >= -1e-12));
            prop_assert!(division.idle >= -1e-12 && division.others >= 0.0);
        }
    }
}
