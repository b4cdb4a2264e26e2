//! Which of the kubelet's resources are NVIDIA GPUs.

use std::collections::BTreeSet;

use super::{DeviceId, Target};

/// Names that NVIDIA's, GKE's and `HAMi`'s plugins give whole GPUs and their shares.
const NAMES: [&str; 2] = ["nvidia.com/gpu", "nvidia.com/gpu.shared"];

/// What names of MIG devices begin with; behind it stands the profile, and `.shared` for shares.
const MIG_PREFIX: &str = "nvidia.com/mig-";

/// What all names of NVIDIA's resources begin with.
const DOMAIN: &str = "nvidia.com/";

/// The resource names that are taken for GPUs whatever their ids look like.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResourceNames {
    extra: BTreeSet<String>,
}

/// What one id of one resource is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// A device of ours.
    Device(DeviceId),
    /// The resource is a GPU by its name, and the id is of no known form.
    Unknown,
    /// Something else: a network card, a licence, another vendor's GPU.
    NotOurs,
}

impl ResourceNames {
    /// Takes these full names for GPUs too (`--nvidia-resource-names`).
    #[must_use]
    pub fn new(extra: impl IntoIterator<Item = String>) -> Self {
        Self { extra: extra.into_iter().collect() }
    }

    /// Judges an id by its resource's name, and if that says nothing by its form.
    ///
    /// A full UUID behind `GPU-` or `MIG-` is a GPU under any name, since clouds and forks rename.
    /// PCI addresses and bare UUIDs are anyone's: they count with NVIDIA's names only.
    #[must_use]
    pub fn judge(&self, resource: &str, id: &str) -> Verdict {
        let id = DeviceId::parse(id);
        if self.names(resource) {
            return id.map_or(Verdict::Unknown, Verdict::Device);
        }
        let ours = |id: &DeviceId| match &id.target {
            // KubeVirt's plugin names GPUs in capitals; NVIDIA's network cards, which go by PCI
            // address under the same domain, have names in small letters.
            Target::Pci(_) => resource.strip_prefix(DOMAIN).is_some_and(is_shouted),
            Target::Mdev(_) => resource.starts_with(DOMAIN),
            _ => id.is_full_uuid(),
        };
        id.filter(ours).map_or(Verdict::NotOurs, Verdict::Device)
    }

    /// Whether the name alone makes it a GPU.
    fn names(&self, resource: &str) -> bool {
        NAMES.contains(&resource)
            || resource.strip_prefix(MIG_PREFIX).is_some_and(|profile| !profile.is_empty())
            || self.extra.contains(resource)
    }
}

fn is_shouted(name: &str) -> bool {
    !name.is_empty() && !name.bytes().any(|byte| byte.is_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "4cf8db2d-06c0-7d70-1a51-e59b25b2c16c";

    fn judged(extra: &[&str], resource: &str, id: &str) -> &'static str {
        let names = ResourceNames::new(extra.iter().map(|&name| name.to_owned()));
        match names.judge(resource, id) {
            Verdict::Device(_) => "device",
            Verdict::Unknown => "unknown",
            Verdict::NotOurs => "not ours",
        }
    }

    #[test]
    fn known_names_are_gpus_whatever_the_form_of_the_id() {
        for resource in [
            "nvidia.com/gpu",
            "nvidia.com/gpu.shared",
            "nvidia.com/mig-1g.10gb",
            "nvidia.com/mig-1g.10gb.me",
            "nvidia.com/mig-1g.10gb.shared",
        ] {
            for id in ["GPU-0", "nvidia0", "all", "tegra", "0000:3b:00.0", UUID] {
                assert_eq!(judged(&[], resource, id), "device", "{resource} {id}");
            }
            assert_eq!(judged(&[], resource, "card-7"), "unknown", "{resource}");
        }
    }

    /// dcgm-exporter's case 64.
    #[test]
    fn case_64_a_name_that_is_given_is_a_gpu_and_one_that_is_not_is_not() {
        assert_eq!(judged(&["nvidia.com/a100"], "nvidia.com/a100", "nvidia0"), "device");
        assert_eq!(judged(&["nvidia.com/a100"], "nvidia.com/a100", "card-7"), "unknown");
        assert_eq!(judged(&["nvidia.com/a100"], "nvidia.com/a100.shared", "nvidia0"), "not ours");
        assert_eq!(judged(&[], "nvidia.com/a100", "nvidia0"), "not ours");
        assert_eq!(judged(&["example.com/gpu"], "example.com/gpu", "all"), "device");
    }

    #[test]
    fn a_full_uuid_is_a_gpu_under_any_name() {
        for id in [
            format!("GPU-{UUID}"),
            format!("GPU-{UUID}::1"),
            format!("MIG-{UUID}"),
            format!("MIG-GPU-{UUID}/1/0"),
        ] {
            assert_eq!(judged(&[], "nvidia.com/a100", &id), "device", "{id}");
            assert_eq!(judged(&[], "cloud.example/accelerator", &id), "device", "{id}");
        }
        assert_eq!(judged(&[], "cloud.example/accelerator", "GPU-0"), "not ours");
    }

    #[test]
    fn ids_that_anyone_could_have_are_not_ours_under_other_names() {
        for id in ["nvidia0", "nvidia0/gi1", "all", "tegra", "0000:3b:00.0", UUID, "", "x"] {
            assert_eq!(judged(&[], "example.com/gpu", id), "not ours", "{id}");
        }
    }

    #[test]
    fn gpus_of_virtual_machines_are_ours_and_network_cards_are_not() {
        assert_eq!(judged(&[], "nvidia.com/GA102GL_A10", "0000:3b:00.0"), "device");
        assert_eq!(judged(&[], "nvidia.com/GRID_T4-1Q", UUID), "device");
        assert_eq!(judged(&[], "nvidia.com/hostdev", "0000:3b:00.0"), "not ours");
        assert_eq!(judged(&[], "nvidia.com/", "0000:3b:00.0"), "not ours");
    }
}
