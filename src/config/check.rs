//! What was typed -> what it means. Every value is looked at before anything is refused.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::args::{Args, DumpArgs, ProcessArgs, WebArgs};
use super::duration::{self, parse_go};
use super::findings::{Findings, items, parse_bool};
use super::machine::Machine;
use super::settings::{Config, Driver, Dump, KernelLog, Listen, Web};
use super::typed::{Invalid, Origin, Typed};
use super::yaml::FileSettings;
use super::{counters, host, interval, kubernetes, listen, unused, yaml};
use crate::telemetry::log::{LogSettings, check_directives};

/// dcgm-exporter's time-outs, which it takes where the text is bad.
const READ_TIMEOUT: Duration = Duration::from_secs(10);
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

impl Args {
    /// What was typed, understood; or every mistake in it.
    pub fn check(&self, machine: &dyn Machine) -> Result<Config, Vec<Invalid>> {
        let mut found = Findings::default();
        let config = self.understood(machine, &mut found);
        if found.mistakes.is_empty() {
            Ok(Config { warnings: found.warnings, ..config })
        } else {
            Err(found.mistakes)
        }
    }

    fn understood(&self, machine: &dyn Machine, found: &mut Findings) -> Config {
        let metrics = &self.metrics;
        let file = file_settings(self.process.config_file.as_ref(), machine, found);
        let interval = interval::between_passes(&metrics.collect_interval, &file.interval, found);
        let kubernetes = kubernetes::check(&self.kubernetes, interval, machine, found);
        let config = Config {
            command: self.command,
            counters: counters::source(metrics, file.counters, machine, found),
            interval,
            devices: found.read(&metrics.devices, str::parse),
            host_label: host::label(self, kubernetes.enabled, machine, found),
            old_namespace: found.switch(&metrics.use_old_namespace),
            replace_blanks: found.switch(&metrics.replace_blanks_in_model_name),
            metric_names: found.choice(&metrics.metric_names),
            openmetrics: found.switch(&metrics.openmetrics),
            quirks: found.switch(&metrics.dcgm_quirks),
            xid_window: found.time(&metrics.xid_count_window_size),
            clock_events_window: found.time(&metrics.clock_events_count_window_size),
            web: web(&self.web, file.max_concurrent_scrapes.as_ref(), found),
            driver: driver(&self.process, found),
            kernel_log: kernel_log(&self.process.kernel_log),
            exit_without_driver: exit_without_driver(&self.process.exit_without_driver, found),
            log: log(&self.process, machine, found),
            dump: dump(&self.dump, found),
            kubernetes,
            warnings: Vec::new(),
        };
        unused::check(&self.unused, found);
        config
    }
}

/// What the configuration file says, if one is named.
fn file_settings(
    typed: Option<&Typed>,
    machine: &dyn Machine,
    found: &mut Findings,
) -> FileSettings {
    let Some(typed) = typed.filter(|typed| !typed.text.is_empty()) else {
        return FileSettings::default();
    };
    match machine.read(Path::new(&typed.text)) {
        Ok(text) => yaml::read(&typed.text, &text, found),
        Err(error) => {
            found.refuse(typed, format!("cannot be read: {error}"));
            FileSettings::default()
        }
    }
}

fn web(args: &WebArgs, file_scrapes: Option<&Typed>, found: &mut Findings) -> Web {
    let scrapes_typed = &args.max_concurrent_scrapes;
    let scrapes_typed =
        if scrapes_typed.is_set() { scrapes_typed } else { file_scrapes.unwrap_or(scrapes_typed) };
    Web {
        listen: addresses(&args.address, found),
        systemd_socket: found.switch(&args.web_systemd_socket),
        config_file: path(args.web_config_file.as_ref()),
        read_timeout: timeout(&args.web_read_timeout, READ_TIMEOUT, found),
        write_timeout: timeout(&args.web_write_timeout, WRITE_TIMEOUT, found),
        max_concurrent_scrapes: scrapes(scrapes_typed, found),
    }
}

fn addresses(typed: &[Typed], found: &mut Findings) -> Vec<Listen> {
    let mistakes = found.mistakes.len();
    let mut addresses = Vec::new();
    for (typed, item) in items(typed) {
        match listen::parse(item) {
            Ok(address) if addresses.contains(&address) => {
                found.warn(typed, format!("{item} is there twice"));
            }
            Ok(address) => addresses.push(address),
            Err(problem) => found.refuse(typed, problem),
        }
    }
    if addresses.is_empty() && mistakes == found.mistakes.len() {
        found.refuse("--address", "no address to listen on; allowed: :9400 and the like");
    }
    addresses
}

