//! What users of devices use and spend, as families of our own: one series for each who uses a
//! device, so that sums over them never exceed the device.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use super::labels::{Block, Further, Insert, Style, Zone};
use super::roster::Member;
use super::scheme::Settings;
use super::text::Writer;
use super::usage_accounting;
use crate::catalogue::{Kind, Value};
use crate::sampler::snapshot::InstanceIdentity;
use crate::usage::{Account, By, Details, Ledger, Share, Tenant, Usage, Use};

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
        let all = rows(members, *by, accounts, settings);
        for (name, help, value) in GAUGES {
            // A process is one.
            if *by == By::Process && name == "processes" {
                continue;
            }
            let (name, help) = (family(*by, name), format!("{help} {}.", kind(*by)));
            writer.gauge(&name, &help, |writer| {
                for row in &all {
                    let Some(value) = row.now.and_then(value) else { continue };
                    writer.sample(&name, &row.labels, value);
                }
            });
        }
        for (name, help, value) in COUNTERS {
            let (name, help) = (family(*by, name), format!("{help} {}.", kind(*by)));
            writer.family(&name, &help, Kind::Counter, |writer| {
                for row in &all {
                    let Some(value) = row.account.and_then(value) else { continue };
                    writer.sample(&name, &row.labels, Value::Float(value));
                }
            });
        }
    }
    usage_accounting::write(writer, members, settings);
    unattributed(writer, members, accounts.ledger);
    left_out(writer, members, accounts.usage);
}

/// One who uses a device, or did.
struct Row<'a> {
    labels: String,
    now: Option<&'a Use>,
    account: Option<&'a Account>,
}

/// All of one kind, by GPU; those that have left come last.
fn rows<'a>(
    members: &[Member<'_>],
    by: By,
    accounts: Accounts<'a>,
    settings: &Settings,
) -> Vec<Row<'a>> {
    let mut all = Vec::new();
    for member in members {
        let index = member.identity.index;
        let accounts_of = accounts.ledger.accounts(index).filter(|(tenant, _)| tenant.by() == by);
        let mut left: BTreeMap<(Option<u32>, &Tenant), &Account> = accounts_of
            .map(|(tenant, account)| {
                let id = account.instance.as_ref().map(|instance| instance.gpu_instance);
                ((id, tenant), account)
            })
            .collect();
        let is_fresh = member.reading().is_some();
        let gpus = accounts.usage.gpus.iter();
        for gpu in gpus.filter(|gpu| is_fresh && gpu.gpu == index && gpu.by == by) {
            for device in &gpu.devices {
                let instance = device.instance.as_ref();
                let id = instance.map(|instance| instance.gpu_instance);
                all.extend(device.uses.iter().map(|one| Row {
                    labels: labels(member, instance, (&one.tenant, &one.details), settings),
                    now: Some(one),
                    account: left.remove(&(id, &one.tenant)),
                }));
            }
        }
        all.extend(left.into_iter().map(|((_, tenant), account)| Row {
            labels: labels(member, account.instance.as_ref(), (tenant, &account.details), settings),
            now: None,
            account: Some(account),
        }));
    }
    // A process can have the number and the name of one that has ended; the page would be refused.
    let mut seen = HashSet::new();
    all.retain(|row| seen.insert(row.labels.clone()));
    all
}

fn family(by: By, name: &str) -> String {
    format!("nvml_{}_{name}", by.word())
}

fn kind(by: By) -> String {
    by.word().replace('_', " ")
}

fn unattributed(writer: &mut Writer, members: &[Member<'_>], ledger: &Ledger) {
    const NAME: &str = "nvml_device_unattributed_energy_joules_total";
    const HELP: &str = "The GPU's energy that nobody is charged for, by kind of users and reason.";
    writer.family(NAME, HELP, Kind::Counter, |writer| {
        for member in members {
            for (by, reason, joules) in ledger.unattributed(member.identity.index) {
                let label = |name, value| Insert { zone: Zone::Attribute, name, value };
                let labels = [label("by", by.word()), label("reason", reason.label())];
                writer.sample_with(NAME, &member.block, &labels, Value::Float(joules));
            }
        }
    });
}

fn left_out(writer: &mut Writer, members: &[Member<'_>], usage: &Usage) {
    const NAME: &str = "nvml_exporter_usage_left_out";
    const HELP: &str = "Users of the GPU without series, for there are too many.";
    writer.gauge(NAME, HELP, |writer| {
        for member in members.iter().filter(|member| member.reading().is_some()) {
            for gpu in usage.gpus.iter().filter(|gpu| gpu.gpu == member.identity.index) {
                let count: usize = gpu.devices.iter().map(|device| device.left_out).sum();
                if count > 0 {
                    let by = Insert { zone: Zone::Attribute, name: "by", value: gpu.by.word() };
                    writer.sample_with(NAME, &member.block, &[by], Value::Uint(count as u64));
                }
            }
        }
    });
}

/// Families that are missing on a GPU, with the reason, for `nvml_exporter_process_split_missing`.
pub(super) fn missing(usage: &Usage, gpu: u32) -> impl Iterator<Item = (String, &'static str)> {
    usage.gpus.iter().filter(move |one| one.gpu == gpu).flat_map(|one| {
        one.missing.iter().map(|(share, reason)| {
            let name = match share {
                Share::Memory => "memory_used_bytes",
                Share::Utilization => "sm_utilization_ratio",
            };
            (family(one.by, name), *reason)
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
            let number = || owner.and_then(|owner| owner.user_id).map(|id| id.to_string().into());
            if let Some(user) = user().map(Cow::from).or_else(number) {
                add("user", user);
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
