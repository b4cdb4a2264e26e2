//! Device ids, as device plugins and DRA drivers hand them to the kubelet.

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
    /// The UUID of a mediated device: a vGPU of a virtual machine.
    Mdev(String),
    /// `all`: every GPU of the node. WSL.
    All,
    /// `tegra`: the one integrated GPU.
    Tegra,
}
