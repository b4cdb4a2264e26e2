//! Start-up and exit codes; nothing else.

use std::process::ExitCode;

use nvml_exporter::config::{self, Command, Config, Stop, ThisMachine};
use nvml_exporter::{service, telemetry};

fn main() -> ExitCode {
    match config::load(std::env::args_os(), &ThisMachine) {
        Ok(config) => run(config),
        Err(stop) => {
            match &stop {
                // Help and version go to standard output, usage errors to standard error.
                Stop::Usage(error) => drop(error.print()),
                Stop::Invalid(_) => complain(&stop),
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
    for warning in &config.warnings {
        tracing::warn!("{warning}");
    }
    let result = match config.command {
        Command::Serve => service::run(config).map_err(|error| error.to_string()),
        Command::Check | Command::Fields => Err("not built yet".to_owned()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&error);
            ExitCode::FAILURE
        }
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
