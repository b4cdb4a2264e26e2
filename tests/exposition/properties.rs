//! What holds for every page, whatever the devices say of themselves and whichever values are
//! missing. A plain model says which points there must be.

use std::sync::Arc;

use nvml_exporter::catalogue::{Entity, Field, Row, Value};
use nvml_exporter::exposition::{LabelScheme, Settings};
use nvml_exporter::sampler::snapshot::{
    Gpu, GpuIdentity, GpuReading, InstanceIdentity, InstanceReading, Sample, Snapshot,
};
use proptest::prelude::*;
use proptest::sample::subsequence;

use crate::parser::{Point, parse};
use crate::support::*;

/// All shapes of rows, sorted by name.
static ROWS: [&Field; 8] =
    [&FB_USED, &TEMP, &LINK, &SERIAL, &EVENT_IDLE, &EVENT_POWER, &MEMORY, &POWER];
const SERIAL_ROW: u16 = 3;

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<i64>().prop_map(Value::Int),
        any::<u64>().prop_map(Value::Uint),
        any::<f64>().prop_map(Value::Float),
        prop_oneof![Just(f64::NAN), Just(f64::INFINITY), Just(-0.0)].prop_map(Value::Float),
    ]
}

/// Any text, and much of it such that escaping has work to do.
fn label_text() -> impl Strategy<Value = String> {
    prop_oneof![any::<String>(), "[a\"\\\\\n{},= #é]{0,12}"]
}

prop_compose! {
    fn board()(values in prop::collection::vec(prop::option::of(value()), ROWS.len()),
               links in subsequence(vec![0_u8, 1, 17, 255], 0..=4)) -> Vec<Sample> {
        (0_u16..).zip(ROWS).zip(values).flat_map(|((row, field), value)| {
            let links = match field.entity {
                _ if row == SERIAL_ROW => Vec::new(),
                Entity::Link => links.iter().copied().map(Some).collect(),
                _ => vec![None],
            };
            links.into_iter().filter_map(move |link| Some(Sample { row, link, value: value? }))
        }).collect()
    }
}

prop_compose! {
    fn instance_reading(id: u32)(profile in label_text(),
                                 values in prop::collection::vec(prop::option::of(value()), 2))
                                 -> InstanceReading {
        let samples = [0, 6].into_iter().zip(values)
            .filter_map(|(row, value)| Some(at(row, value?)));
        InstanceReading {
            identity: Arc::new(InstanceIdentity {
                gpu_instance: id, profile, ..Default::default()
            }),
            samples: samples.collect(),
        }
    }
}

prop_compose! {
    fn gpu(index: u32)(texts in prop::collection::vec(label_text(), 3),
                       board in board(),
                       whole in any::<bool>(),
                       driver in prop::option::of(label_text()),
                       serial in prop::option::of(label_text()),
                       instances in prop::collection::vec(any::<bool>(), 3)
                           .prop_flat_map(|there| there.iter().zip([1, 5, 9])
                               .filter(|(there, _)| **there)
                               .map(|(_, id)| instance_reading(id)).collect::<Vec<_>>()))
                       -> Gpu {
        let [uuid, pci_bus_id, model]: [String; 3] = texts.try_into().unwrap();
        let reading = GpuReading {
            whole,
            labels: driver.map(|driver| (0, driver.into())).into_iter().collect(),
            texts: serial.map(|serial| (SERIAL_ROW, serial.into())).into_iter().collect(),
            instances,
            ..reading(board)
        };
        up(GpuIdentity { index, uuid, pci_bus_id, model, ..Default::default() }, reading)
    }
}

prop_compose! {
    fn node()(gpus in (0..4_u32)
        .prop_flat_map(|count| (0..count).map(gpu).collect::<Vec<_>>()).prop_shuffle(),
              help in label_text()) -> Snapshot {
        let mut selection = Arc::unwrap_or_clone(selection(&ROWS, &[&DRIVER]));
        selection.rows[0].help = help.into();
        snapshot(Arc::new(selection), gpus)
    }
}

fn scheme() -> impl Strategy<Value = Settings> {
    (prop::option::of(label_text()), any::<bool>()).prop_map(|(host, old_namespace)| Settings {
        labels: LabelScheme { host, old_namespace, ..LabelScheme::default() },
        ..settings()
    })
}

/// The points that the page must have, made the slow way.
fn model(snapshot: &Snapshot, scheme: &LabelScheme) -> Vec<(String, Labels, Value)> {
    let mut points = Vec::new();
    for gpu in &snapshot.gpus {
        let reading = gpu.reading.as_ref().unwrap();
        let exists = reading.whole || !reading.instances.is_empty();
        for sample in reading.board.iter().filter(|_| exists) {
            let row = &snapshot.selection.rows[usize::from(sample.row)];
            let own = row.field.id == 0;
            let on_gpu = match row.field.entity {
                Entity::Link => true,
                Entity::Instance => reading.whole,
                Entity::Gpu | Entity::Node => reading.whole || own,
            };
            if on_gpu {
                points.push(point(gpu, None, sample, row, scheme));
            }
            if matches!(row.field.entity, Entity::Gpu | Entity::Node) && !own {
                for instance in &reading.instances {
                    points.push(point(gpu, Some(instance), sample, row, scheme));
                }
            }
        }
        for instance in &reading.instances {
            for sample in &instance.samples {
                let row = &snapshot.selection.rows[usize::from(sample.row)];
                points.push(point(gpu, Some(instance), sample, row, scheme));
            }
        }
        for (row, text) in &reading.texts {
            let row = &snapshot.selection.rows[usize::from(*row)];
            let sample = int(0, 1);
            let whole = reading.whole.then_some(None);
            for instance in whole.into_iter().chain(reading.instances.iter().map(Some)) {
                let mut point = point(gpu, instance, &sample, row, scheme);
                point.1.push(("serial".to_owned(), text.to_string()));
                points.push(point);
            }
        }
    }
    points.retain(|point| !matches!(point.2, Value::Float(value) if !value.is_finite()));
    points
}

