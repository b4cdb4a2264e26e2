//! Start-up and exit codes; nothing else.

use std::process::ExitCode;

use nvml_exporter::config::{self, Command, Config, Stop, ThisMachine};
use nvml_exporter::service::inspect::Verdict;
use nvml_exporter::{service, telemetry};

fn main() -> ExitCode {
    match config::load(std::env::args_os(), &ThisMachine) {
        Ok(config) => run(config),
        Err(stop) => {
            match &stop {
                // Help and the version are no mistakes: they go to standard output.
                Stop::Usage(error) if !error.use_stderr() => drop(error.print()),
                Stop::Usage(_) | Stop::Invalid(_) => complain(&stop),
            }
            ExitCode::from(stop.exit_code())
        }
    }
}

fn run(config: Config) -> ExitCode {
    if let Err(error) = telemetry::log::install(&config.log) {
        complain(&error);
        return ExitCode::FAILURE;
    }
    if config.command == Command::Serve {
        for warning in &config.warnings {
            tracing::warn!("{warning}");
        }
    }
    let result = match config.command {
        Command::Serve => service::run(config).map(|()| ExitCode::SUCCESS),
        Command::Check => service::inspect::check(&config)
            .map(|(report, verdict)| print(&report, status(verdict))),
        Command::Once => {
            service::once::once(&config).map(|(page, verdict)| print(&page, status(verdict)))
        }
        Command::Fields => {
            service::inspect::list(&config).map(|report| print(&report, ExitCode::SUCCESS))
        }
    };
    result.unwrap_or_else(|error| {
        complain(&error);
        ExitCode::FAILURE
    })
}

/// The exit status of `check` and `once` when the configuration is right and the node has nothing
/// to export.
const NOTHING_HERE: u8 = 2;

fn status(verdict: Verdict) -> ExitCode {
    match verdict {
        Verdict::Fine => ExitCode::SUCCESS,
        Verdict::NothingHere => ExitCode::from(NOTHING_HERE),
    }
}

/// Prints a report; the exit status given, unless it could not be written.
fn print(report: &str, status: ExitCode) -> ExitCode {
    use std::io::Write as _;

    let mut out = std::io::stdout();
    match out.write_all(report.as_bytes()).and_then(|()| out.flush()) {
        // A reader that has closed the pipe has seen what it wanted.
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            complain(&format_args!("cannot write to standard output: {error}"));
            ExitCode::FAILURE
        }
        _ => status,
    }
}

/// One line on standard error for each mistake, whatever the log level.
fn complain(error: &dyn std::fmt::Display) {
    use std::io::Write as _;

    for line in error.to_string().lines() {
        // A closed standard error leaves only the exit code to speak.
        let _ = writeln!(std::io::stderr(), "nvml-exporter: {line}");
    }
}
