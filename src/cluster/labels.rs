//! Pod labels and annotations as labels of series.

use std::collections::{BTreeMap, HashSet};

use regex::Regex;

/// What of a pod becomes labels.
#[derive(Debug, Clone, Default)]
pub struct LabelRules {
    /// Pod labels, and which.
    pub labels: Allowed,
    /// Annotations, and which.
    pub annotations: Allowed,
    /// The pod's owner.
    pub owners: bool,
    /// Further names that pod labels may not take: those of the counters file's label rows.
    pub reserved: Vec<String>,
}

/// Which keys pass.
#[derive(Debug, Clone, Default)]
pub enum Allowed {
    /// None.
    #[default]
    Nothing,
    /// Every one.
    All,
    /// Those that one of the patterns is found in.
    Matching(Vec<Regex>),
}

/// What one pod's labels came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Made {
    /// Names valid and distinct, sorted by name.
    pub(super) labels: Vec<(String, String)>,
    /// How many were left out for being too many or too long.
    pub(super) left_out: usize,
}

/// A pod adds no more labels than this to its series.
const LABELS_MAX: usize = 32;

/// A longer value, in bytes, is left out: annotations can hold whole documents.
const VALUE_MAX: usize = 1024;

/// Names that devices, the attribution or Prometheus use.
const RESERVED: &[&str] = &[
    "GPU_CI_ID",
    "GPU_I_ID",
    "GPU_I_PROFILE",
    "Hostname",
    "UUID",
    "clock_event",
    "container",
    "container_name",
    "device",
    "err_code",
    "err_msg",
    "gpu",
    "gpu_uuid",
    "hostname",
    "hpc_job",
    "instance",
    "job",
    "le",
    "model_name",
    "modelName",
    "namespace",
    "node",
    "nvlink",
    "owner_kind",
    "owner_name",
    "pci_bus_id",
    "pod",
    "pod_name",
    "pod_namespace",
    "pod_uid",
    "quantile",
    "reason",
    "resource",
    "uuid",
    "vgpu",
    "window_size_in_ms",
    "xid",
];

impl Allowed {
    /// What a switch and its patterns allow, and the patterns that are wrong. Without patterns
    /// all pass; with patterns of which none is right, none does.
    #[must_use]
    pub fn by(patterns: &[String], all_without: bool) -> (Self, Vec<String>) {
        if patterns.is_empty() {
            return (if all_without { Self::All } else { Self::Nothing }, Vec::new());
        }
        let (good, bad): (Vec<_>, Vec<_>) = patterns
            .iter()
            .map(|text| Regex::new(text).map_err(|_| text.clone()))
            .partition(Result::is_ok);
        let good: Vec<Regex> = good.into_iter().filter_map(Result::ok).collect();
        let allowed = if good.is_empty() { Self::Nothing } else { Self::Matching(good) };
        (allowed, bad.into_iter().filter_map(Result::err).collect())
    }

    fn passes(&self, key: &str) -> bool {
        match self {
            Self::Nothing => false,
            Self::All => true,
            Self::Matching(patterns) => patterns.iter().any(|pattern| pattern.is_match(key)),
        }
    }
}

impl LabelRules {
    /// The labels of one pod.
    pub(super) fn make(
        &self,
        labels: &BTreeMap<String, String>,
        annotations: &BTreeMap<String, String>,
        owner: Option<(String, String)>,
    ) -> Made {
        let mut names = Names { rules: self, taken: HashSet::new() };
        let mut made = Made::default();
        let passing = |map: &'_ BTreeMap<String, String>, allowed: &Allowed, prefix: &str| {
            map.iter()
                .filter(|(key, _)| allowed.passes(key))
                .map(|(key, value)| (sanitised(key, prefix), value.clone()))
                .collect::<Vec<_>>()
        };
        let wanted = passing(labels, &self.labels, "").into_iter().chain(passing(
            annotations,
            &self.annotations,
            "annotation_",
        ));
        for (name, value) in wanted {
            if made.labels.len() == LABELS_MAX || value.len() > VALUE_MAX {
                made.left_out += 1;
                continue;
            }
            made.labels.push((names.free(&name), value));
        }
        if let Some((kind, name)) = owner.filter(|_| self.owners) {
            made.labels.push(("owner_kind".to_owned(), kind));
            made.labels.push(("owner_name".to_owned(), name));
        }
        made.labels.sort_unstable();
        made
    }

    fn is_reserved(&self, name: &str) -> bool {
        name.starts_with("__")
            || name.starts_with("dra_")
            || RESERVED.contains(&name)
            || self.reserved.iter().any(|reserved| reserved == name)
    }
}

/// Names given so far to one pod's labels.
struct Names<'a> {
    rules: &'a LabelRules,
    taken: HashSet<String>,
}

