//! dcgm-exporter's observable behaviour, case by case. The numbers are those of the list that was
//! derived from its tests.

use crate::parser::{Family, Point, parse};
use crate::support::*;
use nvml_exporter::catalogue::Value;
use nvml_exporter::exposition::{HostLabel, Settings};
use nvml_exporter::sampler::snapshot::{GpuReading, Snapshot};

fn one(fields: &[&'static nvml_exporter::catalogue::Field], reading: GpuReading) -> Snapshot {
    snapshot(selection(fields, &[]), vec![up(identity(0), reading)])
}

fn families(snapshot: &Snapshot, settings: &Settings) -> Vec<Family> {
    parse(&selected(snapshot, settings))
}

fn points(snapshot: &Snapshot, settings: &Settings) -> Vec<Point> {
    families(snapshot, settings).into_iter().flat_map(|family| family.points).collect()
}

fn names(point: &Point) -> Vec<&str> {
    point.labels.iter().map(|(name, _)| name.as_str()).collect()
}

#[test]
fn case_01_a_gauge_has_help_type_and_identity_labels_in_order() {
    let snapshot = one(&[&TEMP], reading(vec![int(0, 41)]));
    let page = selected(&snapshot, &settings());
    let lines: Vec<&str> = page.lines().collect();
    assert_eq!(lines[0], "# HELP DCGM_FI_DEV_GPU_TEMP Help.");
    assert_eq!(lines[1], "# TYPE DCGM_FI_DEV_GPU_TEMP gauge");
    assert_eq!(
        names(&points(&snapshot, &settings())[0]),
        ["gpu", "UUID", "pci_bus_id", "device", "modelName", "Hostname"]
    );
    assert_eq!(lines.len(), 3);
}

#[test]
fn case_02_an_unknown_bus_id_is_printed_empty() {
    let mut gpu = identity(0);
    gpu.pci_bus_id = String::new();
    let snapshot = snapshot(selection(&[&TEMP], &[]), vec![up(gpu, reading(vec![int(0, 41)]))]);
    assert_eq!(points(&snapshot, &settings())[0].label("pci_bus_id"), Some(""));
}

#[test]
fn case_04_a_link_has_its_own_labels_and_leaves_out_empty_ones() {
    let readings = || reading(vec![on_link(0, 0, 5), on_link(0, 17, 6)]);
    let full = one(&[&LINK], readings());
    let points_of_full = points(&full, &settings());
    assert_eq!(
        names(&points_of_full[0]),
        ["nvlink", "gpu", "gpu_uuid", "pci_bus_id", "device", "model_name", "hostname"]
    );
    assert_eq!(points_of_full[0].label("nvlink"), Some("1"));
    assert_eq!(points_of_full[1].label("nvlink"), Some("18"));

    let mut gpu = identity(0);
    (gpu.uuid, gpu.pci_bus_id, gpu.model) = Default::default();
    let bare = snapshot(selection(&[&LINK], &[]), vec![up(gpu, readings())]);
    assert_eq!(names(&points(&bare, &settings())[0]), ["nvlink", "gpu", "device", "hostname"]);
}

/// There a value that stands for "none" is taken for none. Here none is the absence of a sample,
/// so the numbers that DCGM reserves are numbers like others, and what is no number is dropped.
#[test]
fn case_06_what_has_no_value_has_no_sample_and_a_family_without_samples_is_left_out() {
    let board = vec![at(0, Value::Float(f64::NAN)), at(1, Value::Float(f64::NEG_INFINITY))];
    let none = one(&[&FB_USED, &TEMP], reading(board));
    assert_eq!(selected(&none, &settings()), "");

    let half = one(&[&FB_USED, &TEMP], reading(vec![int(1, 2_147_483_632)]));
    let families = families(&half, &settings());
    assert_eq!(families.len(), 1);
    assert_eq!(families[0].points[0].value, "2147483632");
}

#[test]
fn case_07_integers_are_printed_exactly() {
    let values = [
        (Value::Int(0), "0"),
        (Value::Int(42), "42"),
        (Value::Int(-7), "-7"),
        (Value::Int(i64::MIN), "-9223372036854775808"),
        (Value::Int(9_007_199_254_740_993), "9007199254740993"),
        (Value::Uint(u64::MAX), "18446744073709551615"),
    ];
    for (value, printed) in values {
        let snapshot = one(&[&REPLAY], reading(vec![at(0, value)]));
        assert_eq!(points(&snapshot, &settings())[0].value, printed);
    }
}

#[test]
fn case_09_an_xid_has_its_code_and_a_text() {
    for (code, text) in
        [(0, "No Error"), (42, "video image compositor exception"), (255, "Unknown Error")]
    {
        let snapshot = one(&[&XID], reading(vec![int(0, code)]));
        let point = points(&snapshot, &settings()).remove(0);
        assert_eq!(point.value, code.to_string());
        assert_eq!(point.label("err_code"), Some(code.to_string().as_str()));
        assert_eq!(point.label("err_msg"), Some(text));
    }
}

fn with_model(model: &str) -> Snapshot {
    let mut gpu = identity(0);
    model.clone_into(&mut gpu.model);
    let board = vec![int(0, 41), on_link(1, 0, 5)];
    snapshot(selection(&[&TEMP, &LINK], &[]), vec![up(gpu, reading(board))])
}

#[test]
fn case_10_blanks_in_the_model_become_one_dash_if_asked() {
    let mut settings = settings();
    settings.labels.replace_blanks = true;
    let points = points(&with_model("NVIDIA  A100-SXM4 \t80GB"), &settings);
    assert_eq!(points[0].label("modelName"), Some("NVIDIA-A100-SXM4-80GB"));
    assert_eq!(points[1].label("model_name"), Some("NVIDIA  A100-SXM4 \t80GB"));
}

#[test]
fn case_11_blanks_in_the_model_stay_otherwise() {
    let points = points(&with_model("NVIDIA  A100"), &settings());
    assert_eq!(points[0].label("modelName"), Some("NVIDIA  A100"));
}

#[test]
fn case_12_the_old_namespace_spells_the_uuid_in_lower_case_but_on_links() {
    let mut settings = settings();
    settings.labels.old_namespace = true;
    let points = points(&with_model("NVIDIA H200"), &settings);
    assert_eq!(names(&points[0])[..2], ["gpu", "uuid"]);
    assert!(points[0].label("UUID").is_none());
    assert!(points[1].label("gpu_uuid").is_some() && points[1].label("uuid").is_none());
}

#[test]
fn case_13_a_label_row_is_on_every_sample_of_its_gpu() {
    let mut labelled = reading(vec![int(0, 1), int(1, 41), int(2, 0), on_link(3, 0, 5)]);
    labelled.labels = vec![(1, "570.86.15".into()), (0, "1650".into())];
    labelled.instances = vec![instance(3, vec![int(0, 7)])];
    let plain = reading(vec![int(0, 1)]);
    let selection = selection(&[&FB_USED, &TEMP, &XID, &LINK], &[&SERIAL, &DRIVER]);
    let snapshot = snapshot(selection, vec![up(identity(0), labelled), up(identity(1), plain)]);
    for point in points(&snapshot, &settings()) {
        if point.label("gpu") == Some("1") {
            assert_eq!(point.label("DCGM_FI_DRIVER_VERSION"), None);
        } else {
            assert_eq!(point.label("DCGM_FI_DRIVER_VERSION"), Some("570.86.15"));
            let labels = names(&point);
            let host = labels.iter().position(|name| name.eq_ignore_ascii_case("hostname"));
            assert_eq!(
                labels[host.unwrap() + 1..][..2],
                ["DCGM_FI_DEV_SERIAL", "DCGM_FI_DRIVER_VERSION"]
            );
        }
    }
}

#[test]
fn case_16_two_scrapes_have_families_and_series_in_the_same_order() {
    let board = || reading(vec![int(0, 1), int(1, 41)]);
    let selection = selection(&[&FB_USED, &TEMP], &[]);
    let gpus: Vec<_> = (0..4).map(|index| up(identity(index), board())).collect();
    let mut reversed = gpus.clone();
    reversed.reverse();
    let settings = settings();
    assert_eq!(
        selected(&snapshot(selection.clone(), gpus), &settings),
        selected(&snapshot(selection, reversed), &settings)
    );
}

fn split() -> Snapshot {
    let mut split = reading(vec![int(1, 41), int(2, 300)]);
    split.whole = false;
    split.instances = vec![instance(9, vec![int(0, 8)]), instance(7, vec![int(0, 7)])];
    let whole = reading(vec![int(0, 1), int(1, 42), int(2, 100)]);
    snapshot(
        selection(&[&FB_USED, &TEMP, &POWER], &[]),
        vec![up(identity(0), split), up(identity(1), whole)],
    )
}

#[test]
fn case_17_an_instance_has_its_profile_and_id_and_the_boards_uuid() {
    let point = points(&split(), &settings()).remove(0);
    assert_eq!(
        names(&point),
        [
            "gpu",
            "UUID",
            "pci_bus_id",
            "device",
            "modelName",
            "GPU_I_PROFILE",
            "GPU_I_ID",
            "Hostname"
        ]
    );
    assert_eq!(point.label("GPU_I_PROFILE"), Some("1g.18gb"));
    assert_eq!(point.label("GPU_I_ID"), Some("7"));
    assert_eq!(point.label("UUID"), Some("GPU-00000000"));
}

#[test]
fn case_18_both_instance_labels_or_neither() {
    let points = points(&split(), &settings());
    for point in &points {
        assert_eq!(point.label("GPU_I_PROFILE").is_some(), point.label("GPU_I_ID").is_some());
    }
    // Two instances with two DCGM rows each, one whole GPU with those, and a row of our own a board.
    assert_eq!(points.len(), 4 + 2 + 2);
}

#[test]
fn case_20_without_a_host_no_sample_has_a_host_label_and_all_else_is_unchanged() {
    let mut gpus = split();
    gpus.gpus.push(up(identity(2), reading(vec![int(0, 1)])));
    let strip = |page: String| page.replace(",Hostname=\"node-a\"", "");
    for host in [None, Some(String::new())] {
        let mut hostless = settings();
        hostless.labels.host = host;
        let page = selected(&gpus, &hostless);
        assert!(!page.to_lowercase().contains("hostname"));
        assert_eq!(page, strip(selected(&gpus, &settings())));
    }
}

#[test]
fn case_42_the_host_label_is_the_name_given_in_the_spelling_asked_for() {
    for (spelling, on_gpu, on_link) in [
        (HostLabel::Lower, &["hostname"][..], &["hostname"][..]),
        (HostLabel::Upper, &["Hostname"], &["hostname"]),
        (HostLabel::Both, &["Hostname", "hostname"], &["Hostname", "hostname"]),
    ] {
        let mut settings = settings();
        settings.labels.host_label = spelling;
        let points = points(&with_model("NVIDIA H200"), &settings);
        for (point, expected) in points.iter().zip([on_gpu, on_link]) {
            let found: Vec<_> = point.labels.iter().filter(|(_, v)| v == "node-a").collect();
            assert_eq!(found.iter().map(|(name, _)| name).collect::<Vec<_>>(), expected);
        }
    }
}