/// A bad time-out is dcgm-exporter's default, with a warning, as there.
fn timeout(typed: &Typed, default: Duration, found: &mut Findings) -> Duration {
    match parse_go(&typed.text).and_then(duration::Nanoseconds::to_duration) {
        Some(length) if !length.is_zero() => length,
        _ => {
            let allowed = duration::ALLOWED;
            found.warn(typed, format!("{default:?} is used; allowed: more than 0, {allowed}"));
            default
        }
    }
}

fn scrapes(typed: &Typed, found: &mut Findings) -> NonZeroUsize {
    typed.text.parse().unwrap_or_else(|_| {
        found.refuse(typed, "is not a count; allowed: 1 or more");
        NonZeroUsize::MIN
    })
}

fn driver(args: &ProcessArgs, found: &mut Findings) -> Driver {
    match (path(args.nvml_library.as_ref()), &args.simulate) {
        (library, Some(scenario)) if !scenario.text.is_empty() => {
            if library.is_some() {
                found.refuse(scenario, "and --nvml-library exclude each other");
            }
            Driver::Simulated(scenario.text.clone())
        }
        (Some(library), _) => Driver::Library(library),
        (None, _) => Driver::Installed,
    }
}

fn kernel_log(typed: &Typed) -> Option<KernelLog> {
    match typed.text.as_str() {
        "" | "none" => None,
        "auto" => Some(KernelLog { path: PathBuf::from("/dev/kmsg"), wanted: false }),
        path => Some(KernelLog { path: PathBuf::from(path), wanted: true }),
    }
}

/// `true` is at once, `false` never, and a duration after it.
fn exit_without_driver(typed: &Typed, found: &mut Findings) -> Option<Duration> {
    if let Ok(exits) = parse_bool(&typed.text) {
        return exits.then_some(Duration::ZERO);
    }
    let length = parse_go(&typed.text).and_then(duration::Nanoseconds::to_duration);
    if length.is_none() {
        let allowed = duration::ALLOWED;
        found.refuse(typed, format!("is not a time; allowed: true, false, {allowed}"));
    }
    length
}

/// `--log-level` before `--debug` before `RUST_LOG`, which other programs may be meant by.
fn log(args: &ProcessArgs, machine: &dyn Machine, found: &mut Findings) -> LogSettings {
    let format = found.choice(&args.log_format);
    let debug = found.switch(&args.debug);
    let level = args.log_level.as_ref().filter(|level| !level.text.is_empty());
    let directives = if let Some(level) = level {
        found.choice::<Level>(level).name().to_owned()
    } else if debug {
        Level::Debug.name().to_owned()
    } else {
        rust_log(machine, found).unwrap_or_else(|| Level::Info.name().to_owned())
    };
    LogSettings { format, directives }
}

fn rust_log(machine: &dyn Machine, found: &mut Findings) -> Option<String> {
    let text = machine.environment("RUST_LOG").filter(|text| !text.is_empty())?;
    match check_directives(&text) {
        Ok(()) => Some(text),
        Err(problem) => {
            let typed = Typed { text, origin: Origin::Environment("RUST_LOG".to_owned()) };
            found.warn(typed, format!("ignored: {problem}"));
            None
        }
    }
}

/// Levels of the log.
#[derive(Debug, Clone, Copy, Default, clap::ValueEnum)]
enum Level {
    Error,
    Warn,
    #[default]
    Info,
    Debug,
    Trace,
}

impl Level {
    fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }
}

fn dump(args: &DumpArgs, found: &mut Findings) -> Option<Dump> {
    let enabled = found.switch(&args.dump_enabled);
    let compression = found.switch(&args.dump_compression);
    let hours = found.read(&args.dump_retention, |text| {
        text.parse::<u32>().map_err(|_| "is not a number of hours; allowed: 0 or more".to_owned())
    });
    if args.dump_directory.text.is_empty() {
        found.refuse(&args.dump_directory, "is empty; allowed: a directory");
    }
    enabled.then(|| Dump {
        directory: PathBuf::from(&args.dump_directory.text),
        retention: (hours > 0).then(|| Duration::from_secs(u64::from(hours) * 3600)),
        compression,
    })
}

/// A path, unless it is empty, which is dcgm-exporter's word for none.
pub(super) fn path(typed: Option<&Typed>) -> Option<PathBuf> {
    typed.filter(|typed| !typed.text.is_empty()).map(|typed| PathBuf::from(&typed.text))
}
