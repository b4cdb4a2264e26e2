//! The table of fields as a whole: what must be true of every row.
#![expect(clippy::panic, reason = "test helpers fail the test")]

use std::collections::{HashMap, HashSet};

use nvml_exporter::catalogue::names::{nearest, resolve, successor};
use nvml_exporter::catalogue::pick;
use nvml_exporter::catalogue::{
    Call, Entity, Field, Kind, MetricNames, Number, Numbers, Read, Scope, Value, fields,
};

fn served() -> impl Iterator<Item = &'static Field> {
    fields().filter(|row| !matches!(row.read, Read::Unavailable(_)))
}

fn field(name: &str) -> &'static Field {
    fields().find(|row| row.name == name).unwrap_or_else(|| panic!("no row {name}"))
}

fn numbers(values: &[i64]) -> Numbers {
    let mut numbers = Numbers::default();
    for (slot, value) in numbers.iter_mut().zip(values) {
        *slot = Some(Number::Int(*value));
    }
    numbers
}

#[test]
fn every_name_of_dcgm_resolves_to_the_row_of_its_id() {
    let mut known = 0;
    for line in include_str!("data/counters/names.txt").lines().filter(|l| !l.starts_with('#')) {
        let mut words = line.split(' ');
        let id: u16 = words.next().unwrap().parse().unwrap();
        for name in words {
            let meaning = resolve(name, MetricNames::Legacy).unwrap_or_else(|| panic!("{name}"));
            assert_eq!(meaning.rows.len(), 1, "{name}");
            assert_eq!(meaning.rows[0].id, id, "{name}");
        }
        known += 1;
    }
    assert_eq!(known, 657);
}

#[test]
fn names_are_unique_but_for_families_with_a_fixed_label() {
    let mut families: HashMap<&str, Vec<&Field>> = HashMap::new();
    for row in fields() {
        families.entry(row.name).or_default().push(row);
    }
    for (name, rows) in families {
        let labels: HashSet<_> = rows.iter().map(|row| row.label).collect();
        assert_eq!(labels.len(), rows.len(), "{name}");
        if let [first, others @ ..] = rows.as_slice() {
            for row in others {
                assert!(
                    first.label.is_some() && row.label.map(|l| l.0) == first.label.map(|l| l.0),
                    "{name}"
                );
                assert_eq!(
                    (first.kind, first.unit, first.entity, first.help, first.enabled),
                    (row.kind, row.unit, row.entity, row.help, row.enabled),
                    "{name}"
                );
            }
        }
    }
}

#[test]
fn ids_are_dcgms_and_unique() {
    let mut seen = HashMap::new();
    for row in fields() {
        let own = row.name.starts_with("nvml_");
        assert_eq!(row.id == 0, own || row.name == "DCGM_FI_UNKNOWN", "{}", row.name);
        if row.id != 0 {
            assert_eq!(seen.insert(row.id, row.name), None, "{}", row.name);
        }
    }
}

#[test]
fn a_spelling_belongs_to_one_row() {
    let mut seen = HashMap::new();
    for row in fields() {
        for spelling in row.spellings() {
            assert_eq!(seen.insert(spelling, row.name), None, "{spelling}");
        }
    }
    // The only names that DCGM 4.6 and 4.7 give to different fields.
    let mut clashes: Vec<_> =
        fields().map(|row| row.name).filter(|name| seen.contains_key(name)).collect();
    clashes.sort_unstable();
    assert_eq!(clashes, ["DCGM_FI_DEV_GPU_UTIL_RATIO"]);
}

#[test]
fn successors_measure_the_same_thing() {
    for row in served() {
        let Some((name, next)) = successor(row) else { continue };
        assert!(name.starts_with("DCGM_FI_"), "{name}");
        assert_eq!(next.entity, row.entity, "{name}");
        assert!(next.successor.is_none() || std::ptr::eq(next, row), "{name} is renamed again");
        let same = match (row.read, next.read) {
            (Read::Call(a, _), Read::Call(b, _)) => a == b,
            (Read::FieldValue(a, _), Read::FieldValue(b, _)) => a == b,
            (Read::Rate(a), Read::Rate(b)) => (a.tx, a.rx, a.scope) == (b.tx, b.rx, b.scope),
            (Read::Gpm(a, _), Read::Gpm(b, _)) => a == b,
            (Read::Fact(a), Read::Fact(b)) => a == b,
            (Read::LastXid, Read::LastXid) => true,
            _ => false,
        };
        assert!(same, "{} and {name} have different sources", row.name);
    }
}

