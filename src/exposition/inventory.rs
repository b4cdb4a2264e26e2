//! What is there: the library, the driver, the GPUs and instances, as info series. Not
//! selectable; GPUs without a reading are listed too.

use super::labels::{Block, Insert, Zone};
use super::roster::Member;
use super::scheme::LabelScheme;
use super::text::Writer;
use crate::catalogue::Value;
use crate::sampler::snapshot::{InstanceIdentity, Library, LibraryFacts, Snapshot};

const ONE: Value = Value::Int(1);

/// Writes the families.
pub(super) fn write(
    writer: &mut Writer,
    snapshot: &Snapshot,
    members: &[Member<'_>],
    scheme: &LabelScheme,
) {
    library(writer, &snapshot.library, scheme);
    devices(writer, members);
    instances(writer, members, scheme);
}

fn library(writer: &mut Writer, library: &Library, scheme: &LabelScheme) {
    let down = match library {
        Library::Up(_) => None,
        Library::Starting => Some("starting"),
        Library::Down { reason, .. } => Some(*reason),
    };
    writer.gauge("nvml_up", "Whether NVML is loaded and initialised.", |writer| {
        let block = Block::of(scheme.host_labels());
        writer.sample("nvml_up", block.as_str(), Value::Int(i64::from(down.is_none())));
    });
    writer.gauge("nvml_down", "Why NVML is not up.", |writer| {
        if let Some(reason) = down {
            let block = Block::of(std::iter::once(("reason", reason)).chain(scheme.host_labels()));
            writer.sample("nvml_down", block.as_str(), ONE);
        }
    });
    writer.gauge("nvml_driver_info", "Versions of the node's driver and libraries.", |writer| {
        if let Library::Up(facts) = library {
            let known = versions(facts).into_iter().filter(|(_, version)| !version.is_empty());
            let block = Block::of(known.chain(scheme.host_labels()));
            writer.sample("nvml_driver_info", block.as_str(), ONE);
        }
    });
}

fn versions(facts: &LibraryFacts) -> [(&'static str, &str); 3] {
    [
        ("driver_version", &facts.driver_version),
        ("nvml_version", &facts.nvml_version),
        ("cuda_version", &facts.cuda_version),
    ]
}

fn devices(writer: &mut Writer, members: &[Member<'_>]) {
    const NAME: &str = "nvml_device_info";
    writer.gauge(NAME, "Facts about each GPU that do not change.", |writer| {
        for member in members {
            let minor = member.identity.minor.map(|minor| minor.to_string());
            let mut labels: Vec<Insert<'_>> = member
                .identity
                .info
                .iter()
                .map(|(name, value)| Insert { zone: Zone::Extra, name, value })
                .collect();
            if let Some(value) = &minor {
                labels.push(Insert { zone: Zone::Extra, name: "minor_number", value });
            }
            labels.sort_by_key(|label| label.name);
            labels.dedup_by_key(|label| label.name);
            writer.sample_with(NAME, &member.block, &labels, ONE);
        }
    });
}

fn instances(writer: &mut Writer, members: &[Member<'_>], scheme: &LabelScheme) {
    const NAME: &str = "nvml_mig_instance_info";
    writer.gauge(NAME, "MIG compute instances and their UUIDs.", |writer| {
        for member in members {
            for instance in &member.instances {
                let uuids = &instance.identity.uuids;
                if uuids.is_empty() {
                    let block = instance_block(member, &instance.identity, None, scheme);
                    writer.sample(NAME, block.as_str(), ONE);
                }
                for compute in uuids {
                    let block = instance_block(member, &instance.identity, Some(compute), scheme);
                    writer.sample(NAME, block.as_str(), ONE);
                }
            }
        }
    });
}

/// A GPU instance without compute instances is listed without the last two labels.
fn instance_block<'a>(
    member: &Member<'_>,
    instance: &InstanceIdentity,
    compute: Option<&(u32, String)>,
    scheme: &'a LabelScheme,
) -> Block<'a> {
    let gpu = member.identity.index.to_string();
    let id = instance.gpu_instance.to_string();
    let compute = compute.map(|(id, uuid)| (id.to_string(), uuid.as_str()));
    let identity = [
        ("gpu", gpu.as_str()),
        (scheme.uuid_name(), &member.identity.uuid),
        ("GPU_I_ID", &id),
        ("GPU_I_PROFILE", &instance.profile),
    ];
    let compute = compute
        .iter()
        .flat_map(|(id, uuid)| [("compute_instance", id.as_str()), ("mig_uuid", *uuid)]);
    Block::of(identity.into_iter().chain(compute).chain(scheme.host_labels()))
}
