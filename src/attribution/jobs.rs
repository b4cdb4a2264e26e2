//! Jobs of a batch system, from the files that its prolog writes (`--hpc-job-mapping-dir`).

use std::collections::BTreeMap;

/// Jobs by GPU index and, for a MIG device, GPU instance id.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Jobs(pub BTreeMap<(u32, Option<u32>), Vec<String>>);

impl Jobs {
    /// The jobs of a device, in the file's order.
    #[must_use]
    pub fn of(&self, gpu: u32, gpu_instance: Option<u32>) -> &[String] {
        self.0.get(&(gpu, gpu_instance)).map_or(&[], Vec::as_slice)
    }
}
