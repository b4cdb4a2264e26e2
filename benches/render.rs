//! How long a page takes: rendered and compressed, for a large node split into instances and for
//! a usual one.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use nvml_exporter::attribution::{Allocations, Attribution, Container, DeviceId, Holding, Target};
use nvml_exporter::catalogue::{Call, Entity, Fact, Field, Kind, Read, Row, Selection, Value};
use nvml_exporter::exposition::Encoding;
use nvml_exporter::exposition::{AttributionScheme, Body, LabelScheme, Renderer, Settings, Show};
use nvml_exporter::sampler::snapshot::{
    Gpu, GpuIdentity, GpuReading, InstanceIdentity, InstanceReading, Known, Library, Sample,
    Snapshot, Status,
};
use nvml_exporter::telemetry::Telemetry;
use nvml_exporter::telemetry::metrics::Build;

const ROWS: u16 = 150;

criterion_group!(benches, render, pods);
criterion_main!(benches);

fn render(criterion: &mut Criterion) {
    let nobody = Attribution::default();
    for (name, gpus, instances) in [("16 GPUs x 7 instances", 16, 7), ("8 GPUs", 8, 0)] {
        let mut page = Rendering::new(snapshot(gpus, instances), AttributionScheme::default());
        let bytes = page.render(&nobody);
        let mut group = criterion.benchmark_group(name);
        group.throughput(Throughput::Bytes(bytes.len() as u64));
        group.bench_function("render", |bencher| {
            bencher.iter(|| page.render(black_box(&nobody)));
        });
        group.sample_size(20);
        group.bench_function("gzip", |bencher| {
            bencher.iter(|| Body::new(bytes.clone()).encoded(Encoding::Gzip));
        });
        group.bench_function("zstd", |bencher| {
            bencher.iter(|| Body::new(bytes.clone()).encoded(Encoding::Zstd));
        });
        group.finish();
    }
}

/// What pods add to a page: 200 of them on 112 instances, most of which two share.
fn pods(criterion: &mut Criterion) {
    let snapshot = snapshot(16, 7);
    let attribution = attribution(&snapshot, 200);
    let scheme = |show| AttributionScheme { pods: true, show, ..AttributionScheme::default() };
    let mut group = criterion.benchmark_group("16 GPUs x 7 instances, 200 pods");
    group.bench_function("without", |bencher| {
        let mut page = Rendering::new(snapshot.clone(), AttributionScheme::default());
        bencher.iter(|| page.render(black_box(&Attribution::default())));
    });
    for (name, show) in [("labels", Show::Labels), ("info", Show::Info)] {
        let mut page = Rendering::new(snapshot.clone(), scheme(show));
        group.bench_function(name, |bencher| {
            bencher.iter(|| page.render(black_box(&attribution)));
        });
    }
    group.finish();
}

/// A page that is made over and over.
struct Rendering {
    snapshot: Snapshot,
    settings: Settings,
    telemetry: Telemetry,
    renderer: Renderer,
}

impl Rendering {
    fn new(snapshot: Snapshot, attribution: AttributionScheme) -> Self {
        let labels = LabelScheme { host: Some("node-a".to_owned()), ..LabelScheme::default() };
        let max_age = Duration::from_secs(30);
        Self {
            snapshot,
            settings: Settings {
                labels,
                attribution,
                usage: Vec::new(),
                openmetrics: false,
                max_age,
                xid_window: max_age,
                clock_window: max_age,
            },
            telemetry: Telemetry::new(Build { version: "0", revision: "0" }),
            renderer: Renderer::default(),
        }
    }

    fn render(&mut self, attribution: &Attribution) -> Bytes {
        let seen = (black_box(&self.snapshot), attribution);
        let page = self.renderer.render(seen, &self.settings, &self.telemetry, now());
        page.text.encoded(Encoding::Identity)
    }
}

