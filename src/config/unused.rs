//! What dcgm-exporter does and this exporter does not: said once each, and only when asked for.

use super::args::UnusedArgs;
use super::duration::{self, parse_go};
use super::findings::{Findings, parse_bool};
use super::selector::DeviceSelector;
use super::typed::Typed;

/// DCGM's log levels, the only ones that dcgm-exporter takes.
const DCGM_LOG_LEVELS: &[&str] = &["NONE", "FATAL", "ERROR", "WARN", "INFO", "DEBUG", "VERB"];

/// Checks the flags that have no effect, and warns about each that asks for something.
pub(super) fn check(args: &UnusedArgs, found: &mut Findings) {
    if args.remote_hostengine_info.is_set() {
        let why = "there is no DCGM host engine: the GPUs of this machine are read through NVML";
        found.warn(&args.remote_hostengine_info, why);
    }
    check_selectors(args, found);
    check_dcgm_log(args, found);
    check_retention(args, found);
    let switches = [
        (&args.fake_gpus, "there is no DCGM to inject GPUs into; --simulate has simulated ones"),
        (&args.enable_dcgm_log, "there is no DCGM whose log could be passed on"),
        (
            &args.disable_startup_validate,
            "nothing is validated at start: a missing driver is \
            waited for",
        ),
        (&args.enable_gpu_bind_unbind_watch, "GPUs that come and go are always noticed"),
        (&args.enable_pprof, "there are no Go profiling pages"),
        (
            &args.enable_exporter_metrics,
            "the exporter's own metrics are always served; there \
            are no go_* metrics",
        ),
    ];
    for (switch, why) in switches {
        warn_if_on(switch, why, found);
    }
    check_poll_interval(&args.gpu_bind_unbind_poll_interval, found);
}

fn warn_if_on(switch: &Typed, why: &str, found: &mut Findings) {
    match parse_bool(&switch.text) {
        Ok(true) => found.warn(switch, why),
        Ok(false) => {}
        Err(problem) => {
            // A switch that is read elsewhere too is refused there.
            if !found.mistakes.iter().any(|mistake| mistake.at == switch.to_string()) {
                found.refuse(switch, problem);
            }
        }
    }
}

fn check_selectors(args: &UnusedArgs, found: &mut Findings) {
    let selectors = [
        (&args.switch_devices, "NVSwitches are not exported"),
        (&args.cpu_devices, "CPUs are not exported"),
    ];
    for (typed, why) in selectors {
        match typed.text.parse::<DeviceSelector>() {
            Ok(DeviceSelector::Flexible) => {}
            Ok(DeviceSelector::Listed { .. }) => found.warn(typed, why),
            Err(problem) => found.refuse(typed, problem),
        }
    }
}

fn check_dcgm_log(args: &UnusedArgs, found: &mut Findings) {
    let level = &args.dcgm_log_level;
    if !DCGM_LOG_LEVELS.contains(&level.text.as_str()) {
        found.refuse(level, format!("is unknown; allowed: {}", DCGM_LOG_LEVELS.join(", ")));
    } else if level.text != DCGM_LOG_LEVELS[0] {
        found.warn(level, "there is no DCGM whose log could be passed on");
    }
}

/// dcgm-exporter starts with a bad interval, too, and takes a second.
fn check_poll_interval(typed: &Typed, found: &mut Findings) {
    if !typed.is_set() {
        return;
    }
    match parse_go(&typed.text) {
        Some(_) => found.warn(typed, "GPUs that come and go are noticed at each reading"),
        None => found.warn(
            typed,
            format!("is not a duration, and has no effect; allowed: {}", duration::ALLOWED),
        ),
    }
}

fn check_retention(args: &UnusedArgs, found: &mut Findings) {
    let (age, samples) = (&args.watch_max_keep_age, &args.watch_max_keep_samples);
    let length = parse_go(&age.text).and_then(duration::Nanoseconds::to_duration);
    if length.is_none() {
        found.refuse(age, format!("is not 0 or more; allowed: {}", duration::ALLOWED));
    }
    let keeps_age = length.is_none_or(|length| !length.is_zero());
    let keeps_samples = match samples.text.parse::<u32>() {
        Ok(count) if i32::try_from(count).is_ok() => count > 0,
        _ => {
            found.refuse(samples, format!("is not a count; allowed: 0 to {}", i32::MAX));
            true
        }
    };
    if !keeps_age && !keeps_samples {
        found.refuse(age, "and --watch-max-keep-samples are both 0; allowed: one of them");
    } else {
        for typed in [age, samples].into_iter().filter(|typed| typed.is_set()) {
            found.warn(typed, "there is no DCGM that keeps samples");
        }
    }
}