type Labels = Vec<(String, String)>;

fn point(
    gpu: &Gpu,
    instance: Option<&InstanceReading>,
    sample: &Sample,
    row: &Row,
    scheme: &LabelScheme,
) -> (String, Labels, Value) {
    let identity = &gpu.identity;
    let index = identity.index.to_string();
    let host = scheme.host.clone().filter(|host| !host.is_empty());
    let mut labels: Vec<(&str, String)> = Vec::new();
    if let Some(link) = sample.link {
        labels.push(("nvlink", (u32::from(link) + 1).to_string()));
        labels.push(("gpu", index.clone()));
        labels.push(("gpu_uuid", identity.uuid.clone()));
        labels.push(("pci_bus_id", identity.pci_bus_id.clone()));
        labels.push(("device", format!("nvidia{index}")));
        labels.push(("model_name", identity.model.clone()));
        labels.retain(|(_, value)| !value.is_empty());
        labels.extend(host.map(|host| ("hostname", host)));
    } else {
        labels.push(("gpu", index.clone()));
        labels.push((if scheme.old_namespace { "uuid" } else { "UUID" }, identity.uuid.clone()));
        labels.push(("pci_bus_id", identity.pci_bus_id.clone()));
        labels.push(("device", format!("nvidia{index}")));
        let model = if row.field.id == 0 { "model_name" } else { "modelName" };
        labels.push((model, identity.model.clone()));
        if let Some(instance) = instance {
            labels.push(("GPU_I_PROFILE", instance.identity.profile.clone()));
            labels.push(("GPU_I_ID", instance.identity.gpu_instance.to_string()));
        }
        labels.extend(host.map(|host| ("hostname", host)));
    }
    for (_, driver) in &gpu.reading.as_ref().unwrap().labels {
        labels.push(("DCGM_FI_DRIVER_VERSION", driver.to_string()));
    }
    labels.extend(row.field.label.map(|(name, value)| (name, value.to_owned())));
    let labels = labels.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    (row.name.to_string(), labels, sample.value)
}

fn is(printed: &str, value: Value) -> bool {
    match value {
        Value::Int(value) => printed == value.to_string(),
        Value::Uint(value) => printed == value.to_string(),
        // Bit for bit would tell -0 from 0, which no query does.
        Value::Float(value) => printed.parse() == Ok(value),
    }
}

proptest! {
    /// The reader refuses empty families, series that stand twice and values that are no numbers,
    /// so this covers those too, over the whole page.
    #[test]
    fn a_page_reads_back_as_the_points_of_the_model(node in node(), settings in scheme()) {
        let families = parse(&text(&node, &settings));
        if let Some(first) = families.iter().find(|family| family.name == ROWS[0].name) {
            prop_assert_eq!(&first.help, &*node.selection.rows[0].help);
        }
        let mut found: Vec<Point> = families
            .into_iter()
            .take_while(|family| family.name != "nvml_up")
            .flat_map(|family| family.points)
            .collect();
        let mut expected = model(&node, &settings.labels);
        found.sort_by(|a, b| (&a.name, &a.labels).cmp(&(&b.name, &b.labels)));
        expected.sort_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
        prop_assert_eq!(found.len(), expected.len());
        for (found, (name, labels, value)) in found.iter().zip(&expected) {
            prop_assert_eq!((&found.name, &found.labels), (name, labels));
            prop_assert!(is(&found.value, *value), "{found:?} is not {value:?}");
        }
    }

    #[test]
    fn the_order_of_devices_and_instances_makes_no_difference(node in node(), turn in 0..4_usize) {
        let mut turned = node.clone();
        let count = turned.gpus.len().max(1);
        turned.gpus.rotate_left(turn % count);
        for gpu in &mut turned.gpus {
            let mut reading = gpu.reading.as_deref().unwrap().clone();
            reading.instances.reverse();
            gpu.reading = Some(Arc::new(reading));
        }
        let devices = |node: &Snapshot| {
            let page = text(node, &settings());
            page[..page.find("# HELP process_").unwrap()].to_owned()
        };
        prop_assert_eq!(devices(&node), devices(&turned));
    }

    #[test]
    fn a_gpu_or_instance_listed_twice_is_on_the_page_once(node in node()) {
        let mut twice = node.clone();
        twice.gpus.extend(node.gpus.iter().cloned());
        for gpu in &mut twice.gpus {
            let mut reading = gpu.reading.as_deref().unwrap().clone();
            reading.instances.extend(reading.instances.clone());
            gpu.reading = Some(Arc::new(reading));
        }
        prop_assert_eq!(selected(&node, &settings()), selected(&twice, &settings()));
        parse(&text(&twice, &settings()));
    }
}
