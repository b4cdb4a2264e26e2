//! docs/xids.md, generated.

use std::fmt::Write as _;

use expect_test::expect_file;

use super::{Class, Severity, Step, Xid, all};

const HEAD: &str = "\
# XIDs

What the driver's XIDs mean, and what to do; generated from `src/xid/table.rs` by `cargo xtask docs`.
The metrics are described in [own-metrics.md](own-metrics.md), the alerts in [../alerts](../alerts/README.md).

The exporter hears of XIDs from NVML's events and, where it may read it, from the kernel log: some of the worst, such as 62, 79, 119 and 120, NVML does not always tell of.
`DCGM_EXP_XID_ERRORS_TOTAL{xid}` counts them, from 0 for those below that are critical or warnings; `nvml_xid_info` has class, severity and the first step as labels.

Some rules of thumb:

* 45 follows from another: look for the code before it. 154 repeats what `DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION` says.
* 63 is good news, a row was remapped; 64 says that it could not be.
* 94 costs one job, 95 the GPU.
* 13 and 31 are the job's, unless different jobs have them on the same GPU.
* 144 to 150 need the sub-code and the link, which stand in the kernel log's line.

";

fn xids_md() -> String {
    let mut text = HEAD.to_owned();
    text.push_str("## By code\n\n| XID | Means | Class | Severity | To do, in this order |\n|--:|---|---|---|---|\n");
    for Xid { code, name, class, severity, steps } in all() {
        let steps: Vec<_> = steps.iter().map(|step| format!("`{}`", step.as_str())).collect();
        let (class, severity, steps) = (class.as_str(), severity.as_str(), steps.join(", "));
        let _ = writeln!(text, "| {code} | {name} | {class} | {severity} | {steps} |");
    }
    text.push_str("\n## Words\n\n| Word | Means |\n|---|---|\n");
    let words = Severity::ALL.iter().map(|one| (one.as_str(), one.sentence()));
    let words = words.chain(Class::ALL.iter().map(|one| (one.as_str(), one.sentence())));
    for (word, sentence) in words.chain(Step::ALL.iter().map(|one| (one.as_str(), one.sentence())))
    {
        let _ = writeln!(text, "| `{word}` | {sentence} |");
    }
    text
}

#[test]
fn the_table_is_what_the_code_says() {
    expect_file!["../../docs/xids.md"].assert_eq(&xids_md());
}
