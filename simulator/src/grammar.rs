//! The language of the control file: one command a line, words apart by blanks, `#` comments.

use std::time::Duration;

use crate::clock::parse_duration;
use crate::code::{self, Code};
use crate::fault::{Effect, Fault, Victim};
use crate::process::Process;
use crate::setting::{Key, Scope, parse_value};

/// A command.
#[derive(Debug, PartialEq)]
pub(crate) enum Command {
    Clock(ClockChange),
    Driver(DriverChange),
    Fault(Fault),
    ClearFault(Fault),
    Gpu(Which, GpuChange),
}

/// Which GPUs a command is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    One(usize),
    All,
}

/// `clock ...`
#[derive(Debug, PartialEq)]
pub(crate) enum ClockChange {
    Advance(f64),
    Set(f64),
    Freeze(Option<f64>),
    Run,
}

/// `driver ...`
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum DriverChange {
    Unload,
    Load(Option<String>),
    Mismatch,
}

/// `gpu <n> ...`
#[derive(Debug, PartialEq)]
pub(crate) enum GpuChange {
    Set(Scope, Key, f64),
    Add(Scope, Key, f64),
    Unset(Scope, Option<Key>),
    Event {
        types: u64,
        data: u64,
        gi: Option<u32>,
        ci: Option<u32>,
    },
    Lost(bool),
    Attached(bool),
    Mig(Option<Vec<String>>),
    Accounting(bool),
    /// Processes to report on the GPU or one of its instances; `None` for the client's own.
    Processes(Option<u32>, Option<Vec<Process>>),
}

/// Reads a line. `None` for blank lines and comments.
pub(crate) fn parse(line: &str) -> Result<Option<Command>, String> {
    let line = line.split('#').next().unwrap_or_default();
    let words: Vec<&str> = line.split_whitespace().collect();
    match words.as_slice() {
        [] => Ok(None),
        ["clock", rest @ ..] => clock(rest).map(Command::Clock).map(Some),
        ["driver", rest @ ..] => driver(rest).map(Command::Driver).map(Some),
        ["system", rest @ ..] => fault(Victim::System, rest)
            .unwrap_or_else(|| Err("system takes error, latency, hang or resume".to_owned()))
            .map(Some),
        ["gpu", which, rest @ ..] => gpu(which, rest).map(Some),
        [word, ..] => Err(format!("no command {word} (there are clock, driver, gpu, system)")),
    }
}

fn clock(words: &[&str]) -> Result<ClockChange, String> {
    let seconds = |text: &str| parse_duration(text).ok_or_else(|| format!("not a time: {text}"));
    match words {
        ["advance", time] => seconds(time).map(ClockChange::Advance),
        ["set", time] => seconds(time).map(ClockChange::Set),
        ["freeze"] => Ok(ClockChange::Freeze(None)),
        ["freeze", time] => seconds(time).map(|t| ClockChange::Freeze(Some(t))),
        ["run"] => Ok(ClockChange::Run),
        _ => Err("clock takes: advance <time>, set <time>, freeze [<time>], run".to_owned()),
    }
}

fn driver(words: &[&str]) -> Result<DriverChange, String> {
    match words {
        ["unload"] => Ok(DriverChange::Unload),
        ["load"] => Ok(DriverChange::Load(None)),
        ["load", version] if !crate::scenario::version_numbers(version).is_empty() => {
            Ok(DriverChange::Load(Some((*version).to_owned())))
        }
        ["mismatch"] => Ok(DriverChange::Mismatch),
        _ => Err("driver takes: unload, load [<version>], mismatch".to_owned()),
    }
}

fn gpu(which: &str, words: &[&str]) -> Result<Command, String> {
    let which = match which {
        "*" => Which::All,
        number => Which::One(number.parse().map_err(|_| format!("not a GPU: {number}"))?),
    };
    let victim = match which {
        Which::All => Victim::AllGpus,
        Which::One(number) => Victim::Gpu(number),
    };
    if let Some(command) = fault(victim, words) {
        return command;
    }
    gpu_change(words).map(|change| Command::Gpu(which, change))
}

