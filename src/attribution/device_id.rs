//! Device ids, as device plugins and DRA drivers hand them to the kubelet.
//!
//! Sources of the forms: NVIDIA's k8s-device-plugin (UUIDs, `::N`, `all`, `tegra`), GKE's device
//! plugin (`nvidiaN`, `/giM`, `/vgpuK`), `HAMi` (`-N`), `KubeVirt`'s GPU device plugin (PCI addresses,
//! mediated devices). Names of DRA devices are in `dra`.

/// What one id names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceId {
    /// The device.
    pub target: Target,
    /// Which share of a device that several pods share: time-slicing and MPS (`::3`), GKE
    /// (`/vgpu3`), `HAMi` (`-3`). May be empty (`::`).
    pub replica: Option<String>,
}

/// A device as an id names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// `GPU-<uuid>`, the prefix included.
    Gpu(String),
    /// `MIG-<uuid>`, the prefix included.
    Mig(String),
    /// `MIG-GPU-<uuid>/<gi>/<ci>`, drivers before R470.
    MigOf {
        /// `GPU-<uuid>` of the board.
        gpu: String,
        /// GPU instance id.
        gpu_instance: u32,
        /// Compute instance id.
        compute_instance: u32,
    },
    /// `nvidia<N>`: `/dev/nvidiaN`, which is not the NVML index. GKE; DRA's `gpu-<N>`.
    Minor(u32),
    /// `nvidia<N>/gi<M>`: a GPU instance of it. GKE.
    MinorInstance {
        /// `/dev/nvidiaN`.
        minor: u32,
        /// GPU instance id.
        gpu_instance: u32,
    },
    /// A MIG device by where it lies, as NVIDIA's DRA driver names them.
    Placed {
        /// `/dev/nvidiaN`.
        minor: u32,
        /// NVML's GPU instance profile id.
        profile_id: u32,
        /// The first memory slice.
        start: u32,
        /// Profile as the device's name has it (`1g18gb`); empty in names of older drivers.
        profile: String,
    },
    /// A PCI address, of a GPU passed through to a virtual machine; `0000:3b:00.0`.
    Pci(String),
    /// `gpu-vfio-<index>` of NVIDIA's DRA driver: a GPU passed through to a virtual machine. The
    /// index is the driver's own and says nothing of where the GPU is.
    Vfio(u32),
    /// The UUID of a mediated device: a vGPU of a virtual machine.
    Mdev(String),
    /// `all`: every GPU of the node. WSL.
    All,
    /// `tegra`: the one integrated GPU.
    Tegra,
}

impl DeviceId {
    /// Reads the id of a device plugin's device; `None` if no plugin is known to write such ids.
    ///
    /// What stands behind `GPU-` and `MIG-` need not be a whole UUID: see [`Self::is_full_uuid`].
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (device, replica) = split_replica(text);
        // Plugins number the shares; anything else is not theirs.
        if replica.is_some_and(|replica| !replica.bytes().all(|byte| byte.is_ascii_digit())) {
            return None;
        }
        Some(Self { target: Target::parse(device)?, replica: replica.map(str::to_owned) })
    }

    /// Whether it names a GPU or a MIG device by a UUID in its full form, which nothing but an
    /// NVIDIA device has behind these prefixes.
    #[must_use]
    pub fn is_full_uuid(&self) -> bool {
        let uuid = match &self.target {
            Target::Gpu(name) | Target::MigOf { gpu: name, .. } => name.strip_prefix(GPU),
            Target::Mig(name) => name.strip_prefix(MIG),
            _ => None,
        };
        uuid.is_some_and(is_uuid)
    }
}

const GPU: &str = "GPU-";
const MIG: &str = "MIG-";

impl Target {
    /// Reads an id that has no share behind it.
    fn parse(text: &str) -> Option<Self> {
        match text {
            "all" => return Some(Self::All),
            "tegra" => return Some(Self::Tegra),
            _ => (),
        }
        if let Some(rest) = text.strip_prefix("nvidia") {
            return Some(match rest.split_once("/gi") {
                Some((minor, instance)) => {
                    Self::MinorInstance { minor: number(minor)?, gpu_instance: number(instance)? }
                }
                None => Self::Minor(number(rest)?),
            });
        }
        if let Some(rest) = text.strip_prefix(MIG) {
            if !rest.starts_with(GPU) {
                return is_name(rest).then(|| Self::Mig(text.to_owned()));
            }
            let mut parts = rest.split('/');
            let (gpu, gpu_instance, compute_instance) =
                (parts.next()?, number(parts.next()?)?, number(parts.next()?)?);
            let whole = parts.next().is_none() && is_name(gpu.strip_prefix(GPU)?);
            let gpu = gpu.to_owned();
            return whole.then_some(Self::MigOf { gpu, gpu_instance, compute_instance });
        }
        if let Some(rest) = text.strip_prefix(GPU) {
            return is_name(rest).then(|| Self::Gpu(text.to_owned()));
        }
        if is_uuid(text) {
            return Some(Self::Mdev(text.to_owned()));
        }
        is_pci_address(text).then(|| Self::Pci(text.to_owned()))
    }
}

/// Cuts off the share: `::N` of time-slicing and MPS whatever is before it, then GKE's `/vgpuN`,
/// then `HAMi`'s `-N` if a whole GPU's UUID is left (a UUID has dashes of its own).
fn split_replica(text: &str) -> (&str, Option<&str>) {
    if let Some((device, replica)) = text.split_once("::") {
        return (device, Some(replica));
    }
    if let Some((device, replica)) = text.rsplit_once("/vgpu")
        && !replica.is_empty()
    {
        return (device, Some(replica));
    }
    if let Some((device, replica)) = text.rsplit_once('-')
        && !replica.is_empty()
        && device.strip_prefix(GPU).is_some_and(is_uuid)
    {
        return (device, Some(replica));
    }
    (text, None)
}

/// A number as plugins write it: digits only, without leading zeros.
pub(super) fn number(text: &str) -> Option<u32> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit());
    let padded = text.len() > 1 && text.starts_with('0');
    if plain && !padded { text.parse().ok() } else { None }
}

/// What can stand behind `GPU-` or `MIG-`.
fn is_name(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    !text.is_empty() && text.bytes().all(plain) && !text.ends_with('-')
}

/// Five groups of 8, 4, 4, 4 and 12 hexadecimal digits.
fn is_uuid(text: &str) -> bool {
    has_groups(text.split('-'), &[8, 4, 4, 4, 12])
}

/// `domain:bus:device.function`, in hexadecimal; the domain has four digits in the kernel's form
/// and eight in NVML's.
fn is_pci_address(text: &str) -> bool {
    let groups = || text.split([':', '.']);
    let signs = text.matches([':', '.']).collect::<String>() == "::.";
    signs && (has_groups(groups(), &[4, 2, 2, 1]) || has_groups(groups(), &[8, 2, 2, 1]))
}

fn has_groups<'a>(groups: impl Iterator<Item = &'a str>, lengths: &[usize]) -> bool {
    let hex = |group: &str| group.bytes().all(|byte| byte.is_ascii_hexdigit());
    let mut lengths = lengths.iter();
    groups.into_iter().all(|group| lengths.next() == Some(&group.len()) && hex(group))
        && lengths.next().is_none()
}

#[cfg(test)]
mod tests;