#[test]
fn own_names_end_in_a_base_unit_or_are_plain_counts() {
    const UNITS: [&str; 8] =
        ["_bytes", "_celsius", "_fps", "_hertz", "_ratio", "_seconds", "_watts", "_joules"];
    const PLAIN: [&str; 7] =
        ["_sessions", "_processes", "_nvlinks", "_up", "_pending", "_reason", "_state"];
    for row in fields().filter(|row| row.id == 0 && row.name != "DCGM_FI_UNKNOWN") {
        assert_eq!(row.name.ends_with("_total"), row.kind == Kind::Counter, "{}", row.name);
        let stem = row.name.trim_end_matches("_total");
        let known = UNITS.iter().chain(&PLAIN).any(|end| stem.ends_with(end));
        assert!(known || row.kind == Kind::Counter, "{}", row.name);
        assert!(row.name.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{}", row.name);
    }
}

#[test]
fn help_is_one_sentence_with_its_unit() {
    const WORDS: [(&str, &str); 14] = [
        ("MHz", "MHz"),
        ("Hz", "hertz"),
        ("C", "egrees Celsius"),
        ("W", "watts"),
        ("mJ", "millijoules"),
        ("J", "joules"),
        ("ns", "nanoseconds"),
        ("s", "seconds"),
        ("MiB", "MiB"),
        ("%", "percent"),
        ("ratio", "ratio"),
        ("1000 KiB/s", "thousands of KiB per second"),
        ("bytes/s", "bytes per second"),
        ("bytes", "ytes"),
    ];
    for row in served() {
        let (name, help) = (row.name, row.help);
        assert!(help.ends_with('.') && !help.contains(". "), "{name}: {help}");
        assert!(help.starts_with(|c: char| c.is_uppercase()), "{name}: {help}");
        assert!(!help.contains(['\n', '\\', '"']), "{name}: {help}");
        assert!(!row.unit.is_empty(), "{name}");
        if let Some((_, word)) = WORDS.iter().find(|(unit, _)| *unit == row.unit) {
            assert!(help.contains(word), "{name}: {help}");
        }
    }
}

#[test]
fn a_label_is_text_and_text_is_a_label() {
    for row in fields() {
        assert_eq!(row.kind == Kind::Label, row.is_text(), "{}", row.name);
        assert_ne!(row.kind, Kind::Untyped, "{}", row.name);
    }
}

#[test]
fn reasons_are_a_clause_without_a_full_stop() {
    for row in fields() {
        if let Read::Unavailable(reason) = row.read {
            assert!(!row.enabled, "{}", row.name);
            assert!(
                !reason.is_empty() && !reason.ends_with('.') && !reason.contains('\n'),
                "{reason}"
            );
        }
    }
}

#[test]
fn rows_of_links_read_each_link_and_others_do_not() {
    for row in served() {
        let each = match row.read {
            Read::Call(Call::EachNvLinkErrorCounter(_) | Call::EachNvLinkState, _) => true,
            Read::FieldValue(read, _) => read.scope == Scope::EachLink,
            Read::Rate(rate) => rate.scope == Scope::EachLink,
            Read::Gpm(metric, _) => metric.is_each(),
            _ => false,
        };
        assert_eq!(row.entity == Entity::Link, each, "{}", row.name);
    }
}

#[test]
fn what_dcgm_exporter_serves_by_default_is_on() {
    for name in [
        "DCGM_FI_DRIVER_VERSION",
        "DCGM_FI_DEV_SM_CLOCK",
        "DCGM_FI_DEV_MEM_CLOCK",
        "DCGM_FI_DEV_MEMORY_TEMP",
        "DCGM_FI_DEV_GPU_TEMP",
        "DCGM_FI_DEV_POWER_USAGE",
        "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
        "DCGM_FI_DEV_PCIE_REPLAY_COUNTER",
        "DCGM_FI_DEV_GPU_UTIL",
        "DCGM_FI_DEV_MEM_COPY_UTIL",
        "DCGM_FI_DEV_ENC_UTIL",
        "DCGM_FI_DEV_DEC_UTIL",
        "DCGM_FI_DEV_XID_ERRORS",
        "DCGM_FI_DEV_FB_FREE",
        "DCGM_FI_DEV_FB_USED",
        "DCGM_FI_DEV_FB_RESERVED",
        "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS",
        "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS",
        "DCGM_FI_DEV_ROW_REMAP_FAILURE",
        "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL",
        "DCGM_FI_DEV_VGPU_LICENSE_STATUS",
        "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
        "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
        "DCGM_FI_PROF_DRAM_ACTIVE",
        "DCGM_FI_PROF_PCIE_TX_BYTES",
        "DCGM_FI_PROF_PCIE_RX_BYTES",
    ] {
        assert!(field(name).enabled, "{name}");
    }
}

#[test]
fn conversions_are_dcgms() {
    use Value::{Float, Int};
    const MIB: i64 = 1 << 20;
    let gib80 = [80 * 1024 * MIB, 70 * 1024 * MIB - 1, 9 * 1024 * MIB, 1024 * MIB];
    for (name, read, expected) in [
        ("DCGM_FI_DEV_SM_CLOCK", &[1980][..], Some(Int(1980))),
        ("DCGM_FI_DEV_SM_CLOCK_HERTZ", &[1980], Some(Int(1_980_000_000))),
        ("DCGM_FI_DEV_POWER_USAGE", &[71_512], Some(Float(71.512))),
        ("DCGM_FI_DEV_POWER_MGMT_LIMIT", &[700_999], Some(Float(700.0))),
        ("DCGM_FI_DEV_POWER_MGMT_LIMIT_MAX", &[100_000, 700_000], Some(Float(700.0))),
        ("DCGM_FI_DEV_GPU_TEMP", &[41], Some(Int(41))),
        ("DCGM_FI_DEV_GPU_TEMP", &[201], None),
        ("DCGM_FI_DEV_GPU_TEMP_LIMIT", &[-3], Some(Int(-3))),
        ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", &[1_500], Some(Int(1_500))),
        ("DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL", &[1_500], Some(Float(1.5))),
        ("DCGM_FI_DEV_FB_FREE", &gib80, Some(Int(70 * 1024 - 1))),
        ("DCGM_FI_DEV_FB_USED_BYTES", &gib80, Some(Int(9 * 1024 * MIB))),
        ("DCGM_FI_DEV_FB_USED_PERCENT", &gib80, Some(Float(9.0 / 79.0))),
        ("DCGM_FI_DEV_FB_USED_PERCENT", &[0, 0, 0], None),
        ("DCGM_FI_DEV_FB_RESERVED", &gib80[..3], None),
        ("DCGM_FI_DEV_GPU_UTIL", &[97, 12], Some(Int(97))),
        ("DCGM_FI_DEV_MEMORY_UTIL_RATIO", &[97, 12], Some(Float(0.12))),
        ("DCGM_FI_DEV_COMPUTE_MODE", &[0], Some(Int(0))),
        ("DCGM_FI_DEV_COMPUTE_MODE", &[2], Some(Int(1))),
        ("DCGM_FI_DEV_COMPUTE_MODE", &[3], Some(Int(2))),
        ("DCGM_FI_DEV_FABRIC_MANAGER_STATUS", &[2, 0], Some(Int(2))),
        ("DCGM_FI_DEV_FABRIC_MANAGER_STATUS", &[3, 0], Some(Int(3))),
        ("DCGM_FI_DEV_FABRIC_MANAGER_STATUS", &[3, 999], Some(Int(4))),
        ("DCGM_FI_DEV_FABRIC_MANAGER_ERROR_CODE", &[2, 0], None),
        ("DCGM_FI_DEV_FABRIC_MANAGER_ERROR_CODE", &[3, 999], Some(Int(999))),
        ("DCGM_FI_DEV_NVLINK_COUNT_SYMBOL_BER_FLOAT", &[0xfff], Some(Float(0.0))),
        ("DCGM_FI_DEV_NVLINK_COUNT_SYMBOL_BER_FLOAT", &[0x50f], Some(Float(5e-15))),
        ("nvml_nvlink_tx_bytes_total", &[3], Some(Int(3072))),
        ("nvml_pcie_tx_bytes_total", &[3], Some(Int(3))),
        ("nvml_encoder_latency_seconds", &[1, 30, 2_500], Some(Float(0.0025))),
        ("DCGM_FI_DEV_PERSISTENCE_MODE", &[], None),
    ] {
        let close = match (field(name).convert(&numbers(read)), expected) {
            (Some(Float(found)), Some(Float(expected))) => {
                (found - expected).abs() <= expected * 1e-12
            }
            (found, expected) => found == expected,
        };
        assert!(close, "{name} of {read:?} is {:?}", field(name).convert(&numbers(read)));
    }
}

#[test]
fn each_reason_has_its_bit() {
    let reasons: Vec<_> = fields()
        .filter(|row| row.name == "nvml_clocks_event_reason")
        .map(|row| (row.label.unwrap().1, row.convert(&numbers(&[0b1_0000_0101]))))
        .filter(|(_, value)| *value == Some(Value::Int(1)))
        .map(|(reason, _)| reason)
        .collect();
    assert_eq!(reasons, ["gpu_idle", "power_cap", "display_clocks"]);
}

#[test]
fn rates_are_cut_like_dcgms_or_exact() {
    use nvml_exporter::catalogue::call::RateUnit::{Bytes, ThousandKib};
    assert_eq!(pick::rate(59_999, 2.0, ThousandKib), Some(Value::Int(29)));
    assert_eq!(pick::rate(3_000, 2.0, Bytes), Some(Value::Float(1_536_000.0)));
    assert_eq!(pick::rate(0, 2.0, ThousandKib), Some(Value::Int(0)));
    assert_eq!(pick::rate(-1, 2.0, ThousandKib), None);
    assert_eq!(pick::rate(1, 0.0, Bytes), None);
}

#[test]
fn wrong_names_have_a_near_one() {
    for (typed, meant) in [
        ("DCGM_FI_DEV_GPU_TMP", Some("DCGM_FI_DEV_GPU_TEMP")),
        ("dcgm_fi_dev_gpu_temp", Some("DCGM_FI_DEV_GPU_TEMP")),
        ("GPU_TEMP", Some("DCGM_FI_DEV_GPU_TEMP")),
        ("DCGM_EXP_XID_ERRORS_COUNTXXX", Some("DCGM_EXP_XID_ERRORS_COUNT")),
        ("DCGM_FI_DEV_FB_UESD", Some("DCGM_FI_DEV_FB_USED")),
        ("node_load1", None),
        ("", None),
    ] {
        assert_eq!(nearest(typed), meant, "{typed}");
    }
}