fn gpu_change(words: &[&str]) -> Result<GpuChange, String> {
    match words {
        ["link", link, rest @ ..] => value(Scope::Link(number(link)?), rest),
        ["gi", gi, "processes", list] => {
            Ok(GpuChange::Processes(Some(number(gi)?), Process::parse_list(list)?))
        }
        ["gi", gi, rest @ ..] => value(Scope::Instance(number(gi)?), rest),
        ["set" | "add" | "unset", ..] => value(Scope::Gpu, words),
        ["xid", xid, rest @ ..] => {
            let (gi, ci) = instance(rest)?;
            let xid = xid.parse().map_err(|_| format!("not an XID: {xid}"))?;
            Ok(GpuChange::Event { types: 8, data: xid, gi, ci })
        }
        ["event", types, rest @ ..] => event(types, rest),
        ["lost"] => Ok(GpuChange::Lost(true)),
        ["restore"] => Ok(GpuChange::Lost(false)),
        ["detach"] => Ok(GpuChange::Attached(false)),
        ["attach"] => Ok(GpuChange::Attached(true)),
        ["processes", list] => Ok(GpuChange::Processes(None, Process::parse_list(list)?)),
        ["accounting", "on"] => Ok(GpuChange::Accounting(true)),
        ["accounting", "off"] => Ok(GpuChange::Accounting(false)),
        ["mig", "off"] => Ok(GpuChange::Mig(None)),
        ["mig", "on"] => Ok(GpuChange::Mig(Some(Vec::new()))),
        ["mig", list] => Ok(GpuChange::Mig(Some(list.split(',').map(str::to_owned).collect()))),
        _ => Err(format!(
            "gpu <n> takes set, add, unset, link, gi, error, field, gpm, latency, hang, resume, xid, \
             event, lost, restore, detach, attach, mig, accounting or processes, not: {}",
            words.join(" ")
        )),
    }
}

fn value(scope: Scope, words: &[&str]) -> Result<GpuChange, String> {
    let read = |text: &str| parse_value(text).ok_or_else(|| format!("not a value: {text}"));
    match words {
        ["set", key, text] => Ok(GpuChange::Set(scope, Key::parse(key)?, read(text)?)),
        ["add", key, text] => Ok(GpuChange::Add(scope, Key::parse(key)?, read(text)?)),
        ["unset", "*"] => Ok(GpuChange::Unset(scope, None)),
        ["unset", key] => Ok(GpuChange::Unset(scope, Some(Key::parse(key)?))),
        _ => Err("a value takes: set <key> <value>, add <key> <value>, unset <key|*>".to_owned()),
    }
}

fn event(types: &str, rest: &[&str]) -> Result<GpuChange, String> {
    const TYPES: &[(&str, u64)] = &[
        ("sbe", 0x1),
        ("dbe", 0x2),
        ("pstate", 0x4),
        ("xid", 0x8),
        ("clock", 0x10),
        ("power_source", 0x80),
        ("mig", 0x100),
        ("sbe_storm", 0x200),
        ("dram_retirement", 0x400),
        ("dram_retirement_failure", 0x800),
        ("poison", 0x1000),
        ("fatal_poison", 0x2000),
        ("unavailable", 0x4000),
        ("recovery_action", 0x8000),
    ];
    let types = TYPES.iter().find(|(n, _)| *n == types).map(|(_, t)| *t).ok_or_else(|| {
        let names: Vec<&str> = TYPES.iter().map(|(n, _)| *n).collect();
        format!("no event {types}; there are {}", names.join(", "))
    })?;
    let (data, rest) = match rest {
        [data, rest @ ..] if data.parse::<u64>().is_ok() => (data.parse().unwrap_or(0), rest),
        _ => (0, rest),
    };
    let (gi, ci) = instance(rest)?;
    Ok(GpuChange::Event { types, data, gi, ci })
}

fn instance(words: &[&str]) -> Result<(Option<u32>, Option<u32>), String> {
    match words {
        [] => Ok((None, None)),
        ["gi", gi] => Ok((Some(number(gi)?), None)),
        ["gi", gi, "ci", ci] => Ok((Some(number(gi)?), Some(number(ci)?))),
        _ => Err(format!("expected: gi <n> [ci <n>], not: {}", words.join(" "))),
    }
}

fn number(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("not a number: {text}"))
}

/// The commands that GPUs and the system share. `None` if the words are none of them.
fn fault(victim: Victim, words: &[&str]) -> Option<Result<Command, String>> {
    let function = |name: &str| (name != "*").then(|| name.to_owned());
    let build = |name: &str, effect| Fault { victim, function: function(name), effect };
    Some(match words {
        ["error", name, "clear"] => Ok(Command::ClearFault(build(name, Effect::Error(0)))),
        ["error", name, text] => {
            code(text).map(|code| Command::Fault(build(name, Effect::Error(code))))
        }
        ["field", id, "error", text] => field(id).and_then(|id| {
            if *text == "clear" {
                Ok(Command::ClearFault(build("*", Effect::Field(id, 0))))
            } else {
                code(text).map(|code| Command::Fault(build("*", Effect::Field(id, code))))
            }
        }),
        ["gpm", id, rest @ ..] => gpm(victim, id, rest),
        ["latency", name, "clear"] => {
            Ok(Command::ClearFault(build(name, Effect::Latency(Duration::ZERO))))
        }
        ["latency", name, text] => parse_duration(text)
            .map(|s| Command::Fault(build(name, Effect::Latency(Duration::from_secs_f64(s)))))
            .ok_or_else(|| format!("not a time: {text}")),
        ["hang", name] => Ok(Command::Fault(build(name, Effect::Hang))),
        ["resume"] => Ok(Command::ClearFault(build("*", Effect::Hang))),
        ["resume", name] => Ok(Command::ClearFault(build(name, Effect::Hang))),
        ["error", ..] => Err("error takes: <function|*> <code|clear>".to_owned()),
        ["field", ..] => Err("field takes: <id|*> error <code|clear>".to_owned()),
        ["latency", ..] => Err("latency takes: <function|*> <time|clear>".to_owned()),
        ["hang", ..] => Err("hang takes: <function|*>".to_owned()),
        _ => return None,
    })
}

