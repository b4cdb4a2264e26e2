//! The project's own commands: `cargo xtask COMMAND`.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "commands speak to a terminal")]

mod alerts;
mod bench;
mod dashboards;
mod demo;
mod deploy;
mod docs;
mod http;
mod kubelet;
mod needs;
mod pictures;
mod shell;
mod tests;

use std::process::ExitCode;

const USAGE: &str = "\
The project's own commands.

Usage: cargo xtask COMMAND

  demo [SCENARIO] [-- FLAGS]   build and run the exporter on a simulated machine (dgx-h100), with a
                               Prometheus beside it where one is installed; FLAGS are the exporter's
  demo --real [-- FLAGS]       the same on this machine's NVIDIA GPUs
  test [ARGS]                  install what the tests need, then run them all; ARGS are cargo test's
  bench [--quick]              measure what docs/performance.md tells, and print it
  docs                         write the generated documents anew
  deploy                       write the manifests anew from the Helm chart, and what the chart copies
  alerts                       write the rule files in alerts/ anew; with --out DIR and --set
                               NAME=VALUE others, with other thresholds
  dashboards [--check]         write Grafana's dashboards anew; --check fails if one is not current
  pictures [--again]           draw the dashboards anew from a short simulated run; --again from the
                               answers of the last one
  e2e-kubelet [--record]       the exporter beside a real kubelet (docs/e2e-kubelet.md); --record keeps
                               the kubelet's answers for the tests
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (command, rest) = match arguments.split_first() {
        Some((command, rest)) => (command.as_str(), rest),
        None => ("help", [].as_slice()),
    };
    let result = match command {
        "demo" => demo::run(rest),
        "test" => tests::run(rest),
        "bench" => bench::run(rest),
        "docs" => docs::run(),
        "deploy" => deploy::run(),
        "alerts" => alerts::run(rest),
        "dashboards" => dashboards::run(rest),
        "pictures" => pictures::run(rest),
        "e2e-kubelet" => kubelet::run(rest),
        "help" | "-h" | "--help" => {
            print!("{USAGE}");
            Ok(())
        }
        other => Err(format!("there is no command {other}\n\n{USAGE}")),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("xtask: {problem}");
            ExitCode::FAILURE
        }
    }
}
