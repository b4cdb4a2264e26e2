//! Queries that have no answer on some machines, and why.

/// A query without an answer.
#[derive(Debug)]
pub(super) struct Empty {
    /// The dashboards.
    boards: &'static [&'static str],
    /// The panels.
    panels: &'static [&'static str],
    /// The legends, or the columns; none are all.
    legends: &'static [&'static str],
    /// The machines; none are all.
    scenarios: &'static [&'static str],
    #[expect(dead_code, reason = "for those who read the list, and in what a failed test says")]
    reason: &'static str,
}

impl Empty {
    pub(super) fn is_about(&self, board: &str, panel: &str, legend: &str, scenario: &str) -> bool {
        let among = |list: &[&str], one: &str| list.is_empty() || list.contains(&one);
        among(self.boards, board)
            && among(self.panels, panel)
            && among(self.legends, legend)
            && among(self.scenarios, scenario)
    }
}

/// Machines without MIG.
const WHOLE: &[&str] = &["dgx-h100", "t4-l4-mixed", "geforce-3090"];
/// Machines with MIG instances of GPUs before Hopper.
const AMPERE: &[&str] = &["a100-mig-mixed"];
/// Machines of nothing but MIG instances.
const SPLIT: &[&str] = &["dense-16x7"];
const GEFORCE: &[&str] = &["geforce-3090"];

/// Machines without links between GPUs.
const UNLINKED: &[&str] = &["t4-l4-mixed"];

const PROFILING: &str = "NVML has no utilisation of MIG instances before Hopper";
const BUSY: &str = "the instances that pods hold are at work";
const OF_GPUS: &str = "NVML tells what processes use of whole GPUs alone";
const NO_ECC: &str = "GeForce boards have no ECC";
const ECC_OF_MIG: &str = "NVML gives no such totals of an H100 in MIG mode";
const PAGES: &str = "rows are remapped since Ampere, and no pages retired";
const STANDS: &str = "the machine's clock stands still, and so do counters of time";
const WELL: &str = "nothing is wrong with the machine";

const fn empty(
    boards: &'static [&'static str],
    panels: &'static [&'static str],
    legends: &'static [&'static str],
    scenarios: &'static [&'static str],
    reason: &'static str,
) -> Empty {
    Empty { boards, panels, legends, scenarios, reason }
}

