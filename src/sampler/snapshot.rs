//! All readings of one pass as plain, immutable data: what exposition renders.
//!
//! A snapshot holds no NVML type and no handle. Right of it nothing reads a device.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::history::History;
use super::owners::Owner;
use super::signs::Signs;
use crate::catalogue::{Selection, Value};

/// The state of the node at one moment: one entry for each GPU ever seen by this process.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// When it was put together.
    pub taken: SystemTime,
    /// The rows that its samples refer to by position.
    pub selection: Arc<Selection>,
    /// Whether NVML is loaded and initialised.
    pub library: Library,
    /// Sorted by index. A GPU once seen stays listed for the life of the process.
    pub gpus: Vec<Gpu>,
}

impl Snapshot {
    /// Whether it tells how things stand: a first pass is over, or it is known that there is
    /// nothing to pass over.
    #[must_use]
    pub fn is_decided(&self) -> bool {
        self.library != Library::Starting
            && self.gpus.iter().all(|gpu| gpu.status != Status::Starting)
    }
}

/// NVML itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Library {
    /// Not tried yet.
    Starting,
    /// Loaded and initialised.
    Up(Arc<LibraryFacts>),
    /// Not there; the text says what failed, with the paths tried and a hint.
    Down {
        /// A short constant for a label: `library_not_found`, `driver_not_loaded`, …
        reason: &'static str,
        /// One line for people.
        detail: String,
    },
}

/// What the node's driver says of itself (`nvmlSystemGet…`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LibraryFacts {
    /// The file that was loaded.
    pub path: String,
    /// `nvmlSystemGetDriverVersion`, empty when unknown.
    pub driver_version: String,
    /// `nvmlSystemGetNVMLVersion`, empty when unknown.
    pub nvml_version: String,
    /// `nvmlSystemGetCudaDriverVersion_v2` as `12.4`, empty when unknown.
    pub cuda_version: String,
    /// The scenario's name when the library is the simulator.
    pub simulated: Option<String>,
}

/// One GPU: who it is, whether it answers, and its newest reading if that is fresh.
#[derive(Debug, Clone)]
pub struct Gpu {
    /// Who it is.
    pub identity: Arc<GpuIdentity>,
    /// Whether it answers, and if not, why.
    pub status: Status,
    /// Its readings of the newest pass; `None` unless `status` is `Up`.
    pub reading: Option<Arc<GpuReading>>,
    /// When its last complete pass ended, also when that is long ago; `None` before the first.
    pub last_read: Option<SystemTime>,
    /// What its last reading told that outlives it.
    pub known: Arc<Known>,
    /// XIDs and clock events.
    pub history: Arc<History>,
}

/// What is known of a GPU while it gives no readings: series about what happened to it keep
/// their labels, and so go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// As [`GpuReading::labels`].
    pub labels: Vec<(u16, Arc<str>)>,
    /// Whether the GPU itself was a row.
    pub whole: bool,
    /// The MIG instances that were rows, sorted by GPU instance id.
    pub instances: Vec<Arc<InstanceIdentity>>,
}

impl Default for Known {
    /// Of a GPU that gave no reading yet: it is taken for one that is a row.
    fn default() -> Self {
        Self { labels: Vec::new(), whole: true, instances: Vec::new() }
    }
}

impl Known {
    /// Whether the GPU is a row in any way.
    #[must_use]
    pub fn is_selected(&self) -> bool {
        self.whole || !self.instances.is_empty()
    }

    /// What a reading tells.
    #[must_use]
    pub fn of(reading: &GpuReading) -> Self {
        let instances = reading.instances.iter().map(|instance| Arc::clone(&instance.identity));
        Self {
            labels: reading.labels.clone(),
            whole: reading.whole,
            instances: instances.collect(),
        }
    }
}

