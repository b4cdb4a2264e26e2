//! Counters files: what is accepted, what is refused and in which words.
#![expect(clippy::panic, clippy::unwrap_used, reason = "test helpers fail the test")]

use nvml_exporter::catalogue::docs::counters_line;
use nvml_exporter::catalogue::{
    Kind, MetricNames, Parsed, Row, Selection, default_selection, fields, parse,
};
use proptest::prelude::*;

fn parsed(text: &str, names: MetricNames) -> Parsed {
    parse(text, "counters.csv", names).unwrap_or_else(|errors| panic!("{errors:?}"))
}

fn legacy(text: &str) -> Parsed {
    parsed(text, MetricNames::Legacy)
}

fn errors(text: &str) -> Vec<String> {
    let errors = parse(text, "counters.csv", MetricNames::Legacy).unwrap_err();
    errors.iter().map(ToString::to_string).collect()
}

fn names(rows: &[Row]) -> Vec<&str> {
    rows.iter().map(|row| &*row.name).collect()
}

#[test]
fn a_line_gives_name_type_and_help_as_typed() {
    let Parsed { selection, warnings, skipped } = legacy(
        "# DCGM_FI_DEV_SM_CLOCK, gauge, off\r\n\r\n\
         DCGM_FI_DEV_DEC_UTIL , gauge,  blanks around \r\n\
         dcgm_gpu_temp, untyped,\"text, with \"\"comma\"\"\"\r\n\
         DCGM_FI_DEV_CLOCK_THROTTLE_REASONS,counter,\r\n\
         DCGM_FI_DRIVER_VERSION, label, x",
    );
    assert_eq!((warnings.len(), skipped.len()), (0, 0));
    let rows: Vec<_> =
        selection.rows.iter().map(|row| (row.field.id, &*row.name, row.kind, &*row.help)).collect();
    assert_eq!(
        rows,
        [
            (112, "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", Kind::Counter, ""),
            (207, "DCGM_FI_DEV_DEC_UTIL", Kind::Gauge, "blanks around"),
            (150, "dcgm_gpu_temp", Kind::Untyped, "text, with \"comma\""),
        ]
    );
    assert_eq!(names(&selection.labels), ["DCGM_FI_DRIVER_VERSION"]);
}

