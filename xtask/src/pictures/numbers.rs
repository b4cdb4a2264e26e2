//! Numbers with units, colours by level, names of values: as Grafana would show them.

use serde_json::Value;

use super::answers::{list, text};

/// Prefixes of a unit, each a factor of this greater.
fn scaled(value: f64, factor: f64, units: &[&str]) -> String {
    let mut value = value;
    let mut units = units.iter();
    let mut unit = units.next().copied().unwrap_or_default();
    for next in units {
        if value.abs() < factor {
            break;
        }
        value /= factor;
        unit = next;
    }
    format!("{} {unit}", short(value)).trim_end().to_owned()
}

/// Three digits that matter, as far as they do.
fn short(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        _ => 2,
    };
    let number = format!("{value:.digits$}");
    if number.contains('.') {
        number.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        number
    }
}

/// A value with its unit.
pub(super) fn shown(value: f64, unit: &str, decimals: Option<u64>) -> String {
    if let Some(decimals) = decimals {
        let digits = usize::try_from(decimals).unwrap_or(2);
        let unit = if unit == "kwatth" { " kWh" } else { "" };
        return format!("{value:.digits$}{unit}");
    }
    match unit {
        "percentunit" => format!("{} %", short(value * 100.0)),
        "bytes" => scaled(value, 1024.0, &["B", "KiB", "MiB", "GiB", "TiB"]),
        "Bps" => scaled(value, 1000.0, &["B/s", "kB/s", "MB/s", "GB/s", "TB/s"]),
        "watt" => scaled(value, 1000.0, &["W", "kW", "MW"]),
        "kwatth" => format!("{} kWh", short(value)),
        "celsius" => format!("{} °C", short(value)),
        "hertz" => scaled(value, 1000.0, &["Hz", "kHz", "MHz", "GHz"]),
        "s" if value.abs() < 1.0 => format!("{} ms", short(value * 1000.0)),
        "s" => format!("{} s", short(value)),
        "cps" => format!("{} c/s", short(value)),
        "dateTimeAsIso" => time(value / 1000.0),
        _ => scaled(value, 1000.0, &["", "K", "Mil", "Bil"]),
    }
}

/// The time of day, UTC.
pub(super) fn time(unix: f64) -> String {
    let day = unix.rem_euclid(86_400.0);
    let (hours, minutes) = ((day / 3600.0).floor(), (day / 60.0).floor() % 60.0);
    format!("{hours:02.0}:{minutes:02.0}:{:02.0}", (day % 60.0).floor())
}

/// A colour of Grafana's by its name.
pub(super) fn colour(name: &str) -> &'static str {
    match name {
        "green" => "#4c9a5b",
        "yellow" => "#d9a81e",
        "orange" => "#e0752d",
        "red" => "#c4162a",
        _ => "#3d71d9",
    }
}

/// The colour of a value by thresholds.
pub(super) fn level(value: f64, thresholds: &Value) -> &'static str {
    let steps = list(&thresholds["steps"]).iter();
    let mut reached = steps.rev();
    let reached = reached.find(|step| step["value"].as_f64().is_none_or(|from| value >= from));
    reached.map_or(colour("blue"), |step| colour(text(&step["color"])))
}

/// What a value is called, and its colour, if it has a name.
pub(super) fn mapped(value: f64, mappings: &Value) -> Option<(&str, &'static str)> {
    let options = &list(mappings).first()?["options"];
    let mapping = &options[format!("{value:.0}")];
    mapping.is_object().then(|| (text(&mapping["text"]), colour(text(&mapping["color"]))))
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn numbers_have_three_digits_and_a_unit() {
        for (value, unit, expected) in [
            (0.5, "percentunit", "50 %"),
            (69_478.0 * 1_048_576.0, "bytes", "67.8 GiB"),
            (1_980_000_000.0, "hertz", "1.98 GHz"),
            (2_345.6, "watt", "2.35 kW"),
            (0.0123, "s", "12.3 ms"),
            (0.0, "short", "0"),
            (1_700_000_000_000.0, "dateTimeAsIso", "22:13:20"),
        ] {
            assert_eq!(shown(value, unit, None), expected);
        }
        assert_eq!(shown(1.0, "short", Some(2)), "1.00");
    }
}
