//! What users of devices use and spend, as families of our own: one series for each who uses a
//! device, so that sums over them never exceed the device.

use std::borrow::Cow;
use std::sync::Arc;

use super::labels::{Block, Further, Style};
use super::roster::Member;
use super::scheme::Settings;
use super::text::Writer;
use super::usage_accounting;
use crate::catalogue::{Kind, Value};
use crate::sampler::snapshot::InstanceIdentity;
use crate::usage::{Account, By, Details, GpuUse, Ledger, Share, Tenant, Usage, Use};

/// The families of what is used now: the part of the name behind the tenant's word, the help text
/// behind the tenant's kind, and the value.
type Gauge = (&'static str, &'static str, fn(&Use) -> Option<Value>);

const GAUGES: [Gauge; 6] = [
    ("processes", "Processes on the device, by", |one| Some(Value::Uint(one.processes? as u64))),
    ("memory_used_bytes", "Device memory in use, by", |one| Some(Value::Uint(one.memory_bytes?))),
    ("sm_utilization_ratio", "Share of time in which kernels ran, by", |one| {
        Some(Value::Float(one.utilization?.sm))
    }),
    (
        "memory_copy_utilization_ratio",
        "Share of time in which memory was read or written, by",
        |one| Some(Value::Float(one.utilization?.memory)),
    ),
    ("encoder_utilization_ratio", "Share of time in which the video encoder worked, by", |one| {
        Some(Value::Float(one.utilization?.encoder))
    }),
    ("decoder_utilization_ratio", "Share of time in which the video decoder worked, by", |one| {
        Some(Value::Float(one.utilization?.decoder))
    }),
];

/// The same of accounts.
type Counter = (&'static str, &'static str, fn(&Account) -> Option<f64>);

const COUNTERS: [Counter; 3] = [
    ("energy_joules_total", "The device's energy that is charged, by", |account| account.joules),
    ("gpu_seconds_total", "Time for which the GPU, or a share of it, was held, by", |account| {
        Some(account.held_seconds)
    }),
    ("gpu_busy_seconds_total", "Time for which the GPU, or a share of it, worked, by", |account| {
        account.busy_seconds
    }),
];

/// What a page has to tell of usage.
#[derive(Debug, Clone, Copy)]
pub(super) struct Accounts<'a> {
    pub(super) usage: &'a Usage,
    pub(super) ledger: &'a Ledger,
}