#[test]
fn every_bad_line_is_reported_with_what_is_allowed() {
    let found = errors(
        "DCGM_FI_DEV_GPU_TMP, gauge, a\n\
         DCGM_FI_DEV_SM_CLOCK, gage, b\n\
         DCGM_FI_DEV_SM_CLOCK, Gauge, b\n\
         DCGM_FI_DEV_SM_CLOCK, histogram, b\n\
         DCGM_FI_DEV_SM_CLOCK, gauge, one, two\n\
         DCGM_FI_DEV_SM_CLOCK, gauge\n\
         DCGM_FI_DEV_SM_CLOCK, gauge, \"one, two\"\n\
         DCGM_FI_DEV_SM_CLOCK, gauge,\"one\" two\n\
         \x20# DCGM_FI_DEV_SM_CLOCK, gauge, b\n\
         DCGM_FI_DEV_SM_CLOCK,\tgauge, tabs are not trimmed\n\
         DCGM_EXP_XID_ERRORS_COUNTXXX, summary, b\n\
         nonsense_of_some_kind, gauge, b\n\
         \x20\n\
         DCGM_FI_DEV_SM_CLOCK, gauge,\"open\n\
         DCGM_FI_DEV_GPU_TEMP, gauge, good\n",
    );
    let allowed = "allowed types: gauge, counter, label, untyped";
    assert_eq!(
        found,
        [
            "counters.csv:1: unknown field \"DCGM_FI_DEV_GPU_TMP\"; did you mean DCGM_FI_DEV_GPU_TEMP?".into(),
            format!("counters.csv:2: \"DCGM_FI_DEV_SM_CLOCK\": type \"gage\" cannot be served; {allowed}; did you mean gauge?"),
            format!("counters.csv:3: \"DCGM_FI_DEV_SM_CLOCK\": type \"Gauge\" cannot be served; {allowed}; did you mean gauge?"),
            format!("counters.csv:4: \"DCGM_FI_DEV_SM_CLOCK\": type \"histogram\" cannot be served; {allowed}"),
            "counters.csv:5: \"DCGM_FI_DEV_SM_CLOCK\": expected 3 columns (name, type, help), found 4; a help text with a comma must be quoted, as in NAME, gauge,\"one, two\"".into(),
            "counters.csv:6: \"DCGM_FI_DEV_SM_CLOCK\": expected 3 columns (name, type, help), found 2".into(),
            "counters.csv:7: a quote inside an unquoted column; a quote must follow its comma directly, as in NAME, gauge,\"help\"".into(),
            "counters.csv:8: text after a closing quote; a quote within a quoted column is written twice".into(),
            "counters.csv:9: unknown field \"# DCGM_FI_DEV_SM_CLOCK\"; the # of a comment must be the first character of its line".into(),
            format!("counters.csv:10: \"DCGM_FI_DEV_SM_CLOCK\": type \"\\tgauge\" cannot be served; {allowed}; did you mean gauge?"),
            "counters.csv:11: unknown field \"DCGM_EXP_XID_ERRORS_COUNTXXX\"; did you mean DCGM_EXP_XID_ERRORS_COUNT?".into(),
            format!("counters.csv:11: \"DCGM_EXP_XID_ERRORS_COUNTXXX\": type \"summary\" cannot be served; {allowed}"),
            "counters.csv:12: unknown field \"nonsense_of_some_kind\"; docs/metrics.md lists the fields".into(),
            "counters.csv:13: \"\": expected 3 columns (name, type, help), found 1".into(),
            "counters.csv:14: a quoted column is never closed".into(),
        ] as [String; 15]
    );
}

#[test]
fn an_empty_file_is_an_error_and_one_of_comments_a_warning() {
    for text in ["", "\n \r\n", "\u{feff}"] {
        assert!(parse(text, "counters.csv", MetricNames::Legacy).is_err(), "{text:?}");
    }
    assert_eq!(
        errors(""),
        ["counters.csv:1: the file is empty; it must list one field a line as name, type, help"]
    );
    assert_eq!(legacy("# all off\n").warnings, ["counters.csv: none of its lines gives a metric"]);
}

#[test]
fn a_byte_order_mark_is_not_part_of_the_first_name() {
    assert_eq!(
        names(&legacy("\u{feff}DCGM_FI_DEV_GPU_TEMP, gauge, a").selection.rows),
        ["DCGM_FI_DEV_GPU_TEMP"]
    );
}

#[test]
fn the_first_of_two_lines_counts() {
    let Parsed { selection, warnings, .. } = legacy(
        "DCGM_FI_DEV_GPU_TEMP, gauge, first\nDCGM_FI_DEV_GPU_TEMP, counter, second\ndcgm_gpu_temp, gauge, third",
    );
    let helps: Vec<_> = selection.rows.iter().map(|row| &*row.help).collect();
    assert_eq!(helps, ["first", "third"]);
    assert_eq!(
        warnings,
        [
            "counters.csv:2: DCGM_FI_DEV_GPU_TEMP is listed already on line 1; this line has no effect"
        ]
    );
}

