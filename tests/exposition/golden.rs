//! The page of each shape of device.

#![expect(clippy::needless_raw_string_hashes, reason = "expect-test writes them")]

use std::sync::Arc;
use std::time::Duration;

use expect_test::expect;
use nvml_exporter::catalogue::{Kind, Value};
use nvml_exporter::exposition::Encoding;
use nvml_exporter::exposition::Settings;
use nvml_exporter::sampler::snapshot::{Gpu, Library, LibraryFacts, Snapshot, Status};

use crate::support::*;

#[test]
fn a_gpu_with_driver_label_xid_and_a_row_of_our_own() {
    let selection = selection(&[&FB_USED, &TEMP, &XID, &POWER], &[&DRIVER]);
    let board = vec![int(0, 9000), int(1, 41), int(2, 79), at(3, Value::Float(312.5))];
    let mut reading = reading(board);
    reading.labels = vec![(0, "570.86.15".into())];
    let snapshot = snapshot(selection, vec![up(identity(0), reading)]);
    expect![[r##"
        # HELP DCGM_FI_DEV_FB_USED Help.
        # TYPE DCGM_FI_DEV_FB_USED gauge
        DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-00000000",pci_bus_id="00000000:1B:00.0",device="nvidia0",modelName="NVIDIA H200",Hostname="node-a",DCGM_FI_DRIVER_VERSION="570.86.15"} 9000
        # HELP DCGM_FI_DEV_GPU_TEMP Help.
        # TYPE DCGM_FI_DEV_GPU_TEMP gauge
        DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-00000000",pci_bus_id="00000000:1B:00.0",device="nvidia0",modelName="NVIDIA H200",Hostname="node-a",DCGM_FI_DRIVER_VERSION="570.86.15"} 41
        # HELP DCGM_FI_DEV_XID_ERRORS Help.
        # TYPE DCGM_FI_DEV_XID_ERRORS gauge
        DCGM_FI_DEV_XID_ERRORS{gpu="0",UUID="GPU-00000000",pci_bus_id="00000000:1B:00.0",device="nvidia0",modelName="NVIDIA H200",Hostname="node-a",DCGM_FI_DRIVER_VERSION="570.86.15",err_code="79",err_msg="GPU fell off the PCIe bus"} 79
        # HELP nvml_power_watts Help.
        # TYPE nvml_power_watts gauge
        nvml_power_watts{gpu="0",UUID="GPU-00000000",pci_bus_id="00000000:1B:00.0",device="nvidia0",model_name="NVIDIA H200",Hostname="node-a",DCGM_FI_DRIVER_VERSION="570.86.15"} 312.5
    "##]].assert_eq(&selected(&snapshot, &settings()));
}

#[test]
fn instances_repeat_the_boards_dcgm_rows_and_a_board_has_its_own_rows_once() {
    let selection = selection(&[&FB_USED, &TEMP, &XID, &MEMORY, &POWER], &[]);
    let mut reading = reading(vec![int(1, 41), int(4, 300)]);
    reading.whole = false;
    reading.instances = vec![
        instance(1, vec![int(0, 11), int(2, 31), int(3, 110)]),
        instance(2, vec![int(0, 22), int(3, 220)]),
    ];
    let snapshot = snapshot(selection, vec![up(identity(0), reading)]);
    expect![[r##"
        # HELP DCGM_FI_DEV_FB_USED Help.
        # TYPE DCGM_FI_DEV_FB_USED gauge
        DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-00000000",pci_bus_id="00000000:1B:00.0",device="nvidia0",modelName="NVIDIA H200",GPU_I_PROFILE="1g.18gb",GPU_I_ID="1",Hostname="node-a"} 11
        DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-00000000",pci_bus_id="00000000:1B:00.0",device="nvidia0",modelName="NVIDIA H200",GPU_I_PROFILE="1g.18gb",GPU_I_ID="2",Hostname="node-a"} 22
        # HELP DCGM_FI_DEV_GPU_TEMP Help.
        # TYPE DCGM_FI_DEV_GPU_TEMP gauge
        DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-00000000",pci_bus_id="00000000:1B:00.0",device="nvidia0",modelName="NVIDIA H200",GPU_I_PROFILE="1g.18gb",GPU_I_ID="1",Hostname="node-a"} 41
        DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-00000000",pci_bus_id="00000000:1B:00.0",device="nvidia0",modelName="NVIDIA H200",GPU_I_PROFILE="1g.18gb",GPU_I_ID="2",Hostname="node-a"} 41
        # HELP DCGM_FI_DEV_XID_ERRORS Help.
        # TYPE DCGM_FI_DEV_XID_ERRORS gauge
        DCGM_FI_DEV_XID_ERRORS{gpu="0",UUID="GPU-00000000",pci_bus_id="00000000:1B:00.0",device="nvidia0",modelName="NVIDIA H200",GPU_I_PROFILE="1g.18gb",GPU_I_ID="1",Hostname="node-a",err_code="31",err_msg="GPU page fault - usually an illegal address in the application"} 31
        # HELP nvml_memory_used_bytes Help.
        # TYPE nvml_memory_used_bytes gauge
        nvml_memory_used_bytes{gpu="0",UUID="GPU-00000000",pci_bus_id="00000000:1B:00.0",device="nvidia0",model_name="NVIDIA H200",GPU_I_PROFILE="1g.18gb",GPU_I_ID="1",Hostname="node-a"} 110
        nvml_memory_used_bytes{gpu="0",UUID="GPU-00000000",pci_bus_id="00000000:1B:00.0",device="nvidia0",model_name="NVIDIA H200",GPU_I_PROFILE="1g.18gb",GPU_I_ID="2",Hostname="node-a"} 220
        # HELP nvml_power_watts Help.
        # TYPE nvml_power_watts gauge
        nvml_power_watts{gpu="0",UUID="GPU-00000000",pci_bus_id="00000000:1B:00.0",device="nvidia0",model_name="NVIDIA H200",Hostname="node-a"} 300
    "##]].assert_eq(&selected(&snapshot, &settings()));
}

#[test]
fn a_split_gpu_can_be_a_row_beside_its_instances() {
    let mut reading = reading(vec![int(0, 99), int(1, 41), int(2, 300)]);
    reading.instances = vec![instance(1, vec![int(0, 11)])];
    let selection = selection(&[&FB_USED, &TEMP, &POWER], &[]);
    let snapshot = snapshot(selection, vec![up(identity(0), reading)]);
    expect![[r##"
        # HELP DCGM_FI_DEV_FB_USED Help.
        # TYPE DCGM_FI_DEV_FB_USED gauge
        DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-00000000",pci_bus_id="00000000:1B:00.0",device="nvidia0",modelName="NVIDIA H200",Hostname="node-a"} 99
        DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-00000000",pci_bus_id="00000000:1B:00.0",device="nvidia0",modelName="NVIDIA H200",GPU_I_PROFILE="1g.18gb",GPU_I_ID="1",Hostname="node-a"} 11
        # HELP DCGM_FI_DEV_GPU_TEMP Help.
        # TYPE DCGM_FI_DEV_GPU_TEMP gauge
        DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-00000000",pci_bus_id="00000000:1B:00.0",device="nvidia0",modelName="NVIDIA H200",Hostname="node-a"} 41
        DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-00000000",pci_bus_id="00000000:1B:00.0",device="nvidia0",modelName="NVIDIA H200",GPU_I_PROFILE="1g.18gb",GPU_I_ID="1",Hostname="node-a"} 41
        # HELP nvml_power_watts Help.
        # TYPE nvml_power_watts gauge
        nvml_power_watts{gpu="0",UUID="GPU-00000000",pci_bus_id="00000000:1B:00.0",device="nvidia0",model_name="NVIDIA H200",Hostname="node-a"} 300
    "##]].assert_eq(&selected(&snapshot, &settings()));
}

#[test]
fn a_gpu_that_is_no_row_and_has_no_instances_has_no_series() {
    let mut reading = reading(vec![int(0, 41), int(1, 300)]);
    reading.whole = false;
    let snapshot = snapshot(selection(&[&TEMP, &POWER], &[]), vec![up(identity(0), reading)]);
    assert_eq!(selected(&snapshot, &settings()), "");
}

#[test]
fn links_have_labels_of_their_own_on_split_gpus_too() {
    let mut reading = reading(vec![on_link(0, 0, 5), on_link(0, 3, 6)]);
    reading.whole = false;
    reading.labels = vec![(0, "570.86.15".into())];
    reading.instances = vec![instance(1, vec![])];
    let snapshot = snapshot(selection(&[&LINK], &[&DRIVER]), vec![up(identity(1), reading)]);
    expect![[r##"
        # HELP DCGM_FI_DEV_NVLINK_TX_BYTES Help.
        # TYPE DCGM_FI_DEV_NVLINK_TX_BYTES counter
        DCGM_FI_DEV_NVLINK_TX_BYTES{nvlink="1",gpu="1",gpu_uuid="GPU-00000001",pci_bus_id="00000000:1C:00.0",device="nvidia1",model_name="NVIDIA H200",hostname="node-a",DCGM_FI_DRIVER_VERSION="570.86.15"} 5
        DCGM_FI_DEV_NVLINK_TX_BYTES{nvlink="4",gpu="1",gpu_uuid="GPU-00000001",pci_bus_id="00000000:1C:00.0",device="nvidia1",model_name="NVIDIA H200",hostname="node-a",DCGM_FI_DRIVER_VERSION="570.86.15"} 6
    "##]].assert_eq(&selected(&snapshot, &settings()));
}

#[test]
fn texts_that_are_no_labels_become_info_series() {
    let mut reading = reading(Vec::new());
    reading.texts = vec![(0, "1650".into()), (2, "570.86.15".into())];
    reading.instances = vec![instance(1, vec![])];
    let selection = selection(&[&SERIAL, &UUID, &DRIVER], &[]);
    let snapshot = snapshot(selection, vec![up(identity(0), reading)]);
    expect![[r##"
        # HELP DCGM_FI_DEV_SERIAL Help.
        # TYPE DCGM_FI_DEV_SERIAL gauge
        DCGM_FI_DEV_SERIAL{gpu="0",UUID="GPU-00000000",pci_bus_id="00000000:1B:00.0",device="nvidia0",modelName="NVIDIA H200",Hostname="node-a",serial="1650"} 1
        DCGM_FI_DEV_SERIAL{gpu="0",UUID="GPU-00000000",pci_bus_id="00000000:1B:00.0",device="nvidia0",modelName="NVIDIA H200",GPU_I_PROFILE="1g.18gb",GPU_I_ID="1",Hostname="node-a",serial="1650"} 1
        # HELP DCGM_FI_DRIVER_VERSION Help.
        # TYPE DCGM_FI_DRIVER_VERSION gauge
        DCGM_FI_DRIVER_VERSION{gpu="0",UUID="GPU-00000000",pci_bus_id="00000000:1B:00.0",device="nvidia0",modelName="NVIDIA H200",Hostname="node-a",driver_version="570.86.15"} 1
        DCGM_FI_DRIVER_VERSION{gpu="0",UUID="GPU-00000000",pci_bus_id="00000000:1B:00.0",device="nvidia0",modelName="NVIDIA H200",GPU_I_PROFILE="1g.18gb",GPU_I_ID="1",Hostname="node-a",driver_version="570.86.15"} 1
    "##]].assert_eq(&selected(&snapshot, &settings()));
}

#[test]
fn rows_of_one_name_are_one_family_in_their_order() {
    let selection = selection(&[&EVENT_IDLE, &EVENT_POWER, &ENERGY], &[&DRIVER]);
    let gpus = (0..2).map(|index| {
        let mut reading = reading(vec![int(0, 0), int(1, 1), int(2, 7)]);
        reading.labels = vec![(0, "570.86.15".into())];
        up(identity(index), reading)
    });
    let snapshot = snapshot(selection, gpus.collect());
    expect![[r##"
        # HELP nvml_clock_event Help.
        # TYPE nvml_clock_event gauge
        nvml_clock_event{gpu="0",UUID="GPU-00000000",pci_bus_id="00000000:1B:00.0",device="nvidia0",model_name="NVIDIA H200",Hostname="node-a",DCGM_FI_DRIVER_VERSION="570.86.15",reason="idle"} 0
        nvml_clock_event{gpu="0",UUID="GPU-00000000",pci_bus_id="00000000:1B:00.0",device="nvidia0",model_name="NVIDIA H200",Hostname="node-a",DCGM_FI_DRIVER_VERSION="570.86.15",reason="power"} 1
        nvml_clock_event{gpu="1",UUID="GPU-00000001",pci_bus_id="00000000:1C:00.0",device="nvidia1",model_name="NVIDIA H200",Hostname="node-a",DCGM_FI_DRIVER_VERSION="570.86.15",reason="idle"} 0
        nvml_clock_event{gpu="1",UUID="GPU-00000001",pci_bus_id="00000000:1C:00.0",device="nvidia1",model_name="NVIDIA H200",Hostname="node-a",DCGM_FI_DRIVER_VERSION="570.86.15",reason="power"} 1
        # HELP nvml_energy_joules_total Help.
        # TYPE nvml_energy_joules_total counter
        nvml_energy_joules_total{gpu="0",UUID="GPU-00000000",pci_bus_id="00000000:1B:00.0",device="nvidia0",model_name="NVIDIA H200",Hostname="node-a",DCGM_FI_DRIVER_VERSION="570.86.15"} 7
        nvml_energy_joules_total{gpu="1",UUID="GPU-00000001",pci_bus_id="00000000:1C:00.0",device="nvidia1",model_name="NVIDIA H200",Hostname="node-a",DCGM_FI_DRIVER_VERSION="570.86.15"} 7
    "##]].assert_eq(&selected(&snapshot, &settings()));
}

#[test]
fn types_and_help_are_those_of_the_counters_file() {
    let mut selection = Arc::unwrap_or_clone(selection(&[&FB_USED, &TEMP, &REPLAY], &[]));
    selection.rows[0].kind = Kind::Untyped;
    selection.rows[1].kind = Kind::Counter;
    selection.rows[1].name = "dcgm_gpu_temp".into();
    selection.rows[1].help = "Back\\slash, \"quotes\" and\na line.".into();
    let reading = reading(vec![int(0, 1), int(1, 41), int(2, 3)]);
    let snapshot = snapshot(Arc::new(selection), vec![up(identity(0), reading)]);
    expect![[r##"
        # HELP DCGM_FI_DEV_FB_USED Help.
        # TYPE DCGM_FI_DEV_FB_USED untyped
        DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-00000000",pci_bus_id="00000000:1B:00.0",device="nvidia0",modelName="NVIDIA H200",Hostname="node-a"} 1
        # HELP dcgm_gpu_temp Back\\slash, "quotes" and\na line.
        # TYPE dcgm_gpu_temp counter
        dcgm_gpu_temp{gpu="0",UUID="GPU-00000000",pci_bus_id="00000000:1B:00.0",device="nvidia0",modelName="NVIDIA H200",Hostname="node-a"} 41
        # HELP DCGM_FI_DEV_PCIE_REPLAY_COUNTER Help.
        # TYPE DCGM_FI_DEV_PCIE_REPLAY_COUNTER counter
        DCGM_FI_DEV_PCIE_REPLAY_COUNTER{gpu="0",UUID="GPU-00000000",pci_bus_id="00000000:1B:00.0",device="nvidia0",modelName="NVIDIA H200",Hostname="node-a"} 3
    "##]].assert_eq(&selected(&snapshot, &settings()));
}

/// What follows the selected families, but for the process's own.
fn rest(snapshot: &Snapshot, settings: &Settings) -> String {
    let page = text(snapshot, settings);
    let from = page.find("# HELP nvml_up ").unwrap();
    let to = page.find("# HELP process_").unwrap();
    page[from..to].to_owned()
}

#[test]
fn what_is_there_and_how_fresh_it_is() {
    let mut split = reading(vec![int(0, 41)]);
    split.instances = vec![instance(2, vec![]), instance(1, vec![])];
    split.unsupported = vec![(0, "not_supported"), (1, "no_permission"), (2, "no_permission")];
    split.read_at = now() - Duration::from_millis(1500);
    let mut late = reading(vec![int(0, 41)]);
    late.read_at = now() - Duration::from_secs(31);
    let gpus = vec![
        Gpu { status: Status::Down("lost"), reading: None, ..up(identity(3), reading(vec![])) },
        up(identity(0), split),
        up(identity(1), late),
        Gpu { status: Status::Starting, reading: None, ..up(identity(2), reading(vec![])) },
    ];
    let mut snapshot = snapshot(selection(&[&TEMP, &EVENT_IDLE, &EVENT_POWER], &[]), gpus);
    snapshot.taken -= Duration::from_secs(1);
    expect![[r##"
        # HELP nvml_up Whether NVML is loaded and initialised.
        # TYPE nvml_up gauge
        nvml_up{Hostname="node-a"} 1
        # HELP nvml_driver_info Versions of the node's driver and libraries.
        # TYPE nvml_driver_info gauge
        nvml_driver_info{driver_version="570.86.15",nvml_version="12.570.86.15",cuda_version="12.8",Hostname="node-a"} 1
        # HELP nvml_device_info Facts about each GPU that do not change.
        # TYPE nvml_device_info gauge
        nvml_device_info{gpu="0",UUID="GPU-00000000",pci_bus_id="00000000:1B:00.0",device="nvidia0",model_name="NVIDIA H200",Hostname="node-a",architecture="hopper",minor_number="0"} 1
        nvml_device_info{gpu="1",UUID="GPU-00000001",pci_bus_id="00000000:1C:00.0",device="nvidia1",model_name="NVIDIA H200",Hostname="node-a",architecture="hopper",minor_number="1"} 1
        nvml_device_info{gpu="2",UUID="GPU-00000002",pci_bus_id="00000000:1D:00.0",device="nvidia2",model_name="NVIDIA H200",Hostname="node-a",architecture="hopper",minor_number="2"} 1
        nvml_device_info{gpu="3",UUID="GPU-00000003",pci_bus_id="00000000:1E:00.0",device="nvidia3",model_name="NVIDIA H200",Hostname="node-a",architecture="hopper",minor_number="3"} 1
        # HELP nvml_mig_instance_info MIG compute instances and their UUIDs.
        # TYPE nvml_mig_instance_info gauge
        nvml_mig_instance_info{gpu="0",UUID="GPU-00000000",GPU_I_ID="1",GPU_I_PROFILE="1g.18gb",compute_instance="0",mig_uuid="MIG-1",Hostname="node-a"} 1
        nvml_mig_instance_info{gpu="0",UUID="GPU-00000000",GPU_I_ID="2",GPU_I_PROFILE="1g.18gb",compute_instance="0",mig_uuid="MIG-2",Hostname="node-a"} 1
        # HELP nvml_exporter_device_up Whether the GPU has a fresh, complete reading.
        # TYPE nvml_exporter_device_up gauge
        nvml_exporter_device_up{gpu="0",UUID="GPU-00000000",pci_bus_id="00000000:1B:00.0",device="nvidia0",model_name="NVIDIA H200",Hostname="node-a"} 1
        nvml_exporter_device_up{gpu="1",UUID="GPU-00000001",pci_bus_id="00000000:1C:00.0",device="nvidia1",model_name="NVIDIA H200",Hostname="node-a"} 0
        nvml_exporter_device_up{gpu="2",UUID="GPU-00000002",pci_bus_id="00000000:1D:00.0",device="nvidia2",model_name="NVIDIA H200",Hostname="node-a"} 0
        nvml_exporter_device_up{gpu="3",UUID="GPU-00000003",pci_bus_id="00000000:1E:00.0",device="nvidia3",model_name="NVIDIA H200",Hostname="node-a"} 0
        # HELP nvml_exporter_device_down Why the GPU has no fresh reading.
        # TYPE nvml_exporter_device_down gauge
        nvml_exporter_device_down{reason="stale",gpu="1",UUID="GPU-00000001",Hostname="node-a"} 1
        nvml_exporter_device_down{reason="starting",gpu="2",UUID="GPU-00000002",Hostname="node-a"} 1
        nvml_exporter_device_down{reason="lost",gpu="3",UUID="GPU-00000003",Hostname="node-a"} 1
        # HELP nvml_exporter_reading_age_seconds Age of the GPU's newest reading when the page was made.
        # TYPE nvml_exporter_reading_age_seconds gauge
        nvml_exporter_reading_age_seconds{gpu="0",UUID="GPU-00000000",pci_bus_id="00000000:1B:00.0",device="nvidia0",model_name="NVIDIA H200",Hostname="node-a"} 1.5
        nvml_exporter_reading_age_seconds{gpu="1",UUID="GPU-00000001",pci_bus_id="00000000:1C:00.0",device="nvidia1",model_name="NVIDIA H200",Hostname="node-a"} 31
        nvml_exporter_reading_age_seconds{gpu="2",UUID="GPU-00000002",pci_bus_id="00000000:1D:00.0",device="nvidia2",model_name="NVIDIA H200",Hostname="node-a"} 0
        nvml_exporter_reading_age_seconds{gpu="3",UUID="GPU-00000003",pci_bus_id="00000000:1E:00.0",device="nvidia3",model_name="NVIDIA H200",Hostname="node-a"} 0
        # HELP nvml_exporter_last_pass_timestamp_seconds When the newest pass over a GPU was complete, in Unix time.
        # TYPE nvml_exporter_last_pass_timestamp_seconds gauge
        nvml_exporter_last_pass_timestamp_seconds 1699999998.5
        # HELP nvml_exporter_snapshot_age_seconds Age of the snapshot when the page was made.
        # TYPE nvml_exporter_snapshot_age_seconds gauge
        nvml_exporter_snapshot_age_seconds 1
        # HELP nvml_exporter_page_timestamp_seconds When the page was made, in Unix time.
        # TYPE nvml_exporter_page_timestamp_seconds gauge
        nvml_exporter_page_timestamp_seconds 1700000000
        # HELP nvml_exporter_simulated Whether the readings are invented by the simulator.
        # TYPE nvml_exporter_simulated gauge
        nvml_exporter_simulated 0
        # HELP nvml_exporter_field_unsupported Selected fields that the GPU does not give.
        # TYPE nvml_exporter_field_unsupported gauge
        nvml_exporter_field_unsupported{field="DCGM_FI_DEV_GPU_TEMP",reason="not_supported",gpu="0",UUID="GPU-00000000",Hostname="node-a"} 1
        nvml_exporter_field_unsupported{field="nvml_clock_event",reason="no_permission",gpu="0",UUID="GPU-00000000",Hostname="node-a"} 1
    "##]].assert_eq(&rest(&snapshot, &settings()));
}

#[test]
fn a_reading_older_than_the_bound_has_no_series_and_a_clock_set_back_harms_none() {
    let aged = |read_at| {
        let reading =
            nvml_exporter::sampler::snapshot::GpuReading { read_at, ..reading(vec![int(0, 41)]) };
        snapshot(selection(&[&TEMP], &[]), vec![up(identity(0), reading)])
    };
    let bound = settings().max_age;
    assert!(!selected(&aged(now() - bound), &settings()).is_empty());
    assert!(selected(&aged(now() - bound - Duration::from_millis(1)), &settings()).is_empty());
    assert!(!selected(&aged(now() + Duration::from_secs(3600)), &settings()).is_empty());
}

#[test]
fn without_a_library_the_page_says_why() {
    let mut snapshot = snapshot(selection(&[&TEMP], &[]), Vec::new());
    snapshot.library =
        Library::Down { reason: "driver_not_loaded", detail: "not for labels".to_owned() };
    expect![[r##"
        # HELP nvml_up Whether NVML is loaded and initialised.
        # TYPE nvml_up gauge
        nvml_up{Hostname="node-a"} 0
        # HELP nvml_down Why NVML is not up.
        # TYPE nvml_down gauge
        nvml_down{reason="driver_not_loaded",Hostname="node-a"} 1
        # HELP nvml_exporter_snapshot_age_seconds Age of the snapshot when the page was made.
        # TYPE nvml_exporter_snapshot_age_seconds gauge
        nvml_exporter_snapshot_age_seconds 0
        # HELP nvml_exporter_page_timestamp_seconds When the page was made, in Unix time.
        # TYPE nvml_exporter_page_timestamp_seconds gauge
        nvml_exporter_page_timestamp_seconds 1700000000
    "##]]
    .assert_eq(&rest(&snapshot, &settings()));
    snapshot.library = Library::Starting;
    assert!(rest(&snapshot, &settings()).contains("nvml_down{reason=\"starting\""));
}

#[test]
fn simulated_readings_are_marked() {
    let mut snapshot = snapshot(selection(&[], &[]), Vec::new());
    snapshot.library = Library::Up(Arc::new(LibraryFacts {
        path: String::new(),
        driver_version: "570.86.15".to_owned(),
        nvml_version: String::new(),
        cuda_version: String::new(),
        simulated: Some("two-h200".to_owned()),
    }));
    let page = rest(&snapshot, &settings());
    assert!(page.contains("nvml_exporter_simulated{scenario=\"two-h200\"} 1\n"));
    assert!(
        page.contains("nvml_driver_info{driver_version=\"570.86.15\",Hostname=\"node-a\"} 1\n")
    );
}

#[test]
fn openmetrics_keeps_names_and_calls_dcgms_counters_unknown() {
    let selection = selection(&[&TEMP, &REPLAY, &ENERGY], &[]);
    let reading = reading(vec![int(0, 41), int(1, 3), int(2, 7)]);
    let snapshot = snapshot(selection, vec![up(identity(0), reading)]);
    let settings = Settings { openmetrics: true, ..settings() };
    let page = page(&snapshot, &settings).openmetrics.unwrap();
    let page = page.encoded(Encoding::Identity);
    let page = str::from_utf8(&page).unwrap();
    let (selected, _) = page.split_once("# HELP nvml_up ").unwrap();
    expect![[r##"
        # HELP DCGM_FI_DEV_GPU_TEMP Help.
        # TYPE DCGM_FI_DEV_GPU_TEMP gauge
        DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-00000000",pci_bus_id="00000000:1B:00.0",device="nvidia0",modelName="NVIDIA H200",Hostname="node-a"} 41
        # HELP DCGM_FI_DEV_PCIE_REPLAY_COUNTER Help.
        # TYPE DCGM_FI_DEV_PCIE_REPLAY_COUNTER unknown
        DCGM_FI_DEV_PCIE_REPLAY_COUNTER{gpu="0",UUID="GPU-00000000",pci_bus_id="00000000:1B:00.0",device="nvidia0",modelName="NVIDIA H200",Hostname="node-a"} 3
        # HELP nvml_energy_joules Help.
        # TYPE nvml_energy_joules counter
        nvml_energy_joules_total{gpu="0",UUID="GPU-00000000",pci_bus_id="00000000:1B:00.0",device="nvidia0",model_name="NVIDIA H200",Hostname="node-a"} 7
    "##]].assert_eq(selected);
    assert!(page.ends_with("\n# EOF\n") && page.matches("# EOF").count() == 1);
}
