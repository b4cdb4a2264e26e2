//! What profiling and processes add to the exporter's own CPU time, the simulator's taken off.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::exporter::Exporter;
use super::{SPED_UP, Selection};
use crate::shell::{self, Outcome};

/// Enough that the kernel's ticks of 10 ms do not matter.
const PASSES: u64 = 600;
/// Passes before that, in which what is not supported is found out.
const SETTLE: u64 = 20;
/// What a counters file without profiling leaves out.
const PROFILING: &str = "DCGM_FI_PROF_";

pub(super) fn measure() -> Outcome {
    let folder = shell::target().join("bench");
    let plain = without_profiling(&folder)?;
    let runs = [
        ("without both", Some(plain.clone()), &[][..]),
        ("with profiling", None, &[][..]),
        ("with processes", Some(plain), &["--usage-by=process"][..]),
        ("with both", None, &["--usage-by=process"][..]),
    ];
    let mut first = None;
    for (name, file, arguments) in runs {
        let own = own_cpu(&Selection { name, file, arguments }, &folder.join("simulator-cost"))?;
        let first = *first.get_or_insert(own);
        let more = own.as_secs_f64() - first.as_secs_f64();
        println!(
            "| {name} | own CPU of a pass over all GPUs with its page | {:.2} ms ({:+.2} ms) |",
            own.as_secs_f64() * 1e3,
            more * 1e3
        );
    }
    Ok(())
}

/// CPU time of a pass without that of the simulator's calls.
fn own_cpu(selection: &Selection, cost: &Path) -> Outcome<Duration> {
    // What the last run counted.
    let _ = fs::remove_file(cost);
    let exporter = Exporter::start_with(selection, SPED_UP, &[("NVML_SIM_COST", cost)])?;
    exporter.first_page()?;
    exporter.after(SETTLE, SPED_UP)?;
    let read = || -> Outcome<(Duration, Duration, u64)> {
        let usage = exporter.usage()?;
        Ok((usage.cpu, simulators(cost)?, usage.passes))
    };
    let (cpu_before, simulated_before, passes_before) = read()?;
    exporter.after(passes_before + PASSES, SPED_UP)?;
    let (cpu, simulated, passes) = read()?;
    let own =
        cpu.saturating_sub(cpu_before).saturating_sub(simulated.saturating_sub(simulated_before));
    let passes = u32::try_from(passes - passes_before).unwrap_or(u32::MAX);
    Ok(own / passes.max(1))
}

/// What the simulator has added up.
fn simulators(cost: &Path) -> Outcome<Duration> {
    let bytes = fs::read(cost).map_err(|error| format!("{}: {error}", cost.display()))?;
    let number = bytes.try_into().map(u64::from_ne_bytes);
    number.map(Duration::from_nanos).map_err(|_| format!("{} is not a number", cost.display()))
}

fn without_profiling(folder: &Path) -> Outcome<PathBuf> {
    let make = || -> std::io::Result<PathBuf> {
        let rows = fs::read_to_string(shell::root().join("metrics.csv"))?;
        let kept: Vec<&str> = rows.lines().filter(|row| !row.starts_with(PROFILING)).collect();
        fs::create_dir_all(folder)?;
        let file = folder.join("without-profiling.csv");
        fs::write(&file, kept.join("\n") + "\n")?;
        Ok(file)
    };
    make().map_err(|error| format!("metrics.csv: {error}"))
}