#[test]
fn names_without_a_value_are_collected_by_reason() {
    let Parsed { selection, skipped, .. } = legacy(
        "DCGM_FI_UNKNOWN, gauge, a\n\
         DCGM_FI_DEV_NVSWITCH_LINK_ID, gauge, a\n\
         DCGM_FI_DEV_PCIE_TX_THROUGHPUT, counter, a\n\
         DCGM_FI_DEV_NVSWITCH_UUID, label, a\n\
         nvml_clocks_event_reason, label, a\n\
         DCGM_FI_DEV_NVLINK_GET_STATE, label, a\n\
         DCGM_FI_DEV_GPU_TEMP, gauge, a",
    );
    assert_eq!(names(&selection.rows), ["DCGM_FI_DEV_GPU_TEMP"]);
    assert!(selection.labels.is_empty());
    let mut lists: Vec<_> = skipped.iter().map(|(_, names)| names.join(" ")).collect();
    lists.sort();
    assert_eq!(
        lists,
        [
            "DCGM_FI_DEV_NVSWITCH_LINK_ID DCGM_FI_DEV_NVSWITCH_UUID",
            "DCGM_FI_DEV_PCIE_TX_THROUGHPUT",
            "DCGM_FI_UNKNOWN",
            "nvml_clocks_event_reason DCGM_FI_DEV_NVLINK_GET_STATE",
        ]
    );
    let pcie = skipped.iter().find(|(_, names)| names[0].contains("PCIE")).unwrap();
    assert!(pcie.0.contains("nvml_pcie_tx_bytes_total"), "{}", pcie.0);
}

#[test]
fn a_family_of_several_rows_expands_and_sorts_by_label() {
    let Parsed { selection, .. } =
        legacy("nvml_processes, gauge, a\nDCGM_FI_DEV_GPU_TEMP, gauge, b");
    let rows: Vec<_> = selection.rows.iter().map(|row| (&*row.name, row.field.label)).collect();
    assert_eq!(
        rows,
        [
            ("DCGM_FI_DEV_GPU_TEMP", None),
            ("nvml_processes", Some(("type", "compute"))),
            ("nvml_processes", Some(("type", "graphics"))),
            ("nvml_processes", Some(("type", "mps"))),
        ]
    );
}

#[test]
fn text_typed_as_a_number_is_an_info_series() {
    let Parsed { selection, .. } = legacy("DCGM_FI_DEV_SERIAL, gauge, a");
    assert!(selection.rows[0].field.is_text());
    assert_eq!(selection.rows[0].kind, Kind::Gauge);
}

const NAMED: &str = "DCGM_FI_DEV_SM_CLOCK, gauge, typed\n\
                     DCGM_FI_DEV_GPU_TEMP, gauge, typed\n\
                     DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL, counter, typed\n\
                     DCGM_FI_DEV_PSTATE, untyped, typed\n\
                     DCGM_FI_DRIVER_VERSION, label, typed\n\
                     nvml_nvlink_up, gauge, typed\n";

#[test]
fn new_names_come_with_their_own_unit_type_and_help() {
    let Parsed { selection, .. } = parsed(NAMED, MetricNames::Dcgm47);
    let rows: Vec<_> =
        selection.rows.iter().map(|row| (row.field.id, &*row.name, row.kind)).collect();
    assert_eq!(
        rows,
        [
            (190, "DCGM_FI_DEV_GPU_PSTATE", Kind::Untyped),
            (150, "DCGM_FI_DEV_GPU_TEMP_CELSIUS", Kind::Gauge),
            (1648, "DCGM_FI_DEV_NVLINK_THROUGHPUT_BYTES_PER_SECOND", Kind::Gauge),
            (1603, "DCGM_FI_DEV_SM_CLOCK_HERTZ", Kind::Gauge),
            (0, "nvml_nvlink_up", Kind::Gauge),
        ]
    );
    let helps: Vec<_> = selection.rows.iter().map(|row| &*row.help == row.field.help).collect();
    assert_eq!(helps, [true, true, true, true, false]);
    assert_eq!(names(&selection.labels), ["DCGM_FI_SYSTEM_DRIVER_VERSION"]);
}

