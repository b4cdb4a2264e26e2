//! Rows, devices and snapshots to make pages of.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use nvml_exporter::attribution::Attribution;
use nvml_exporter::catalogue::{Call, Entity, Fact, Field, Kind, Read, Row, Selection, Value};
use nvml_exporter::exposition::Encoding;
use nvml_exporter::exposition::{
    AttributionScheme, HostLabel, LabelScheme, Page, Renderer, Settings,
};
use nvml_exporter::sampler::snapshot::{
    Gpu, GpuIdentity, GpuReading, InstanceIdentity, InstanceReading, Known, Library, LibraryFacts,
    Sample, Snapshot, Status,
};
use nvml_exporter::telemetry::Telemetry;
use nvml_exporter::telemetry::metrics::Build;

const READ: Read = Read::Call(Call::Temperature, |_| None);

pub(crate) static TEMP: Field =
    Field::new("DCGM_FI_DEV_GPU_TEMP", 150, Kind::Gauge, Entity::Gpu, READ);
pub(crate) static FB_USED: Field =
    Field::new("DCGM_FI_DEV_FB_USED", 252, Kind::Gauge, Entity::Instance, READ);
pub(crate) static UTIL: Field =
    Field::new("DCGM_FI_DEV_GPU_UTIL", 203, Kind::Gauge, Entity::Gpu, READ);
pub(crate) static REPLAY: Field =
    Field::new("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", 202, Kind::Counter, Entity::Gpu, READ);
pub(crate) static XID: Field =
    Field::new("DCGM_FI_DEV_XID_ERRORS", 230, Kind::Gauge, Entity::Instance, Read::LastXid);
pub(crate) static LINK: Field =
    Field::new("DCGM_FI_DEV_NVLINK_TX_BYTES", 1000, Kind::Counter, Entity::Link, READ);
pub(crate) static DRIVER: Field = Field::new(
    "DCGM_FI_DRIVER_VERSION",
    1,
    Kind::Label,
    Entity::Node,
    Read::Fact(Fact::DriverVersion),
);
pub(crate) static SERIAL: Field =
    Field::new("DCGM_FI_DEV_SERIAL", 53, Kind::Label, Entity::Gpu, Read::Fact(Fact::Serial));
pub(crate) static UUID: Field =
    Field::new("DCGM_FI_DEV_UUID", 54, Kind::Label, Entity::Gpu, Read::Fact(Fact::Uuid));
/// Rows of our own: a board's, an instance's, and two that make up one family.
pub(crate) static POWER: Field = Field::new("nvml_power_watts", 0, Kind::Gauge, Entity::Gpu, READ);
pub(crate) static MEMORY: Field =
    Field::new("nvml_memory_used_bytes", 0, Kind::Gauge, Entity::Instance, READ);
pub(crate) static EVENT_IDLE: Field =
    Field::new("nvml_clock_event", 0, Kind::Gauge, Entity::Gpu, READ).with("reason", "idle");
pub(crate) static EVENT_POWER: Field =
    Field::new("nvml_clock_event", 0, Kind::Gauge, Entity::Gpu, READ).with("reason", "power");
pub(crate) static ENERGY: Field =
    Field::new("nvml_energy_joules_total", 0, Kind::Counter, Entity::Gpu, READ);

/// A row as a counters file would select it, with the field's own type and a short help.
pub(crate) fn row(field: &'static Field) -> Row {
    let kind = if field.kind == Kind::Label { Kind::Gauge } else { field.kind };
    Row { field, name: field.name.into(), kind, help: "Help.".into() }
}

pub(crate) fn selection(rows: &[&'static Field], labels: &[&'static Field]) -> Arc<Selection> {
    let rows = rows.iter().map(|field| row(field)).collect();
    let labels = labels.iter().map(|field| Row { kind: Kind::Label, ..row(field) }).collect();
    Arc::new(Selection { rows, labels, ..Selection::default() })
}

pub(crate) fn at(row: u16, value: Value) -> Sample {
    Sample { row, link: None, value }
}

pub(crate) fn int(row: u16, value: i64) -> Sample {
    at(row, Value::Int(value))
}

pub(crate) fn on_link(row: u16, link: u8, value: i64) -> Sample {
    Sample { row, link: Some(link), value: Value::Int(value) }
}

pub(crate) fn identity(index: u32) -> GpuIdentity {
    GpuIdentity {
        index,
        uuid: format!("GPU-{index:08x}"),
        pci_bus_id: format!("00000000:{:02X}:00.0", 0x1b + index),
        model: "NVIDIA H200".to_owned(),
        minor: Some(index),
        info: vec![("architecture", "hopper".to_owned())],
    }
}

pub(crate) fn reading(board: Vec<Sample>) -> GpuReading {
    GpuReading {
        read_at: now(),
        took: Duration::from_millis(4),
        whole: true,
        board,
        labels: Vec::new(),
        texts: Vec::new(),
        instances: Vec::new(),
        mig_slices: None,
        unsupported: Vec::new(),
        processes: None,
        accounting: Vec::new(),
        signs: None,
        peers: Vec::new(),
    }
}

pub(crate) fn instance(id: u32, samples: Vec<Sample>) -> InstanceReading {
    InstanceReading {
        identity: Arc::new(InstanceIdentity {
            gpu_instance: id,
            profile: "1g.18gb".to_owned(),
            uuids: vec![(0, format!("MIG-{id}"))],
            placement: None,
        }),
        samples,
    }
}

pub(crate) fn up(identity: GpuIdentity, reading: GpuReading) -> Gpu {
    let last_read = Some(reading.read_at);
    let known = Arc::new(Known::of(&reading));
    let reading = Some(Arc::new(reading));
    let history = Arc::default();
    Gpu { identity: Arc::new(identity), status: Status::Up, reading, last_read, known, history }
}

pub(crate) fn snapshot(selection: Arc<Selection>, gpus: Vec<Gpu>) -> Snapshot {
    let facts = LibraryFacts {
        path: "libnvidia-ml.so.1".to_owned(),
        driver_version: "570.86.15".to_owned(),
        nvml_version: "12.570.86.15".to_owned(),
        cuda_version: "12.8".to_owned(),
        simulated: None,
    };
    Snapshot { taken: now(), selection, library: Library::Up(Arc::new(facts)), gpus }
}

pub(crate) fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000)
}

/// Host `node-a`, spelt as dcgm-exporter 4.8.2 does.
pub(crate) fn settings() -> Settings {
    Settings {
        labels: LabelScheme {
            host: Some("node-a".to_owned()),
            host_label: HostLabel::Upper,
            ..LabelScheme::default()
        },
        attribution: AttributionScheme::default(),
        usage: Vec::new(),
        openmetrics: false,
        max_age: Duration::from_secs(30),
        xid_window: Duration::from_secs(300),
        clock_window: Duration::from_secs(300),
    }
}

pub(crate) fn telemetry() -> Telemetry {
    Telemetry::new(Build { version: "1.0.0", revision: "abc" })
}

pub(crate) fn page(snapshot: &Snapshot, settings: &Settings) -> Page {
    Renderer::default().render((snapshot, &Attribution::default()), settings, &telemetry(), now())
}

pub(crate) fn text(snapshot: &Snapshot, settings: &Settings) -> String {
    String::from_utf8(page(snapshot, settings).text.encoded(Encoding::Identity).to_vec()).unwrap()
}

/// The part of the page that the counters file selects.
pub(crate) fn selected(snapshot: &Snapshot, settings: &Settings) -> String {
    let page = text(snapshot, settings);
    let (selected, _) = page.split_once("# HELP nvml_up ").unwrap();
    selected.to_owned()
}