/// Whether a GPU answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// The last pass was complete in time.
    Up,
    /// No pass is complete yet.
    Starting,
    /// No reading; the constant is a label: `timeout`, `lost`, `reset_required`, `detached`,
    /// `no_permission`, `error`, `library`.
    Down(&'static str),
}

/// The facts that make a GPU's labels. They do not change while the driver stays loaded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GpuIdentity {
    /// The NVML index when it was first seen; kept for the life of the process. Label `gpu`.
    pub index: u32,
    /// `GPU-…`; empty if the device could not even say that.
    pub uuid: String,
    /// `00000000:1B:00.0`, as DCGM writes it; empty if unknown.
    pub pci_bus_id: String,
    /// `nvmlDeviceGetName`.
    pub model: String,
    /// The number of `/dev/nvidiaN`, if NVML says it.
    pub minor: Option<u32>,
    /// Names and values of `nvml_device_info` beside the identity labels: serial, brand,
    /// architecture, VBIOS, …; sorted by name, values never empty.
    pub info: Vec<(&'static str, String)>,
}

/// What one pass read from one GPU.
#[derive(Debug, Clone)]
pub struct GpuReading {
    /// When the pass over this GPU was complete.
    pub read_at: SystemTime,
    /// How long it took.
    pub took: Duration,
    /// Whether the GPU itself is a row: always without MIG instances; with them only if the
    /// device selector asks for whole GPUs.
    pub whole: bool,
    /// The board's samples, sorted by row, then link. On a GPU with instances these are repeated
    /// on every instance's row, but for rows of our own, which appear once.
    pub board: Vec<Sample>,
    /// Values of the selection's label rows, by position in `Selection::labels`.
    pub labels: Vec<(u16, Arc<str>)>,
    /// Text fields that the selection types as gauge or counter (info series), by row.
    pub texts: Vec<(u16, Arc<str>)>,
    /// The MIG instances that are rows, sorted by GPU instance id.
    pub instances: Vec<InstanceReading>,
    /// How many MIG devices the GPU can be cut into (`nvmlDeviceGetMaxMigDeviceCount`), which is
    /// the number of its compute slices; `None` out of MIG mode.
    pub mig_slices: Option<u32>,
    /// Rows that this GPU does not give, with the reason as a constant: `not_supported`,
    /// `no_permission`, `function_not_found`, …
    pub unsupported: Vec<(u16, &'static str)>,
    /// Who uses the GPU, if it was asked (`Request::processes`).
    pub processes: Option<Processes>,
    /// What the driver has accounted of processes, if it was asked (`Request::accounting`) and
    /// does so.
    pub accounting: Vec<Accounted>,
    /// What its health is judged by, if a row asks for that.
    pub signs: Option<Signs>,
    /// How it reaches each other GPU, by that one's index: `nvmlGpuP2PStatus_t` for `NVLink`.
    pub peers: Vec<(u32, u32)>,
}

/// Who uses a GPU. Either part may be missing without the other; why not is NVML's code by name
/// (`NOT_SUPPORTED`, …).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Processes {
    /// Running processes with their memory (`nvmlDeviceGetComputeRunningProcesses`, graphics and
    /// MPS too), each once, sorted by instance, then by process id. On a GPU in MIG mode those of
    /// its instances that are rows, or of all if the whole GPU is one.
    pub running: Result<Vec<ProcessMemory>, &'static str>,
    /// The processes whose kernels ran of late (`nvmlDeviceGetProcessUtilization`), sorted by
    /// process id; all others used nothing. In MIG mode there is none.
    pub utilization: Result<Vec<ProcessUtilization>, &'static str>,
    /// How many of all these processes were found in `/proc`: none, where there are some, means
    /// that this process is not in the node's process namespace.
    pub visible: usize,
}

impl Processes {
    /// Whether there are processes, and none of them is in this process namespace.
    #[must_use]
    pub fn is_hidden(&self) -> bool {
        let count = self.running.as_ref().map_or(0, Vec::len)
            + self.utilization.as_ref().map_or(0, Vec::len);
        self.visible == 0 && count > 0
    }
}