#[test]
fn both_generations_of_names_stand_side_by_side() {
    let Parsed { selection, .. } = parsed(NAMED, MetricNames::Both);
    let old = legacy(NAMED).selection;
    let new = parsed(NAMED, MetricNames::Dcgm47).selection;
    let mut expected: Vec<_> = names(&old.rows).into_iter().chain(names(&new.rows)).collect();
    expected.sort_unstable();
    expected.dedup();
    assert_eq!(names(&selection.rows), expected);
    assert_eq!(
        names(&selection.labels),
        ["DCGM_FI_DRIVER_VERSION", "DCGM_FI_SYSTEM_DRIVER_VERSION"]
    );
}

#[test]
fn a_name_of_two_generations_means_what_the_naming_says() {
    let text = "DCGM_FI_DEV_GPU_UTIL_RATIO, gauge, a";
    let old = legacy(text);
    assert_eq!(old.selection.rows[0].field.id, 203);
    assert_eq!(
        old.warnings,
        [
            "counters.csv:1: DCGM_FI_DEV_GPU_UTIL_RATIO is served as DCGM 4.6 has it, field 203 in %; for DCGM 4.7's field 1613 in ratio use --metric-names dcgm47"
        ]
    );
    let new = parsed(text, MetricNames::Dcgm47);
    assert_eq!(new.selection.rows[0].field.id, 1613);
    assert!(new.warnings.is_empty());
}

#[test]
fn a_typed_name_stands_before_one_that_follows_from_another_line() {
    let text = "DCGM_FI_DEV_SM_CLOCK, gauge, old\nDCGM_FI_DEV_SM_CLOCK_HERTZ, untyped, typed\ndcgm_sm_clock, gauge, older";
    let Parsed { selection, .. } = parsed(text, MetricNames::Dcgm47);
    assert_eq!(names(&selection.rows), ["DCGM_FI_DEV_SM_CLOCK_HERTZ"]);
    assert_eq!(&*selection.rows[0].help, "typed");
}

/// The enabled lines of a file, by a reader that knows nothing of the product.
fn enabled(text: &str) -> Vec<(String, String)> {
    let mut lines: Vec<_> = text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .map(|line| {
            let mut columns = line.splitn(3, ',').map(|column| column.trim().to_owned());
            (columns.next().unwrap(), columns.next().unwrap())
        })
        .collect();
    lines.sort();
    lines.dedup();
    lines
}

/// All lines, the disabled ones with their `#` taken off.
fn all_on(text: &str) -> String {
    let on = |line: &str| match line.strip_prefix("# ") {
        Some(rest) if rest.contains(", ") && rest.to_lowercase().starts_with("dcgm_") => {
            rest.to_owned()
        }
        _ => line.to_owned(),
    };
    text.lines().map(|line| on(line) + "\n").collect()
}

#[test]
fn the_files_that_dcgm_exporter_ships_load_whole() {
    let files = [
        (include_str!("data/counters/default.csv"), 26),
        (include_str!("data/counters/dcp.csv"), 26),
        (include_str!("data/counters/legacy-1x.csv"), 20),
    ];
    for (text, served) in files {
        let Parsed { selection, skipped, .. } = legacy(text);
        assert_eq!(skipped, []);
        assert_eq!(selection.rows.len() + selection.labels.len(), served);
        let mut found: Vec<_> = selection
            .rows
            .iter()
            .chain(&selection.labels)
            .map(|row| (row.name.to_string(), row.kind.as_str().to_owned()))
            .collect();
        found.sort();
        assert_eq!(found, enabled(text));
    }
}

#[test]
fn they_load_with_every_line_enabled_too() {
    for (text, reasons) in [
        (include_str!("data/counters/default.csv"), 0),
        (include_str!("data/counters/dcp.csv"), 0),
        (include_str!("data/counters/legacy-1x.csv"), 0),
    ] {
        let all = all_on(text);
        let Parsed { selection, skipped, warnings } = legacy(&all);
        assert_eq!(skipped.len(), reasons, "{skipped:?}");
        // The PCIe pair is listed twice in each.
        assert_eq!(warnings.len(), 2, "{warnings:?}");
        let skipped: usize = skipped.iter().map(|(_, names)| names.len()).sum();
        let names: std::collections::HashSet<_> =
            enabled(&all).into_iter().map(|(name, _)| name).collect();
        assert_eq!(selection.rows.len() + selection.labels.len() + skipped, names.len());
    }
}

