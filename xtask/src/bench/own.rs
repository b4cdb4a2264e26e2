//! What profiling and processes add to the exporter's own CPU time, the simulator's taken off.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
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
    let control = cost.with_extension("control");
    let _ = fs::remove_file(&control);
    let environment = [("NVML_SIM_COST", cost), ("NVML_SIM_CONTROL", control.as_path())];
    let exporter = Exporter::start_with(selection, SPED_UP, &environment)?;
    let (_processes, commands) = occupy(&exporter.first_page()?)?;
    fs::write(&control, commands).map_err(|error| format!("{}: {error}", control.display()))?;
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

/// Processes that do nothing and end with this.
struct Idle(Vec<Child>);

impl Drop for Idle {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A process of its own on each instance, and the commands that tell the simulator so.
fn occupy(page: &str) -> Outcome<(Idle, String)> {
    let label = |line: &str, name: &str| -> Option<String> {
        let (_, rest) = line.split_once(&format!("{name}=\""))?;
        Some(rest.split_once('"')?.0.to_owned())
    };
    let instances = page.lines().filter(|line| line.starts_with("nvml_mig_instance_info{"));
    let (mut idle, mut commands) = (Idle(Vec::new()), String::new());
    for line in instances {
        let (Some(gpu), Some(id)) = (label(line, "{gpu"), label(line, "GPU_I_ID")) else {
            return Err(format!("no instance: {line}"));
        };
        let child = Command::new("sleep").arg("86400").spawn();
        let child = child.map_err(|error| format!("cannot run sleep: {error}"))?;
        let _ = writeln!(commands, "gpu {gpu} gi {id} processes {}:1GiB", child.id());
        idle.0.push(child);
    }
    Ok((idle, commands))
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
