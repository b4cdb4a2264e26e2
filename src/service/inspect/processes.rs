//! `check`'s part on processes: whether it can be told who uses the GPUs how much.

use std::collections::BTreeSet;

use super::line;
use crate::sampler::snapshot::Snapshot;

/// Says how many processes NVML lists and how many of them are to be seen here.
pub(super) fn report(out: &mut String, snapshot: &Snapshot) {
    let readings = snapshot.gpus.iter().filter_map(|gpu| gpu.reading.as_deref());
    let (mut listed, mut visible) = (0, 0);
    for reading in readings {
        let Some(processes) = &reading.processes else { continue };
        for (what, failed) in [
            ("running processes", processes.running.as_ref().err()),
            ("utilisation of processes", processes.utilization.as_ref().err()),
        ] {
            if let Some(code) = failed {
                line(out, format_args!("missing: {what}: {code}"));
            }
        }
        let pids = processes.running.iter().flatten().map(|process| process.pid);
        // One process may be in several instances.
        listed += pids.collect::<BTreeSet<u32>>().len();
        visible += processes.visible;
    }
    let (count, visible) = (listed, visible.min(listed));
    line(out, format_args!("processes: NVML lists {count}, {visible} of them are visible here"));
    if count > 0 && visible == 0 {
        line(
            out,
            format_args!(
                "  what processes use stays unknown: run the exporter in the node's process \
                 namespace (hostPID: true, docker run --pid=host)"
            ),
        );
    }
}
