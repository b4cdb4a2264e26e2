//! Errors, modes and licences: what state the GPU is in.

use super::prelude::*;

#[rustfmt::skip]
pub(super) const ROWS: &[Field] = &[
    gauge("DCGM_FI_DEV_XID_ERRORS", 230, Instance, Read::LastXid)
        .doc("XID", "Number of the last XID that the driver has reported, 0 before the first.")
        .alias(&["dcgm_xid_errors"]).renamed("DCGM_FI_DEV_XID_ERROR").on(),
    gauge("DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION", 1523, Gpu, field(230, pick::value))
        .doc("action", "What the driver asks for: 0 nothing, 1 GPU reset, 2 node reboot, 3 drain peer access, 4 drain and reset, 5 recover IMEX, 6 bus reset, 7 system reboot.")
        .renamed("DCGM_FI_DEV_GPU_RECOVERY_ACTION").on(),

    gauge("DCGM_FI_DEV_COMPUTE_MODE", 65, Gpu, call(Call::ComputeMode, pick::compute_mode))
        .doc("mode", "Who may compute on the GPU: 0 anyone, 1 nobody, 2 one process.")
        .renamed("DCGM_FI_DEV_GPU_COMPUTE_MODE"),
    gauge("DCGM_FI_DEV_PERSISTENCE_MODE", 66, Gpu, plain(Call::PersistenceMode))
        .doc("0/1", "Whether the driver keeps the GPU initialised while nobody uses it (1) or not (0).")
        .renamed("DCGM_FI_DEV_GPU_PERSISTENCE_MODE").on(),
    gauge("DCGM_FI_DEV_MIG_MODE", 67, Gpu, call(Call::MigMode, |n| pick::raw(n, slot::CURRENT)))
        .doc("0/1", "Whether MIG is on now (1) or off (0).").on(),
    gauge("nvml_mig_mode_pending", 0, Gpu, call(Call::MigMode, |n| pick::raw(n, slot::PENDING)))
        .doc("0/1", "Whether MIG will be on (1) or off (0) after the next reset.").on(),
    gauge("DCGM_FI_DEV_CC_MODE", 74, Node, plain(Call::ConfComputeState))
        .doc("0/1", "Whether confidential computing is on (1) or off (0)."),
    gauge("DCGM_FI_DEV_GPM_SUPPORT", 94, Gpu, plain(Call::GpmSupport))
        .doc("0/1", "Whether the GPU has performance monitoring through NVML (1) or not (0)."),
    gauge("DCGM_FI_DEV_VIRTUAL_MODE", 500, Gpu, plain(Call::VirtualizationMode))
        .doc("mode", "How the GPU is virtualised: 0 not, 1 passed through, 2 vGPU guest, 3 vGPU host, 4 vSGA host.")
        .renamed("DCGM_FI_DEV_GPU_VIRTUAL_MODE"),
    gauge("DCGM_FI_DEV_VGPU_LICENSE_STATUS", 526, Gpu, plain(Call::GridLicensed))
        .doc("0/1", "Whether the vGPU guest holds a licence (1) or not (0).").on(),
];
