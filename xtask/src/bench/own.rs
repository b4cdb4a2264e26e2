//! What profiling and processes add to the exporter's own CPU time, the simulator's taken off.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use super::Selection;
use super::exporter::Exporter;
use crate::shell::{self, Outcome};

/// Longer than GPM's samples have to lie apart, so that no pass waits for that.
const INTERVAL: Duration = Duration::from_millis(250);
const PASSES: u64 = 100;
/// Passes before that, in which what is not supported is found out.
const SETTLE: u64 = 10;
/// The least of so many runs counts, in turns: whatever else the machine does only adds.
const ROUNDS: usize = 3;
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
    let mut least = [Own { pass: Duration::MAX, page: Duration::MAX }; 4];
    for _ in 0..ROUNDS {
        for ((name, file, arguments), least) in runs.iter().zip(&mut least) {
            let selection = Selection { name, file: file.clone(), arguments };
            let own = own_cpu(&selection, &folder.join("simulator-cost"))?;
            *least = Own { pass: least.pass.min(own.pass), page: least.page.min(own.page) };
        }
    }
    let first = least[0];
    for ((name, ..), own) in runs.iter().zip(least) {
        let told = |what: &str, now: Duration, then: Duration| {
            let (now, then) = (now.as_secs_f64() * 1e3, then.as_secs_f64() * 1e3);
            println!("| {name} | own CPU of {what} | {now:.2} ms ({:+.2} ms) |", now - then);
        };
        told("a pass over all GPUs", own.pass, first.pass);
        told("a page", own.page, first.page);
    }
    Ok(())
}

/// CPU time of the exporter itself.
#[derive(Debug, Clone, Copy)]
struct Own {
    /// Of one pass over all GPUs.
    pass: Duration,
    /// Of one page, which is made after each pass.
    page: Duration,
}

/// What was used up to a moment.
struct Used {
    reading: Duration,
    rendering: Duration,
    simulated: Duration,
    passes: u64,
}

/// CPU time of the threads that read, without that of the simulator's calls, and of the one that
/// makes pages.
fn own_cpu(selection: &Selection, cost: &Path) -> Outcome<Own> {
    // What the last run counted.
    let _ = fs::remove_file(cost);
    let control = cost.with_extension("control");
    let _ = fs::remove_file(&control);
    let environment = [("NVML_SIM_COST", cost), ("NVML_SIM_CONTROL", control.as_path())];
    let exporter = Exporter::start_with(selection, INTERVAL, &environment)?;
    let (_processes, commands) = occupy(&exporter.first_page()?)?;
    fs::write(&control, commands).map_err(|error| format!("{}: {error}", control.display()))?;
    exporter.after(SETTLE, INTERVAL)?;
    let read = || -> Outcome<Used> {
        Ok(Used {
            reading: exporter.threads(&["gpu-", "sampler"])?,
            rendering: exporter.threads(&["render"])?,
            simulated: simulators(cost)?,
            passes: exporter.usage()?.passes,
        })
    };
    let before = read()?;
    exporter.after(before.passes + PASSES, INTERVAL)?;
    let after = read()?;
    let passes = u32::try_from(after.passes - before.passes).unwrap_or(u32::MAX).max(1);
    let reading = after.reading.saturating_sub(before.reading);
    let simulated = after.simulated.saturating_sub(before.simulated);
    Ok(Own {
        pass: reading.saturating_sub(simulated) / passes,
        page: after.rendering.saturating_sub(before.rendering) / passes,
    })
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