/// What a metric is to be: a value, not a number at all, or an error.
fn gpm(victim: Victim, id: &str, words: &[&str]) -> Result<Command, String> {
    let id = field(id)?;
    let build = |answer| Fault { victim, function: None, effect: Effect::Gpm(id, answer) };
    match words {
        ["clear"] => Ok(Command::ClearFault(build(Ok(0.0)))),
        ["error", text] => Ok(Command::Fault(build(Err(code(text)?)))),
        ["set", "nan"] => Ok(Command::Fault(build(Ok(f64::NAN)))),
        ["set", text] => {
            let value = parse_value(text).ok_or_else(|| format!("not a value: {text}"))?;
            Ok(Command::Fault(build(Ok(value))))
        }
        _ => Err("gpm takes: <id|*> set <value|nan>, <id|*> error <code>, <id|*> clear".to_owned()),
    }
}

fn field(text: &str) -> Result<Option<u32>, String> {
    if text == "*" { Ok(None) } else { number(text).map(Some) }
}

fn code(text: &str) -> Result<Code, String> {
    code::parse(text).ok_or_else(|| format!("not a return code: {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(line: &str) -> Command {
        parse(line).unwrap().unwrap()
    }

    #[test]
    fn blank_lines_and_comments_are_nothing() {
        assert_eq!(parse("  "), Ok(None));
        assert_eq!(parse("# gpu 0 lost"), Ok(None));
    }

    #[test]
    fn values_are_set_on_gpus_links_and_instances() {
        assert_eq!(
            one("gpu 3 set temperature 91"),
            Command::Gpu(Which::One(3), GpuChange::Set(Scope::Gpu, Key::Temperature, 91.0))
        );
        assert_eq!(
            one("gpu * link 4 set state down # cable"),
            Command::Gpu(Which::All, GpuChange::Set(Scope::Link(4), Key::LinkState, 0.0))
        );
        assert_eq!(
            one("gpu 0 gi 7 unset *"),
            Command::Gpu(Which::One(0), GpuChange::Unset(Scope::Instance(7), None))
        );
    }

    #[test]
    fn faults_name_function_and_code() {
        let fault = Fault {
            victim: Victim::Gpu(3),
            function: Some("nvmlDeviceGetTemperature".to_owned()),
            effect: Effect::Error(15),
        };
        assert_eq!(one("gpu 3 error nvmlDeviceGetTemperature GPU_IS_LOST"), Command::Fault(fault));
        let fault = Fault { victim: Victim::System, function: None, effect: Effect::Error(0) };
        assert_eq!(one("system error * clear"), Command::ClearFault(fault));
    }

    #[test]
    fn events_carry_their_instance() {
        assert_eq!(
            one("gpu 1 xid 94 gi 9 ci 0"),
            Command::Gpu(
                Which::One(1),
                GpuChange::Event { types: 8, data: 94, gi: Some(9), ci: Some(0) }
            )
        );
    }

    #[test]
    fn processes_are_put_on_gpus_and_instances() {
        let list = Some(vec![Process::new(7)]);
        assert_eq!(
            one("gpu 0 gi 9 processes 7"),
            Command::Gpu(Which::One(0), GpuChange::Processes(Some(9), list))
        );
        assert_eq!(
            one("gpu * processes none"),
            Command::Gpu(Which::All, GpuChange::Processes(None, Some(Vec::new())))
        );
    }

    #[test]
    fn accounting_is_on_or_off() {
        for (word, on) in [("on", true), ("off", false)] {
            let command = Command::Gpu(Which::One(2), GpuChange::Accounting(on));
            assert_eq!(one(&format!("gpu 2 accounting {word}")), command);
        }
    }

    #[test]
    fn mistakes_are_explained() {
        for (line, hint) in [
            ("gpu 3 set temprature 91", "temperature"),
            ("gpu x lost", "not a GPU"),
            ("gpu 3 explode", "detach"),
            ("gpu 3 latency * soon", "not a time"),
            ("gpu 3 accounting perhaps", "accounting"),
            ("gpu 3 processes me", "not a process"),
            ("gpu 3 error f SOMETHING", "not a return code"),
            ("clock back", "advance"),
            ("reboot", "no command reboot"),
            ("system lost", "system takes"),
        ] {
            let error = parse(line).unwrap_err();
            assert!(error.contains(hint), "{line}: {error}");
        }
    }
}