/// No query is in two of them.
pub(super) static EMPTY: &[Empty] = &[
    // All is well.
    empty(&[], &["Alerts"], &[], &[], "no rules are loaded, so no alert fires"),
    empty(&["health"], &["Why GPUs are down"], &[], &[], WELL),
    empty(&["exporter"], &["NVML errors", "Scrapes turned away"], &[], &[], WELL),
    empty(&["exporter"], &["Device ids from the kubelet"], &["{{reason}} {{instance}}"], &[], WELL),
    empty(
        &["detail"],
        &["Time held down, by reason"],
        &[],
        &["dgx-h100", "a100-mig-mixed", "dense-16x7", "t4-l4-mixed"],
        STANDS,
    ),
    empty(
        &["health"],
        &["Held down by power"],
        &[],
        &["dgx-h100", "a100-mig-mixed", "dense-16x7", "t4-l4-mixed"],
        STANDS,
    ),
    empty(&["health"], &["Held down by heat"], &[], &[], WELL),
    // MIG.
    empty(
        &["mig"],
        &[
            "Every instance",
            "Held and free by profile",
            "Instances by profile",
            "Held by pods",
            "Memory in use",
            "Memory in use by instance",
            "Pods",
            "Power of boards in MIG mode",
            "Temperature of boards in MIG mode",
            "Utilisation by instance",
        ],
        &[],
        WHOLE,
        "no GPU is in MIG mode",
    ),
    empty(&["mig"], &["Utilisation by instance"], &[], AMPERE, PROFILING),
    empty(&["mig"], &["Every instance"], &["Utilisation"], AMPERE, PROFILING),
    empty(
        &["workloads"],
        &["Held and idle now", "Idle GPUs by namespace", "Utilisation by pod"],
        &[],
        AMPERE,
        PROFILING,
    ),
    empty(&["workloads"], &["Their utilisation"], &[], AMPERE, PROFILING),
    empty(
        &["workloads"],
        &["Namespaces", "Pods", "Owners"],
        &["Utilisation", "Idle GPU-hours"],
        AMPERE,
        PROFILING,
    ),
    empty(&["workloads"], &["GPU-hours held and busy"], &["{{namespace}} busy"], AMPERE, PROFILING),
    empty(
        &["workloads"],
        &["What pods have spent"],
        &["Busy GPU-hours", "Busy share"],
        AMPERE,
        PROFILING,
    ),
    empty(&["workloads"], &["SM share on shared GPUs"], &[], AMPERE, OF_GPUS),
    empty(&["workloads"], &["SM share on shared GPUs"], &[], SPLIT, OF_GPUS),
    empty(&["workloads"], &["Held and idle now", "Idle GPUs by namespace"], &[], SPLIT, BUSY),
    empty(&["workloads"], &["Namespaces", "Pods", "Owners"], &["Idle GPU-hours"], SPLIT, BUSY),
    empty(
        &["detail"],
        &["Memory traffic", "Video engines"],
        &[],
        SPLIT,
        "NVML tells these of whole GPUs alone",
    ),
    empty(
        &["detail"],
        &["Tensor cores and memory"],
        &[],
        &["a100-mig-mixed", "t4-l4-mixed", "geforce-3090"],
        "NVML profiles from Hopper on",
    ),
    empty(
        &["mig"],
        &["MIG changes that wait"],
        &[],
        &["t4-l4-mixed", "geforce-3090"],
        "these boards have no MIG",
    ),
    // Memory.
    empty(
        &["detail"],
        &["Memory temperature"],
        &[],
        &["t4-l4-mixed", "geforce-3090"],
        "boards with GDDR do not tell the temperature of their memory",
    ),
    empty(&["detail"], &["Memory errors"], &[], GEFORCE, NO_ECC),
    empty(&["detail"], &["Memory errors"], &[], &["dense-16x7"], ECC_OF_MIG),
    empty(&["health"], &["Corrected memory errors", "ECC"], &[], GEFORCE, NO_ECC),
    empty(&["health"], &["Corrected memory errors"], &[], &["dense-16x7"], ECC_OF_MIG),
    empty(&["health"], &["Memory errors and repairs"], &[], GEFORCE, NO_ECC),
    empty(
        &["health"],
        &["Memory errors and repairs"],
        &["Pages retired, corrected", "Pages retired, uncorrected", "Retirement waits"],
        &["dgx-h100", "a100-mig-mixed", "dense-16x7"],
        PAGES,
    ),
    empty(
        &["health"],
        &["Memory errors and repairs"],
        &[
            "Corrected",
            "Uncorrected",
            "Rows remapped",
            "Rows remapped early",
            "Remap waits",
            "Remap failed",
        ],
        &["dense-16x7"],
        ECC_OF_MIG,
    ),
    empty(
        &["health"],
        &["Memory errors and repairs"],
        &["SRAM threshold"],
        &["t4-l4-mixed"],
        "drivers tell this since 550, and this is 535",
    ),
    // Links, and what a board or driver lacks.
    empty(&["detail"], &["NVLink traffic", "NVLinks up"], &[], UNLINKED, "T4 and L4 have none"),
    empty(&["health"], &["NVLink errors", "NVLinks up"], &[], UNLINKED, "T4 and L4 have none"),
    empty(
        &["health"],
        &["NVLink fabric"],
        &[],
        &["a100-mig-mixed", "t4-l4-mixed", "geforce-3090"],
        "GPUs join a fabric since Hopper",
    ),
    empty(
        &["health"],
        &["PCIe errors"],
        &["correctable {{hostname}}/{{gpu}}"],
        &["a100-mig-mixed", "t4-l4-mixed", "geforce-3090"],
        "counted since Hopper",
    ),
    empty(
        &["health"],
        &["What the driver asks for"],
        &[],
        &["a100-mig-mixed", "t4-l4-mixed"],
        "drivers tell this since 555, and these are older",
    ),
];