#[test]
fn our_own_file_selects_what_the_catalogue_enables() {
    let selection = default_selection(MetricNames::Legacy);
    let rows = selection.rows.len() + selection.labels.len();
    assert_eq!(rows, fields().filter(|row| row.enabled).count());
    for row in selection.rows.iter().chain(&selection.labels) {
        assert!(row.field.enabled, "{}", row.name);
        assert_eq!(
            (&*row.name, row.kind, &*row.help),
            (row.field.name, row.field.kind, row.field.help)
        );
    }
    let text = include_str!("../metrics.csv");
    let Parsed { warnings, skipped, .. } = legacy(text);
    assert_eq!((warnings.len(), skipped.len()), (0, 0), "{warnings:?} {skipped:?}");
    for names in [MetricNames::Dcgm47, MetricNames::Both] {
        assert!(!default_selection(names).rows.is_empty());
    }
}

fn rendered(selection: &Selection) -> String {
    let mut text = String::from("# rendered\n");
    let mut last = "";
    for row in selection.rows.iter().chain(&selection.labels).filter(|row| row.field.id != 1613) {
        if &*row.name != last {
            text.push_str(&counters_line(&row.name, row.kind, &row.help));
            text.push('\n');
        }
        last = &row.name;
    }
    text
}

prop_compose! {
    fn lines()(picks in prop::collection::vec((any::<prop::sample::Index>(), 0..4_usize, "[ -~]{0,20}"), 0..30)) -> String {
        let known: Vec<&str> = fields().flat_map(|row| std::iter::once(row.name).chain(row.spellings())).collect();
        let kinds = [Kind::Gauge, Kind::Counter, Kind::Untyped, Kind::Label];
        picks
            .into_iter()
            .map(|(at, kind, help)| counters_line(known[at.index(known.len())], kinds[kind], help.trim_matches(' ')) + "\n")
            .collect::<String>() + "# end\n"
    }
}

proptest! {
    #[test]
    fn what_a_file_selects_can_be_written_and_read_again(text in lines()) {
        let first = legacy(&text).selection;
        let again = legacy(&rendered(&first)).selection;
        let flat = |selection: &Selection| -> Vec<_> {
            let rows = selection.rows.iter().chain(&selection.labels);
            rows.map(|row| (std::ptr::from_ref(row.field), row.name.clone(), row.kind, row.help.clone())).collect()
        };
        prop_assert_eq!(flat(&first), flat(&again));
    }

    #[test]
    fn rows_are_sorted_in_every_naming(text in lines()) {
        for names in [MetricNames::Legacy, MetricNames::Dcgm47, MetricNames::Both] {
            let selection = parsed(&text, names).selection;
            let keys: Vec<_> = selection.rows.iter().map(|row| (row.name.clone(), row.field.label)).collect();
            prop_assert!(keys.is_sorted_by(|a, b| a < b), "{:?}", keys);
        }
    }

    #[test]
    fn no_text_makes_it_panic(text in any::<String>(), names in 0..3_usize) {
        let names = [MetricNames::Legacy, MetricNames::Dcgm47, MetricNames::Both][names];
        let _ = parse(&text, "counters.csv", names);
    }

    #[test]
    fn no_near_miss_makes_it_panic(text in "(DCGM_FI_DEV_(GPU|FB)_[A-Z]{0,5}|[a-z#\" ]{0,3}|,|, ?gauge|\r?\n|\"){0,40}") {
        if let Err(errors) = parse(&text, "counters.csv", MetricNames::Legacy) {
            for error in errors {
                prop_assert_eq!(error.to_string().lines().count(), 1);
            }
        }
    }
}
