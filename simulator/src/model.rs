//! What a board model is: facts that all GPUs of that model share.

use serde::Deserialize;

/// A board model, as `models/*.toml` and the `[models]` table of a scenario describe it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Model {
    /// The product name, as `nvmlDeviceGetName` has it.
    pub(crate) name: String,
    /// `NVML_DEVICE_ARCH_*`.
    pub(crate) architecture: u32,
    /// `nvmlBrandType_t`.
    pub(crate) brand: u32,
    pub(crate) compute_capability: [i32; 2],
    pub(crate) cores: u32,
    pub(crate) pci_device_id: u32,
    pub(crate) pci_subsystem_id: u32,
    pub(crate) vbios: String,
    pub(crate) part_number: Option<String>,
    pub(crate) inforom: Option<Inforom>,
    /// Boards without a serial number say `NOT_SUPPORTED`.
    #[serde(default = "yes")]
    pub(crate) serial: bool,
    pub(crate) memory: Memory,
    pub(crate) power: Power,
    pub(crate) temperature: Temperature,
    pub(crate) clocks: Clocks,
    pub(crate) pcie: Pcie,
    pub(crate) nvlink: Option<NvLink>,
    pub(crate) c2c: Option<C2c>,
    #[serde(default)]
    pub(crate) fans: u32,
    #[serde(default)]
    pub(crate) ecc: Ecc,
    /// Which table of MIG profiles the board has.
    pub(crate) mig: Option<String>,
    /// Whether the GPU is part of an `NVSwitch` fabric.
    #[serde(default)]
    pub(crate) fabric: bool,
    /// Whether a screen can hang on it.
    #[serde(default)]
    pub(crate) display: bool,
    /// Functions that answer `NOT_SUPPORTED` on this model.
    #[serde(default)]
    pub(crate) unsupported: Vec<String>,
    /// Field ids of `nvmlDeviceGetFieldValues` that answer `NOT_SUPPORTED` on this model.
    #[serde(default)]
    pub(crate) unsupported_fields: Vec<u32>,
}

impl Model {
    /// Whether the board has GPU performance monitoring: Hopper and later have.
    pub(crate) fn gpm(&self) -> bool {
        self.architecture >= 9
    }
}

fn yes() -> bool {
    true
}

/// The `InfoROM`: image version and the OEM, ECC and power objects.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Inforom {
    pub(crate) image: String,
    pub(crate) oem: String,
    pub(crate) ecc: Option<String>,
    pub(crate) power: Option<String>,
}

/// Framebuffer and BAR1.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Memory {
    pub(crate) total_mib: u64,
    pub(crate) reserved_mib: u64,
    pub(crate) bus_bits: u32,
    pub(crate) bar1_mib: u64,
}

/// Power in watts.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Power {
    pub(crate) idle: f64,
    pub(crate) limit: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

/// Temperatures in degrees Celsius.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Temperature {
    /// At no load, and at full load in the long run.
    pub(crate) idle: f64,
    pub(crate) full: f64,
    pub(crate) max_operating: u32,
    pub(crate) slowdown: u32,
    pub(crate) shutdown: u32,
    /// The limit of the memory; boards without a memory sensor lack it.
    pub(crate) memory_max: Option<u32>,
}

/// Clocks in MHz.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Clocks {
    pub(crate) idle: u32,
    pub(crate) max: u32,
    /// The application clock; `GeForce` boards have none.
    pub(crate) application: Option<u32>,
    pub(crate) memory: Vec<u32>,
    pub(crate) video: u32,
}

/// The PCI Express link.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Pcie {
    pub(crate) generation: u32,
    pub(crate) width: u32,
}

impl Pcie {
    /// Bytes per second at full load, sent and received: a small part of what the link can do.
    pub(crate) fn rates(&self) -> (f64, f64) {
        let lane = match self.generation {
            1 => 0.25e9,
            2 => 0.5e9,
            3 => 0.985e9,
            4 => 1.97e9,
            _ => 3.94e9,
        };
        let link = lane * f64::from(self.width);
        (0.05 * link, 0.09 * link)
    }
}

/// `NVLink`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NvLink {
    pub(crate) links: u32,
    /// `nvmlNvlinkVersion_t`.
    pub(crate) version: u32,
    /// The speed of a link in MB/s.
    pub(crate) speed: u32,
    /// Whether the other end is a switch.
    pub(crate) switch: bool,
}

impl NvLink {
    /// Bytes per second over a link at full load, in each direction.
    pub(crate) fn rate(&self) -> f64 {
        0.22e6 * f64::from(self.speed)
    }
}

/// The link to the CPU of a superchip.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct C2c {
    pub(crate) links: u32,
    /// The bandwidth of a link in MB/s.
    pub(crate) bandwidth: u32,
}

/// What a board does about memory errors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Ecc {
    /// No ECC.
    #[default]
    None,
    /// ECC with page retirement (Volta, Turing).
    Pages,
    /// ECC with row remapping (Ampere and later).
    Rows,
}

/// The models that come with the library, by the name scenarios use.
const BUILT_IN: &[(&str, &str)] = &[
    ("a100-sxm4-80gb", include_str!("../models/a100-sxm4-80gb.toml")),
    ("b200-180gb", include_str!("../models/b200-180gb.toml")),
    ("geforce-rtx-3090", include_str!("../models/geforce-rtx-3090.toml")),
    ("gh200-96gb", include_str!("../models/gh200-96gb.toml")),
    ("h100-sxm5-80gb", include_str!("../models/h100-sxm5-80gb.toml")),
    ("h200-sxm5-141gb", include_str!("../models/h200-sxm5-141gb.toml")),
    ("l4", include_str!("../models/l4.toml")),
    ("t4", include_str!("../models/t4.toml")),
    ("v100-sxm2-32gb", include_str!("../models/v100-sxm2-32gb.toml")),
];

/// The text of a built-in model.
pub(crate) fn built_in(name: &str) -> Option<&'static str> {
    BUILT_IN.iter().find(|(n, _)| *n == name).map(|(_, text)| *text)
}

/// The names of the built-in models, for messages.
pub(crate) fn built_in_names() -> impl Iterator<Item = &'static str> {
    BUILT_IN.iter().map(|(name, _)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_models_are_well_formed() {
        for (name, text) in BUILT_IN {
            let model: Model = toml::from_str(text).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert!(model.power.min <= model.power.limit && model.power.limit <= model.power.max);
            assert!(model.temperature.max_operating <= model.temperature.slowdown, "{name}");
            assert!(model.temperature.slowdown <= model.temperature.shutdown, "{name}");
            assert!(model.name.len() < 64, "{name}");
            if let Some(table) = &model.mig {
                assert!(crate::mig::profiles(table).is_some(), "{name}: {table}");
            }
        }
    }
}
