//! Which GPUs and MIG instances are exported (`--devices`).
//!
//! The grammar is dcgm-exporter's, with `+` of 4.8.3:
//!
//! * `f`: each GPU that has MIG instances contributes its instances, every other GPU itself;
//! * `g` or `g:LIST`: GPUs as whole devices, MIG or not; `i` or `i:LIST`: MIG instances;
//! * `g..+i..`, in either order: both.
//!
//! `LIST` is a comma list of `N` and `N-M`. Here it may also name a GPU by UUID (`g:GPU-…`) or PCI
//! bus id (`g:0000:3b:00.0`), and an instance by UUID (`i:MIG-…`) or as `GPU.INSTANCE` (`i:0.7`).
//! In `i:LIST` a bare number is the GPU instance's id that the label `GPU_I_ID` shows, on every GPU;
//! dcgm-exporter counts DCGM's own entity numbers there, which only DCGM can show.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Most devices that one list may name, as in dcgm-exporter: a longer range is a mistake in typing.
const MOST: u64 = 1024;

const ALLOWED: &str = "allowed: f, g, i, g:LIST, i:LIST, g[:LIST]+i[:LIST]; LIST is 0, 0-3, \
                       GPU-UUID, PCI bus id, MIG-UUID or GPU.INSTANCE, separated by commas";

/// How a GPU is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GpuId<'a> {
    /// NVML's index.
    pub index: u32,
    /// `GPU-…`.
    pub uuid: &'a str,
    /// Domain, bus, device, function, as NVML writes them (`00000000:3B:00.0`).
    pub pci_bus_id: &'a str,
}

/// How a MIG instance is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InstanceId<'a> {
    /// The GPU that it is a part of.
    pub gpu: GpuId<'a>,
    /// The GPU instance's id on that GPU (`GPU_I_ID`).
    pub gpu_instance: u32,
    /// `MIG-…`.
    pub uuid: &'a str,
}

/// Which GPUs and MIG instances are exported.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum DeviceSelector {
    /// Each GPU's instances if it has any, else the GPU itself.
    #[default]
    Flexible,
    /// Whole GPUs and instances, each by its own list; a list that is absent selects none.
    Listed {
        /// Whole GPUs.
        gpus: Option<List>,
        /// MIG instances.
        instances: Option<List>,
    },
}

impl DeviceSelector {
    /// Whether the GPU is exported as a whole device.
    #[must_use]
    pub fn selects_gpu(&self, gpu: &GpuId<'_>, has_instances: bool) -> bool {
        match self {
            Self::Flexible => !has_instances,
            Self::Listed { gpus, .. } => gpus.as_ref().is_some_and(|list| list.names_gpu(gpu)),
        }
    }

    /// Whether the MIG instance is exported.
    #[must_use]
    pub fn selects_instance(&self, instance: &InstanceId<'_>) -> bool {
        match self {
            Self::Flexible => true,
            Self::Listed { instances, .. } => {
                instances.as_ref().is_some_and(|list| list.names_instance(instance))
            }
        }
    }

    /// The listed names that no device bears, for a warning.
    #[must_use]
    pub fn unmatched(&self, gpus: &[GpuId<'_>], instances: &[InstanceId<'_>]) -> Vec<String> {
        let Self::Listed { gpus: gpu_list, instances: instance_list } = self else {
            return Vec::new();
        };
        let of_gpus =
            names(gpu_list.as_ref()).filter(|name| !gpus.iter().any(|gpu| name.is_gpu(gpu)));
        let of_instances = names(instance_list.as_ref())
            .filter(|name| !instances.iter().any(|instance| name.is_instance(instance)));
        of_gpus
            .map(|name| format!("g:{name}"))
            .chain(of_instances.map(|name| format!("i:{name}")))
            .collect()
    }
}

/// As it could be typed.
impl fmt::Display for DeviceSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Listed { gpus, instances } = self else { return f.write_str("f") };
        let parts = [("g", gpus), ("i", instances)];
        let mut plus = "";
        for (letter, list) in
            parts.iter().filter_map(|(letter, list)| Some((letter, list.as_ref()?)))
        {
            write!(f, "{plus}{letter}")?;
            plus = "+";
            if let List::Only(names) = list {
                let names: Vec<_> = names.iter().map(ToString::to_string).collect();
                write!(f, ":{}", names.join(","))?;
            }
        }
        Ok(())
    }
}

fn names(list: Option<&List>) -> impl Iterator<Item = &Name> {
    match list {
        Some(List::Only(names)) => names.iter(),
        _ => [].iter(),
    }
}

/// Which devices of a kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum List {
    /// All.
    All,
    /// Those that bear one of the names.
    Only(Vec<Name>),
}

impl List {
    fn names_gpu(&self, gpu: &GpuId<'_>) -> bool {
        match self {
            Self::All => true,
            Self::Only(names) => names.iter().any(|name| name.is_gpu(gpu)),
        }
    }

    fn names_instance(&self, instance: &InstanceId<'_>) -> bool {
        match self {
            Self::All => true,
            Self::Only(names) => names.iter().any(|name| name.is_instance(instance)),
        }
    }
}

/// One item of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Name {
    /// GPU indices, or ids of GPU instances.
    Numbers(RangeInclusive<u32>),
    /// A GPU's or an instance's UUID.
    Uuid(String),
    /// A GPU's place on the bus.
    Pci(PciBusId),
    /// A GPU's index and the id of a GPU instance on it.
    InstanceOf(u32, u32),
}