/// A process that holds memory of a GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessMemory {
    /// Its number in the node's process namespace.
    pub pid: u32,
    /// Whose it is; `None` for one that was not found.
    pub owner: Option<Arc<Owner>>,
    /// Bytes in use; `None` where NVML does not tell.
    pub used_bytes: Option<u64>,
    /// The GPU instance it runs in, on a GPU in MIG mode.
    pub gpu_instance: Option<u32>,
}

/// A process that used a GPU of late.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessUtilization {
    /// Its number in the node's process namespace.
    pub pid: u32,
    /// Whose it is; `None` for one that was not found.
    pub owner: Option<Arc<Owner>>,
    /// Percent of time in which its kernels ran, 0 to 100, in the driver's newest sample.
    pub sm_percent: u32,
    /// The same for reading or writing memory.
    pub memory_percent: u32,
    /// The same for the video encoder.
    pub encoder_percent: u32,
    /// The same for the video decoder.
    pub decoder_percent: u32,
}

/// What the driver has accounted of a process over its life (`nvmlDeviceGetAccountingStats`).
/// `None` is what it does not tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accounted {
    /// Its number, which can be another's later: number and start together name it.
    pub pid: u32,
    /// When it started, in microseconds since 1970.
    pub start: u64,
    /// Whose it is, or was when it was last seen running; `None` for one that was not found.
    pub owner: Option<Arc<Owner>>,
    /// Whether it has not ended.
    pub running: bool,
    /// The most memory that it ever had, in bytes.
    pub max_memory_bytes: Option<u64>,
    /// Percent of its life in which its kernels ran, 0 to 100.
    pub sm_percent: Option<u32>,
    /// The same for reading or writing memory.
    pub memory_percent: Option<u32>,
    /// How long it was there; told once it has ended.
    pub took: Option<Duration>,
}

/// One MIG GPU instance.
#[derive(Debug, Clone)]
pub struct InstanceReading {
    /// Who it is.
    pub identity: Arc<InstanceIdentity>,
    /// The instance's own samples, sorted by row.
    pub samples: Vec<Sample>,
}

/// The facts that make a MIG instance's labels.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InstanceIdentity {
    /// `nvmlDeviceGetGpuInstanceId`. Label `GPU_I_ID`.
    pub gpu_instance: u32,
    /// `1g.10gb`, `1g.10gb+me`, … Label `GPU_I_PROFILE`.
    pub profile: String,
    /// The MIG UUIDs of its compute instances, by compute instance id.
    pub uuids: Vec<(u32, String)>,
    /// Which profile it has and where it lies, if it was asked (`Request::placements`) and the
    /// driver says it.
    pub placement: Option<Placement>,
}

impl InstanceIdentity {
    /// Which share of a board of so many compute slices it is, 0 to 1: `3g.40gb` is three, and
    /// `1g.10gb+me` one. `None` if its profile does not tell.
    #[must_use]
    pub fn share_of(&self, slices: Option<u32>) -> Option<f64> {
        let (own, _) = self.profile.split_once('g')?;
        let (own, all) = (own.parse::<u32>().ok()?, slices?);
        (own <= all).then(|| f64::from(own) / f64::from(all))
    }
}

/// What a GPU instance was cut as and where (`nvmlGpuInstanceGetInfo`): names of devices that
/// Kubernetes hands out by claim are made of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placement {
    /// The id of its profile, as in `nvmlGpuInstanceProfileInfo_t.id`: 19 for `1g` on most boards.
    pub profile_id: u32,
    /// The first memory slice.
    pub start: u32,
    /// How many memory slices.
    pub size: u32,
}

/// One value of one row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// Position in `Selection::rows`.
    pub row: u16,
    /// NVML's link number, for rows of `Entity::Link`.
    pub link: Option<u8>,
    /// The value in the unit served.
    pub value: Value,
}
