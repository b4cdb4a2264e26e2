//! `scripts/device-check.sh` on the simulator: it must find no difference.

use std::path::{Path, PathBuf};
use std::process::Command;

const SECTIONS: &[&str] = &[
    "# Hardware report",
    "**Simulated:** scenario `h200-mig-and-whole`.",
    "## Machine",
    "## Differences\n\nNone.",
    "## Completeness",
    "## Not verified",
    "## nvidia-smi",
    "## How values were compared",
    "## Measurements",
    "## Robustness",
    "## NVML's answers",
    "## Files",
];

/// The interpreter with the Python packages of the tests.
fn python() -> PathBuf {
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join(".venv/bin/python");
    assert!(python.exists(), "{} is not there: run cargo xtask test", python.display());
    python
}

#[test]
fn the_device_check_finds_no_difference_on_the_simulator() {
    let out = tempfile::tempdir().unwrap();
    let run = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/device-check.sh"))
        .args(["--simulate", "h200-mig-and-whole", "--rounds", "3", "--passes", "30"])
        .args(["--binary", env!("CARGO_BIN_EXE_nvml-exporter")])
        .arg("--python")
        .arg(python())
        .arg("--out")
        .arg(out.path())
        .output()
        .unwrap();
    let report = std::fs::read_to_string(out.path().join("hardware-report.md")).unwrap_or_default();
    let said = String::from_utf8_lossy(&run.stdout);
    let complained = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{}\n{said}\n{complained}\n{report}", run.status);
    for section in SECTIONS {
        assert!(report.contains(section), "{section} is not in\n{report}");
    }
    let answers = std::fs::read(out.path().join("nvml-answers.json")).unwrap();
    let answers: serde_json::Value = serde_json::from_slice(&answers).unwrap();
    assert_eq!(answers["format"], 1);
    assert!(answers["answers"].as_array().unwrap().len() > 1000);
}