/// Writes the families.
pub(super) fn write(
    writer: &mut Writer,
    members: &[Member<'_>],
    accounts: Accounts<'_>,
    settings: &Settings,
) {
    for by in &settings.usage {
        gauges(writer, *by, (members, accounts.usage), settings);
        counters(writer, *by, (members, accounts.ledger), settings);
    }
    usage_accounting::write(writer, members, settings);
    unattributed(writer, members, accounts.ledger, settings);
    left_out(writer, members, accounts.usage, settings);
}

fn gauges(
    writer: &mut Writer,
    by: By,
    (members, usage): (&[Member<'_>], &Usage),
    settings: &Settings,
) {
    let mut all: Vec<(&Use, String)> = Vec::new();
    for (member, gpu) in each(members, usage).filter(|(_, gpu)| gpu.by == by) {
        for device in &gpu.devices {
            let instance = device.instance.as_ref();
            let labels = |one| labels(member, instance, who(one), settings);
            all.extend(device.uses.iter().map(|one| (one, labels(one))));
        }
    }
    for (name, help, value) in GAUGES {
        // A process is one.
        if by == By::Process && name == "processes" {
            continue;
        }
        let (name, help) = (family(by, name), format!("{help} {}.", kind(by)));
        writer.gauge(&name, &help, |writer| {
            for (one, labels) in &all {
                let Some(value) = value(one) else { continue };
                writer.sample(&name, labels, value);
            }
        });
    }
}

fn counters(
    writer: &mut Writer,
    by: By,
    (members, ledger): (&[Member<'_>], &Ledger),
    settings: &Settings,
) {
    let mut all: Vec<(&Account, String)> = Vec::new();
    for member in members {
        for (tenant, account) in ledger.accounts(member.identity.index) {
            if tenant.by() == by {
                let who = (tenant, &account.details);
                let labels = labels(member, account.instance.as_ref(), who, settings);
                all.push((account, labels));
            }
        }
    }
    for (name, help, value) in COUNTERS {
        let (name, help) = (family(by, name), format!("{help} {}.", kind(by)));
        writer.family(&name, &help, Kind::Counter, |writer| {
            for (account, labels) in &all {
                let Some(value) = value(account) else { continue };
                writer.sample(&name, labels, Value::Float(value));
            }
        });
    }
}

fn family(by: By, name: &str) -> String {
    format!("nvml_{}_{name}", by.word())
}

fn kind(by: By) -> String {
    by.word().replace('_', " ")
}

fn who(one: &Use) -> (&Tenant, &Details) {
    (&one.tenant, &one.details)
}

/// GPUs that are to be served, with what is used of them.
fn each<'m, 'a>(
    members: &'m [Member<'a>],
    usage: &'m Usage,
) -> impl Iterator<Item = (&'m Member<'a>, &'m GpuUse)> {
    members.iter().filter(|member| member.reading().is_some()).flat_map(move |member| {
        let gpus = usage.gpus.iter();
        gpus.filter(|gpu| gpu.gpu == member.identity.index).map(move |gpu| (member, gpu))
    })
}

fn unattributed(writer: &mut Writer, members: &[Member<'_>], ledger: &Ledger, settings: &Settings) {
    const NAME: &str = "nvml_device_unattributed_energy_joules_total";
    const HELP: &str = "The GPU's energy that nobody is charged for, by kind of users and reason.";
    writer.family(NAME, HELP, Kind::Counter, |writer| {
        for member in members {
            for (by, reason, joules) in ledger.unattributed(member.identity.index) {
                let labels = vec![("by", by.word()), ("reason", reason.label())];
                let further = Further { attributes: labels, ..Further::default() };
                let block = Block::gpu(member.identity, Style::Own, &settings.labels, &further);
                writer.sample(NAME, block.as_str(), Value::Float(joules));
            }
        }
    });
}

fn left_out(writer: &mut Writer, members: &[Member<'_>], usage: &Usage, settings: &Settings) {
    const NAME: &str = "nvml_exporter_usage_left_out";
    const HELP: &str = "Users of the GPU without series, for there are too many.";
    writer.gauge(NAME, HELP, |writer| {
        for (member, gpu) in each(members, usage) {
            let count: usize = gpu.devices.iter().map(|device| device.left_out).sum();
            if count > 0 {
                let further =
                    Further { attributes: vec![("by", gpu.by.word())], ..Further::default() };
                let block = Block::gpu(member.identity, Style::Own, &settings.labels, &further);
                writer.sample(NAME, block.as_str(), Value::Uint(count as u64));
            }
        }
    });
}

/// Families that are missing on a GPU, with the reason, for `nvml_exporter_process_split_missing`.
pub(super) fn missing(usage: &Usage, gpu: u32) -> impl Iterator<Item = (String, &'static str)> {
    usage.gpus.iter().filter(move |one| one.gpu == gpu).flat_map(|one| {
        one.missing.iter().flat_map(move |(share, reason)| {
            let names: &[&str] = match share {
                Share::Memory => &["memory_used_bytes"],
                Share::Utilization => &["sm_utilization_ratio"],
            };
            names.iter().map(move |name| (format!("nvml_{}_{name}", one.by.word()), *reason))
        })
    })
}

/// The labels of one tenant's series, rendered.
fn labels(
    member: &Member<'_>,
    instance: Option<&Arc<InstanceIdentity>>,
    (tenant, details): (&Tenant, &Details),
    settings: &Settings,
) -> String {
    let told = told(tenant, details, settings);
    let mut attributes: Vec<(&str, &str)> =
        told.iter().map(|(name, value)| (*name, &**value)).collect();
    let facts = details.facts.iter().flat_map(|facts| &facts.labels);
    attributes.extend(facts.map(|(name, value)| (name.as_str(), value.as_str())));
    attributes.sort_unstable();
    let further = Further { attributes, ..Further::default() };
    let (gpu, scheme) = (member.identity, &settings.labels);
    let block = match instance {
        Some(instance) => Block::instance((gpu, instance), Style::Own, scheme, &further),
        None => Block::gpu(gpu, Style::Own, scheme, &further),
    };
    block.as_str().to_owned()
}

/// Who the tenant is.
fn told<'a>(
    tenant: &'a Tenant,
    details: &'a Details,
    settings: &'a Settings,
) -> Vec<(&'a str, Cow<'a, str>)> {
    let [_, namespace_name, pod_name] = settings.labels.pod_names();
    let attribution = &settings.attribution;
    let mut labels: Vec<(&str, Cow<'_, str>)> = Vec::new();
    let mut add = |name, value: Cow<'a, str>| labels.push((name, value));
    let owner = details.owner.as_deref();
    let user = || owner.and_then(|owner| owner.user.as_deref());
    match tenant {
        Tenant::Pod { namespace, pod } => {
            add(namespace_name, (&**namespace).into());
            add(pod_name, (&**pod).into());
            if attribution.pod_uid {
                let uid = details.facts.as_ref().map_or("", |facts| facts.uid.as_str());
                add("pod_uid", uid.into());
            }
        }
        Tenant::Container(id) => add("container_id", (&**id).into()),
        Tenant::User(id) => {
            add("user_id", id.to_string().into());
            // A number is better than no name to group by.
            add("user", user().map_or_else(|| id.to_string().into(), Cow::from));
        }
        Tenant::Unit(unit) => add("unit", (&**unit).into()),
        Tenant::SlurmJob(job) => add("hpc_job", (&**job).into()),
        Tenant::Process { pid, start: _ } => {
            add("pid", pid.to_string().into());
            if let Some(command) = owner.and_then(|owner| owner.command.as_deref()) {
                add("command", command.into());
            }
            if let Some(user) = user() {
                add("user", user.into());
            }
            if let Some((namespace, pod)) = &details.pod {
                add(namespace_name, (&**namespace).into());
                add(pod_name, (&**pod).into());
            }
        }
    }
    if let Some(node) = attribution.node.as_deref() {
        add("node", node.into());
    }
    labels
}
