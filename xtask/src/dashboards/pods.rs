//! Who holds which device, and how much of it.
//!
//! The pods of a device are in its own series' labels, or, where it is shared or attribution goes
//! to `info`, in `nvml_device_pod_info`. Where Prometheus does not honour labels they are called
//! `exported_…`, and `pod` is the exporter's own. Queries read all of these and give `namespace`
//! and `pod`.

use super::panel::Panel;
use super::query::{DEVICE_LABELS, Query};
use super::table::Table;

/// What holds a device, in a result.
const HOLDER: &str = "namespace, pod";

/// Which pods a query is about.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    /// All: to know how many share a device.
    All,
    /// Those of the namespaces that are chosen.
    InNamespace,
    /// Those that the variables choose.
    Chosen,
}

impl Which {
    /// What selects them, by these labels.
    pub(super) fn matchers(self, namespace: &str, pod: &str) -> String {
        match self {
            Self::All => String::new(),
            Self::InNamespace => format!(",{namespace}=~\"$namespace\""),
            Self::Chosen => format!(",{namespace}=~\"$namespace\",{pod}=~\"$pod\""),
        }
    }
}

/// 1 for each device that a pod holds, with these labels of the holder beside the device's.
fn held_by(query: &Query<'static>, which: Which, holder: &str, more: &str) -> String {
    let names = format!("__name__=~\"{}|nvml_device_pod_info\"", query.name("DCGM_FI_DEV_FB_USED"));
    let select = |pods: String| {
        let more = if more.is_empty() { String::new() } else { format!(",{more}") };
        query.raw("", &format!("{names},{pods}{more}"))
    };
    let exported = select(format!(
        "exported_pod!=\"\"{}",
        which.matchers("exported_namespace", "exported_pod")
    ));
    let own = select(format!("exported_pod=\"\",pod!=\"\"{}", which.matchers("namespace", "pod")));
    // A device that nobody holds has the pod of the target, where labels are not honoured.
    let target = query.target("nvml_exporter_build_info", "");
    format!(
        "group by ({DEVICE_LABELS}, {holder}) (\
         label_replace(label_replace({exported}, \
         \"namespace\", \"$1\", \"exported_namespace\", \"(.+)\"), \
         \"pod\", \"$1\", \"exported_pod\", \"(.+)\") \
         or ({own} unless on (cluster, namespace, pod) {target}))"
    )
}

/// 1 for each device that a pod holds.
pub(super) fn held(query: &Query<'static>, which: Which) -> String {
    held_by(query, which, HOLDER, "")
}

/// The same with the pod's owner, where the exporter is told to say it.
pub(super) fn held_by_owner(query: &Query<'static>) -> String {
    held_by(query, Which::Chosen, "namespace, pod, owner_kind, owner_name", "")
}

/// How much of a board each device is: 1 for a GPU; for a MIG instance its share of the memory
/// of all instances.
fn share_of_board(query: &Query<'static>) -> String {
    let size = query.max("UUID, GPU_I_ID", "DCGM_FI_DEV_FB_TOTAL", "");
    format!("({size} / on (UUID) group_left () sum by (UUID) ({size}))")
}

/// How much of a board each holder has, a device that several share in equal parts.
pub(super) fn parts(query: &Query<'static>, held_ones: &str) -> String {
    let sharers = format!("count by (UUID, GPU_I_ID) ({})", held(query, Which::All));
    format!(
        "{held_ones} / on (UUID, GPU_I_ID) group_left () {sharers} \
         * on (UUID, GPU_I_ID) group_left () {}",
        share_of_board(query)
    )
}

/// A reading of the devices that are held, in the base unit.
pub(super) fn of_held(held_ones: &str, device: &str) -> String {
    format!("{held_ones} * on (UUID, GPU_I_ID) group_left () max by (UUID, GPU_I_ID) ({device})")
}

/// A reading of the boards that are held, divided among holders by their parts.
pub(super) fn of_board(query: &Query<'static>, parts: &str, field: &'static str) -> String {
    format!("{parts} * on (UUID) group_left () {}", query.max("UUID", field, ""))
}

/// A table of devices with their pods. `more` narrows the devices.
pub(super) fn holders(query: &Query<'static>, more: &str) -> Panel {
    let columns = &[
        ("cluster", "Cluster"),
        ("hostname", "Host"),
        ("gpu", "GPU"),
        ("UUID", "UUID"),
        ("GPU_I_PROFILE", "MIG profile"),
        ("GPU_I_ID", "GPU instance"),
        ("namespace", "Namespace"),
        ("pod", "Pod"),
    ];
    Panel::table(
        "Pods",
        "Pods that hold these devices now; a shared device has a row for each. \
         Needs the exporter's attribution (--kubernetes).",
        Table::facts(columns, "GPU", held_by(query, Which::All, HOLDER, more)),
    )
    .size(24, 8)
}
