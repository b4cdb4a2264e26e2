//! Where the wanted rows are listed: counters file, `ConfigMap`, configuration file, built in.

use std::path::{Path, PathBuf};

use super::args::MetricsArgs;
use super::findings::Findings;
use super::machine::Machine;
use super::settings::Counters;
use super::typed::Typed;
use super::yaml::FileCounters;

/// Decides the source. A `ConfigMap` comes before a file, as in dcgm-exporter; what the command
/// line or the environment names comes before what the configuration file names.
pub(super) fn source(
    args: &MetricsArgs,
    file: Option<FileCounters>,
    machine: &dyn Machine,
    found: &mut Findings,
) -> Counters {
    let typed = &args.collectors;
    if let Some((namespace, name)) = config_map(&args.configmap_data, found) {
        let instead = Box::new(instead(typed, file, machine));
        return Counters::ConfigMap { namespace, name, instead };
    }
    if typed.is_set() {
        return explicit(typed, machine, found);
    }
    match file {
        Some(FileCounters::Inline(rows)) => return Counters::Inline(rows),
        Some(FileCounters::File(typed)) => return explicit(&typed, machine, found),
        None => {}
    }
    default_file(typed, machine)
}

fn default_file(typed: &Typed, machine: &dyn Machine) -> Counters {
    let path = PathBuf::from(&typed.text);
    if machine.exists(&path) { Counters::File { path, explicit: false } } else { Counters::BuiltIn }
}

/// What stands in for a `ConfigMap` that cannot be read yet: a file that is not there is no
/// mistake, for it is not what was asked for.
fn instead(typed: &Typed, file: Option<FileCounters>, machine: &dyn Machine) -> Counters {
    match file {
        Some(FileCounters::Inline(rows)) if !typed.is_set() => Counters::Inline(rows),
        Some(FileCounters::File(named)) if !typed.is_set() => default_file(&named, machine),
        _ => default_file(typed, machine),
    }
}

/// Where dcgm-exporter's image has its files.
const DCGM_EXPORTERS: &str = "/etc/dcgm-exporter";

/// A file that somebody asked for: it must be there, for other metrics than those asked for would
/// be a silent mistake.
fn explicit(typed: &Typed, machine: &dyn Machine, found: &mut Findings) -> Counters {
    let path = Path::new(&typed.text);
    if typed.text.is_empty() || !machine.exists(path) {
        let hint = if path.starts_with(DCGM_EXPORTERS) {
            "; it came with dcgm-exporter's image: mount it there, or leave the flag and its \
             variable out for the built-in selection"
        } else {
            ""
        };
        found.refuse(typed, format!("there is no such file; allowed: a counters file (CSV){hint}"));
    }
    Counters::File { path: path.to_owned(), explicit: true }
}

fn config_map(typed: &Typed, found: &mut Findings) -> Option<(String, String)> {
    if typed.text.is_empty() || typed.text == "none" {
        return None;
    }
    let parts: Vec<&str> = typed.text.split(':').collect();
    match parts[..] {
        [namespace, name] if !namespace.is_empty() && !name.is_empty() => {
            Some((namespace.to_owned(), name.to_owned()))
        }
        _ => {
            found.refuse(typed, "is not a ConfigMap; allowed: NAMESPACE:NAME, or none");
            None
        }
    }
}
