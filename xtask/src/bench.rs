//! `bench`: the figures of docs/performance.md, each from a run of the release build on the
//! simulated machine `dense-16x7`.

mod exporter;
mod own;
mod serving;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::needs::{self, WRK};
use crate::shell::{self, Outcome, cargo};
use exporter::Exporter;

/// Passes in an hour at one a second.
const PASSES_AN_HOUR: u64 = 3600;
/// Passes of a `--quick` run.
const PASSES_QUICK: u64 = 300;
/// The shortest interval that the exporter takes.
const SPED_UP: Duration = Duration::from_millis(100);
/// Starts of which the median is told.
const STARTS: usize = 9;

/// A selection of fields to measure with.
struct Selection {
    name: &'static str,
    /// A counters file; `None` is the built-in selection.
    file: Option<PathBuf>,
    /// Further flags.
    arguments: &'static [&'static str],
}

pub(crate) fn run(arguments: &[String]) -> Outcome {
    let passes = match arguments {
        [] => PASSES_AN_HOUR,
        [quick] if quick == "--quick" => PASSES_QUICK,
        [own] if own == "--own" => {
            shell::run(&mut cargo(&["build", "--release", "--workspace"]))?;
            return own::measure();
        }
        _ => return Err("usage: cargo xtask bench [--quick | --own]".to_owned()),
    };
    needs::packages(&[WRK])?;
    shell::run(&mut cargo(&["build", "--release", "--workspace"]))?;
    let selections = [
        Selection { name: "default", file: None, arguments: &[] },
        Selection { name: "all fields", file: Some(every_field()?), arguments: &[] },
    ];
    println!("\n| Selection | What | Figure |\n|---|---|---|");
    for selection in &selections {
        measure(selection, passes)?;
    }
    own::measure()?;
    criterion()
}

fn measure(selection: &Selection, passes: u64) -> Outcome {
    let say = |what: &str, figure: String| {
        println!("| {} | {what} | {figure} |", selection.name);
    };
    let size = start_up(selection, &say)?;
    say("size of the page", format!("{} KiB", size / 1024));
    serving::measure(selection, &say)?;
    long_run(selection, passes, &say)
}

/// From starting the process to holding its first page with values.
fn start_up(selection: &Selection, say: &dyn Fn(&str, String)) -> Outcome<usize> {
    let mut times = Vec::new();
    let mut size = 0;
    for _ in 0..STARTS {
        let begin = Instant::now();
        let exporter = Exporter::start(selection, Duration::from_secs(30))?;
        size = exporter.first_page()?.len();
        times.push(begin.elapsed());
    }
    times.sort();
    say(
        &format!("start to first page, median of {STARTS}"),
        format!(
            "{} ms (slowest {} ms)",
            times[STARTS / 2].as_millis(),
            times[STARTS - 1].as_millis()
        ),
    );
    Ok(size)
}

/// Memory and CPU time over many passes. What memory is at a tenth of them tells a level that
/// was reached from growth that goes on.
fn long_run(selection: &Selection, passes: u64, say: &dyn Fn(&str, String)) -> Outcome {
    let exporter = Exporter::start(selection, SPED_UP)?;
    exporter.first_page()?;
    let before = exporter.usage()?;
    say("RSS after the first pass", mebibytes(before.resident));
    let early = exporter.after(passes / 10, SPED_UP)?;
    say(&format!("RSS after {} passes", early.passes), mebibytes(early.resident));
    let after = exporter.after(passes, SPED_UP)?;
    say(&format!("RSS after {} passes", after.passes), mebibytes(after.resident));
    say("RSS at its highest", mebibytes(after.resident_peak));
    let cpu = after.cpu.saturating_sub(before.cpu);
    let micros = cpu.as_micros() / u128::from(after.passes - before.passes).max(1);
    say("CPU of a pass over all GPUs with its page (simulated)", format!("{micros} µs"));
    Ok(())
}

fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / (1024.0 * 1024.0))
}

/// metrics.csv with every family on.
fn every_field() -> Outcome<PathBuf> {
    let all = |path: &Path| -> std::io::Result<PathBuf> {
        let rows = std::fs::read_to_string(shell::root().join("metrics.csv"))?;
        let on: Vec<&str> = rows.lines().map(switched_on).collect();
        let file = path.join("every-field.csv");
        std::fs::create_dir_all(path)?;
        std::fs::write(&file, on.join("\n") + "\n")?;
        Ok(file)
    };
    all(&shell::target().join("bench")).map_err(|error| format!("metrics.csv: {error}"))
}

/// `# NAME, type, help` without its `# `. Labels stay as they are: twenty of them on every
/// series would measure nothing that anybody serves.
fn switched_on(line: &str) -> &str {
    let Some(row) = line.strip_prefix("# ") else { return line };
    let mut columns = row.split(',').map(str::trim);
    let name = columns.next().unwrap_or_default();
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_family = columns.next().is_some_and(|kind| ["counter", "gauge"].contains(&kind));
    if is_family && name.contains('_') && name.chars().all(is_name) { row } else { line }
}

/// The benchmarks that need no process: rendering, a pass.
fn criterion() -> Outcome {
    if !shell::root().join("benches").is_dir() {
        return Ok(());
    }
    println!();
    shell::run(&mut cargo(&["bench", "--package", "nvml-exporter", "--benches"]))
}