impl Names<'_> {
    fn free(&mut self, name: &str) -> String {
        let reserved = self.rules.is_reserved(name);
        let mut free = if reserved { format!("pod_label_{name}") } else { name.to_owned() };
        let mut number = 0;
        while !self.taken.insert(free.clone()) {
            number += 1;
            free = format!("pod_label_{name}_conflict{number}");
        }
        free
    }
}

/// A valid label name.
fn sanitised(key: &str, prefix: &str) -> String {
    let valid = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let name: String = prefix.chars().chain(key.chars()).map(valid).collect();
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return format!("_{name}");
    }
    name
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn made(rules: &LabelRules, labels: &[(&str, &str)]) -> Vec<(String, String)> {
        rules.make(&map(labels), &map(&[]), None).labels
    }

    fn all() -> LabelRules {
        LabelRules { labels: Allowed::All, ..LabelRules::default() }
    }

    fn pairs(labels: &[(&str, &str)]) -> Vec<(String, String)> {
        labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn case_72_names_are_made_valid() {
        let given = [("app.kubernetes.io/name", "a"), ("key-with-dashes", "b"), ("9lives", "c")];
        let names = [("_9lives", "c"), ("app_kubernetes_io_name", "a"), ("key_with_dashes", "b")];
        assert_eq!(made(&all(), &given), pairs(&names));
    }

    #[test]
    fn case_73_patterns_are_found_anywhere_in_the_key() {
        let given = [("app", "1"), ("my-app", "2"), ("team", "3"), ("tier", "4")];
        for (patterns, kept, wrong) in [
            (vec!["^app$"], vec![("app", "1")], vec![]),
            (vec!["^te"], vec![("team", "3")], vec![]),
            (vec!["app|tier"], vec![("app", "1"), ("my_app", "2"), ("tier", "4")], vec![]),
            (vec!["^team$", "("], vec![("team", "3")], vec!["("]),
            (vec!["("], vec![], vec!["("]),
            (vec!["none"], vec![], vec![]),
        ] {
            let patterns: Vec<String> = patterns.into_iter().map(str::to_owned).collect();
            let (labels, bad) = Allowed::by(&patterns, true);
            assert_eq!(bad, wrong);
            let rules = LabelRules { labels, ..LabelRules::default() };
            assert_eq!(made(&rules, &given), pairs(&kept), "{patterns:?}");
        }
    }

    #[test]
    fn names_in_use_and_names_that_meet_are_told_apart() {
        let mut rules = all();
        rules.reserved = vec!["DCGM_FI_DRIVER_VERSION".to_owned()];
        let given = [
            ("DCGM_FI_DRIVER_VERSION", "0"),
            ("a-b", "1"),
            ("a.b", "2"),
            ("a_b", "3"),
            ("gpu", "4"),
            ("dra.x", "5"),
        ];
        assert_eq!(
            made(&rules, &given),
            pairs(&[
                ("a_b", "1"),
                ("pod_label_DCGM_FI_DRIVER_VERSION", "0"),
                ("pod_label_a_b_conflict1", "2"),
                ("pod_label_a_b_conflict2", "3"),
                ("pod_label_dra_x", "5"),
                ("pod_label_gpu", "4"),
            ])
        );
    }

    #[test]
    fn annotations_pass_only_by_a_pattern_and_long_values_do_not() {
        let annotations = map(&[("team/cost-centre", "42"), ("note", &"x".repeat(2000))]);
        assert_eq!(all().make(&map(&[]), &annotations, None), Made::default());
        let (allowed, _) = Allowed::by(&["team|note".to_owned()], false);
        let rules = LabelRules { annotations: allowed, ..LabelRules::default() };
        let made = rules.make(&map(&[]), &annotations, None);
        assert_eq!(made.labels, pairs(&[("annotation_team_cost_centre", "42")]));
        assert_eq!(made.left_out, 1);
    }

    #[test]
    fn a_pod_with_very_many_labels_gives_the_first_of_them() {
        let labels: BTreeMap<_, _> =
            (0..50).map(|at| (format!("label{at:02}"), String::new())).collect();
        let made = all().make(&labels, &map(&[]), None);
        assert_eq!((made.labels.len(), made.left_out), (LABELS_MAX, 50 - LABELS_MAX));
    }

    proptest! {
        #[test]
        fn names_are_valid_distinct_and_not_in_use(
            labels in prop::collection::btree_map("[ -~é]{0,12}|gpu|pod|a[-._]b", ".{0,4}", 0..12),
        ) {
            let made = all().make(&labels, &BTreeMap::new(), None).labels;
            prop_assert_eq!(made.len(), labels.len());
            let names: HashSet<_> = made.iter().map(|(name, _)| name).collect();
            prop_assert_eq!(names.len(), made.len());
            for (name, _) in &made {
                prop_assert!(!all().is_reserved(name), "{}", name);
                prop_assert!(name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'));
                prop_assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'));
            }
        }
    }
}
