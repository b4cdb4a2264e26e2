//! `docs`: the generated documents.

use crate::shell::{self, Outcome, cargo};

/// The tests that compare a document with the code, and write it anew when told to.
const GENERATED: &[(&str, &str)] = &[
    ("metrics.csv, docs/metrics.md", "catalogue"),
    ("docs/command-line.md", "config::tests::docs"),
    ("docs/xids.md", "xid::docs"),
];

pub(crate) fn run() -> Outcome {
    for (documents, filter) in GENERATED {
        println!("{documents}");
        let mut test = cargo(&["test", "--quiet", "--package", "nvml-exporter", "--lib", filter]);
        shell::run(test.env("UPDATE_EXPECT", "1"))?;
    }
    Ok(())
}
