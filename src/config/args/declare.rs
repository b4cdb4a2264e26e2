//! From the declarations to the parser: switches, environment, help.

use std::fmt::Write as _;

use clap::builder::Resettable;
use clap::{Arg, ArgAction, CommandFactory};

use super::super::machine::Machine;
use super::super::typed::{AsTyped, Origin};
use super::Args;

/// The parser for this machine. Its environment is asked through `machine` and never by clap, so
/// that a test can bring its own and so that messages can name the variable.
#[must_use]
pub fn command(machine: &dyn Machine) -> clap::Command {
    Args::command().mut_args(|arg| finished(arg, machine))
}

/// Whether a flag's value may be left out. Those whose default is `true` or `false` are switches.
fn is_switch(arg: &Arg) -> bool {
    arg.get_default_values().iter().any(|value| value == "true" || value == "false")
}

fn finished(arg: Arg, machine: &dyn Machine) -> Arg {
    let takes_value = matches!(arg.get_action(), ArgAction::Set | ArgAction::Append);
    let (true, Some(long)) = (takes_value, arg.get_long()) else { return arg };
    let flag = format!("--{long}");
    let switch = is_switch(&arg);
    let variable = arg.get_env().map(|name| name.to_string_lossy().into_owned());
    let default = arg.get_default_values().first().cloned();
    // Backticks are for rustdoc.
    let mut text = arg.get_help().map(ToString::to_string).unwrap_or_default().replace('`', "");
    if let Some(default) = default.as_ref().filter(|value| !switch || *value == "true") {
        let _ = write!(text, " [default: {}]", default.to_string_lossy());
    }
    if let Some(variable) = &variable {
        let _ = write!(text, " [env: {variable}]");
    }

    // An empty variable counts as not set: charts render unset values so.
    let from_environment = variable
        .and_then(|name| machine.environment(&name).map(|text| (name, text)))
        .filter(|(_, text)| !text.is_empty());
    let (origin, value) = match from_environment {
        Some((name, text)) => (Origin::Environment(name), Some(text.into())),
        None => (Origin::Default(flag), default),
    };
    let arg = arg
        .env(Resettable::Reset)
        .help(text)
        .hide_default_value(true)
        .default_value(value.map_or(Resettable::Reset, Resettable::Value))
        .value_parser(AsTyped { unless_flag: Some(origin) });
    if switch {
        let name = arg.get_value_names().and_then(|names| names.first()).cloned();
        // clap derives the field's name in capitals where none was declared.
        let declared = name.filter(|name| name.contains('|')).unwrap_or_else(|| "BOOL".into());
        arg.num_args(0..=1).require_equals(true).default_missing_value("true").value_name(declared)
    } else {
        // As in Go, the word after a flag is its value, whatever it looks like.
        arg.allow_hyphen_values(true)
    }
}