/// Pods in turn on every instance, as shares of it.
fn attribution(snapshot: &Snapshot, pods: usize) -> Attribution {
    let instances: Vec<_> = snapshot
        .gpus
        .iter()
        .flat_map(|gpu| gpu.reading.iter().flat_map(|reading| &reading.instances))
        .map(|instance| instance.identity.uuids[0].1.clone())
        .collect();
    let holding = |pod: usize| Holding {
        container: Arc::new(Container {
            namespace: format!("team-{}", pod % 9),
            pod: format!("training-job-{pod:04}-7d9f8b6c5d-x2x4z"),
            name: "main".to_owned(),
        }),
        resource: "nvidia.com/mig-1g.18gb".into(),
        id: DeviceId {
            target: Target::Mig(instances[pod % instances.len()].clone()),
            replica: Some((pod / instances.len()).to_string()),
        },
        claim: None,
        since: 1,
    };
    let holdings = (0..pods).map(holding).collect();
    let allocations = Allocations { holdings, ..Allocations::default() };
    Attribution { allocations: Some(Arc::new(allocations)), ..Attribution::default() }
}

fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000)
}

fn snapshot(gpus: u32, instances: u32) -> Snapshot {
    Snapshot {
        taken: now(),
        selection: Arc::new(selection()),
        library: Library::Starting,
        gpus: (0..gpus).map(|index| gpu(index, instances)).collect(),
    }
}

/// One row in ten is of links, two are an instance's own, the rest the board's.
fn selection() -> Selection {
    let rows = (0..ROWS).map(|at| {
        let entity = match at % 10 {
            0 => Entity::Link,
            1 | 2 => Entity::Instance,
            _ => Entity::Gpu,
        };
        let name = format!("DCGM_FI_DEV_SYNTHETIC_FIELD_{at:03}").leak();
        let read = Read::Call(Call::Temperature, |_| None);
        row(Box::leak(Box::new(Field::new(name, at + 1, Kind::Gauge, entity, read))))
    });
    let read = Read::Fact(Fact::DriverVersion);
    let driver = Field::new("DCGM_FI_DRIVER_VERSION", 1, Kind::Label, Entity::Node, read);
    let labels = vec![row(Box::leak(Box::new(driver)))];
    Selection { rows: rows.collect(), labels, ..Selection::default() }
}

fn row(field: &'static Field) -> Row {
    let help = "A sentence of usual length about the field (in MHz).";
    Row { field, name: field.name.into(), kind: field.kind, help: help.into() }
}

fn gpu(index: u32, instances: u32) -> Gpu {
    let board = (0..ROWS).flat_map(|row| match row % 10 {
        0 => (0..18).map(|link| sample(index, row, Some(link))).collect(),
        _ => vec![sample(index, row, None)],
    });
    let reading = GpuReading {
        read_at: now(),
        took: Duration::from_millis(4),
        whole: instances == 0,
        board: board.collect(),
        labels: vec![(0, "570.86.15".into())],
        texts: Vec::new(),
        instances: (0..instances).map(|id| instance(index, id)).collect(),
        mig_slices: (instances > 0).then_some(7),
        unsupported: Vec::new(),
        processes: None,
        accounting: Vec::new(),
        signs: None,
        peers: Vec::new(),
    };
    let identity = GpuIdentity {
        index,
        uuid: format!("GPU-{index:08x}-2222-3333-4444-555555555555"),
        pci_bus_id: format!("00000000:{index:02X}:00.0"),
        model: "NVIDIA H200".to_owned(),
        minor: Some(index),
        info: vec![("serial", "1650000000000".to_owned())],
    };
    let last_read = Some(reading.read_at);
    let known = Arc::new(Known::of(&reading));
    let reading = Some(Arc::new(reading));
    let history = Arc::default();
    Gpu { identity: Arc::new(identity), status: Status::Up, reading, last_read, known, history }
}

fn instance(index: u32, id: u32) -> InstanceReading {
    let own = (0..ROWS).filter(|row| matches!(row % 10, 1 | 2));
    InstanceReading {
        identity: Arc::new(InstanceIdentity {
            gpu_instance: id,
            profile: "1g.18gb".to_owned(),
            uuids: vec![(0, format!("MIG-{index:08x}-{id:04x}-3333-4444-555555555555"))],
            placement: None,
        }),
        samples: own.map(|row| sample(index + id, row, None)).collect(),
    }
}

/// One value in three is a fraction, one a large count, one a small number.
fn sample(seed: u32, row: u16, link: Option<u8>) -> Sample {
    let seed = i64::from(seed) * 7919 + i64::from(row) * 104_729 + i64::from(link.unwrap_or(0));
    let value = match row % 3 {
        0 => Value::Float(seed as f64 / 1000.0),
        1 => Value::Int(seed * 1_000_003),
        _ => Value::Int(seed % 100),
    };
    Sample { row, link, value }
}