impl Name {
    fn is_gpu(&self, gpu: &GpuId<'_>) -> bool {
        match self {
            Self::Numbers(numbers) => numbers.contains(&gpu.index),
            Self::Uuid(uuid) => uuid.eq_ignore_ascii_case(gpu.uuid),
            Self::Pci(id) => gpu.pci_bus_id.parse() == Ok(*id),
            Self::InstanceOf(..) => false,
        }
    }

    fn is_instance(&self, instance: &InstanceId<'_>) -> bool {
        match self {
            Self::Numbers(numbers) => numbers.contains(&instance.gpu_instance),
            Self::Uuid(uuid) => uuid.eq_ignore_ascii_case(instance.uuid),
            Self::Pci(_) => false,
            Self::InstanceOf(gpu, id) => (*gpu, *id) == (instance.gpu.index, instance.gpu_instance),
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Numbers(numbers) if numbers.start() == numbers.end() => {
                write!(f, "{}", numbers.start())
            }
            Self::Numbers(numbers) => write!(f, "{}-{}", numbers.start(), numbers.end()),
            Self::Uuid(uuid) => f.write_str(uuid),
            Self::Pci(id) => id.fmt(f),
            Self::InstanceOf(gpu, instance) => write!(f, "{gpu}.{instance}"),
        }
    }
}

/// A place on the PCI bus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PciBusId {
    domain: u32,
    bus: u8,
    device: u8,
    function: u8,
}

impl FromStr for PciBusId {
    type Err = ();

    /// Reads `00000000:3B:00.0`, `0000:3b:00.0` or `3b:00.0`.
    fn from_str(text: &str) -> Result<Self, ()> {
        fn hex(text: &str) -> Result<u32, ()> {
            u32::from_str_radix(text, 16).map_err(drop)
        }
        fn byte(text: &str) -> Result<u8, ()> {
            u8::from_str_radix(text, 16).map_err(drop)
        }
        let (rest, function) = text.rsplit_once('.').ok_or(())?;
        let (rest, device) = rest.rsplit_once(':').ok_or(())?;
        let (domain, bus) = rest.split_once(':').unwrap_or(("0", rest));
        Ok(Self {
            domain: hex(domain)?,
            bus: byte(bus)?,
            device: byte(device)?,
            function: byte(function)?,
        })
    }
}

impl fmt::Display for PciBusId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08X}:{:02X}:{:02X}.{:X}", self.domain, self.bus, self.device, self.function)
    }
}

/// What a part of the selector is about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    Gpus,
    Instances,
}

impl FromStr for DeviceSelector {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        parse(text).map_err(|problem| format!("{problem}; {ALLOWED}"))
    }
}

fn parse(text: &str) -> Result<DeviceSelector, String> {
    if text == "f" {
        return Ok(DeviceSelector::Flexible);
    }
    let (mut gpus, mut instances) = (None, None);
    for part in text.split('+') {
        let (letter, list) = match part.split_once(':') {
            Some((letter, list)) => (letter, Some(list)),
            None => (part, None),
        };
        let (of, slot) = match letter {
            "g" => (Of::Gpus, &mut gpus),
            "i" => (Of::Instances, &mut instances),
            "f" => return Err("f stands alone".to_owned()),
            "" => return Err("a part is empty".to_owned()),
            _ => return Err(format!("{letter:?} is not a kind of device")),
        };
        let list = list.map_or(Ok(List::All), |list| parse_list(list, of))?;
        if slot.replace(list).is_some() {
            return Err(format!("{letter} is there twice"));
        }
    }
    Ok(DeviceSelector::Listed { gpus, instances })
}

fn parse_list(text: &str, of: Of) -> Result<List, String> {
    let names = text.split(',').map(|item| parse_name(item, of)).collect::<Result<Vec<_>, _>>()?;
    let count: u64 = names.iter().map(size).sum();
    if count > MOST {
        return Err(format!("{text:?} names {count} devices, more than {MOST}"));
    }
    Ok(List::Only(names))
}

fn size(name: &Name) -> u64 {
    match name {
        Name::Numbers(numbers) => u64::from(numbers.end() - numbers.start()) + 1,
        _ => 1,
    }
}

fn parse_name(item: &str, of: Of) -> Result<Name, String> {
    let uuid_prefix = if of == Of::Gpus { "GPU-" } else { "MIG-" };
    if item.is_empty() {
        return Err("a list has an empty item".to_owned());
    }
    if item.get(..4).is_some_and(|start| start.eq_ignore_ascii_case(uuid_prefix)) {
        return Ok(Name::Uuid(item.to_owned()));
    }
    if of == Of::Gpus && item.contains(':') {
        let id = item.parse().map_err(|()| format!("{item:?} is not a PCI bus id"))?;
        return Ok(Name::Pci(id));
    }
    if let (Of::Instances, Some((gpu, instance))) = (of, item.split_once('.')) {
        return Ok(Name::InstanceOf(number(gpu, item)?, number(instance, item)?));
    }
    let (first, last) = item.split_once('-').unwrap_or((item, item));
    let (first, last) = (number(first, item)?, number(last, item)?);
    if first > last {
        return Err(format!("the range {item} is reversed"));
    }
    Ok(Name::Numbers(first..=last))
}

fn number(digits: &str, item: &str) -> Result<u32, String> {
    // `parse` alone would take a sign.
    Some(digits)
        .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
        .and_then(|digits| digits.parse().ok())
        .ok_or_else(|| format!("{item:?} is not a number or range"))
}
