//! The line formats: families, samples, escaping, numbers.

use std::fmt::Write as _;

use super::format::Format;
use super::labels::{Block, Insert};
use crate::catalogue::{Kind, Value};

/// A page under construction.
#[derive(Debug)]
pub(super) struct Writer {
    out: String,
    format: Format,
}

impl Writer {
    pub(super) fn new(out: String, format: Format) -> Self {
        Self { out, format }
    }

    pub(super) fn into_string(self) -> String {
        self.out
    }

    /// The text so far, for encoders that write lines themselves.
    pub(super) fn text(&mut self) -> &mut String {
        &mut self.out
    }

    /// One family: HELP, TYPE and what `samples` writes; nothing if it writes nothing.
    pub(super) fn family(
        &mut self,
        name: &str,
        help: &str,
        kind: Kind,
        samples: impl FnOnce(&mut Self),
    ) {
        let start = self.out.len();
        self.header(name, help, kind);
        let body = self.out.len();
        samples(self);
        if self.out.len() == body {
            self.out.truncate(start);
        }
    }

    /// A gauge of our own with samples that `samples` writes.
    pub(super) fn gauge(&mut self, name: &str, help: &str, samples: impl FnOnce(&mut Self)) {
        self.family(name, help, Kind::Gauge, samples);
    }

    /// One sample; `labels` is a rendered block. A value that is not finite has no sample.
    pub(super) fn sample(&mut self, name: &str, labels: &str, value: Value) {
        if is_finite(value) {
            self.out.push_str(name);
            self.out.push_str(labels);
            push_value(&mut self.out, value);
            self.out.push('\n');
        }
    }

    /// One sample with labels beside those of the block, sorted by zone, then name.
    pub(super) fn sample_with(
        &mut self,
        name: &str,
        block: &Block<'_>,
        labels: &[Insert<'_>],
        value: Value,
    ) {
        if is_finite(value) {
            self.out.push_str(name);
            block.push_with(&mut self.out, labels);
            push_value(&mut self.out, value);
            self.out.push('\n');
        }
    }

    fn header(&mut self, name: &str, help: &str, kind: Kind) {
        let (family, kind) = match self.format {
            Format::Text => (name, kind_name(kind)),
            Format::OpenMetrics => openmetrics_type(name, kind),
        };
        self.out.push_str("# HELP ");
        self.out.push_str(family);
        self.out.push(' ');
        // OpenMetrics wants quotes escaped in HELP too, 0.0.4 forbids it.
        push_escaped(&mut self.out, help, self.format == Format::OpenMetrics);
        self.out.push_str("\n# TYPE ");
        self.out.push_str(family);
        self.out.push(' ');
        self.out.push_str(kind);
        self.out.push('\n');
    }
}

fn is_finite(value: Value) -> bool {
    !matches!(value, Value::Float(value) if !value.is_finite())
}

const fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Counter => "counter",
        Kind::Gauge => "gauge",
        Kind::Untyped | Kind::Label => "untyped",
    }
}

/// Family name and type in `OpenMetrics`, where a counter's samples must end in `_total`. DCGM's
/// names stay as they are, so their counters are `unknown`, as in Go's expfmt.
fn openmetrics_type(name: &str, kind: Kind) -> (&str, &'static str) {
    match kind {
        Kind::Gauge => (name, "gauge"),
        Kind::Counter => {
            name.strip_suffix("_total").map_or((name, "unknown"), |family| (family, "counter"))
        }
        Kind::Untyped | Kind::Label => (name, "unknown"),
    }
}

/// Appends `name="value"`, escaped.
pub(super) fn push_label(out: &mut String, name: &str, value: &str) {
    out.push_str(name);
    out.push_str("=\"");
    push_escaped(out, value, true);
    out.push('"');
}

fn push_escaped(out: &mut String, text: &str, quotes: bool) {
    let mut rest = text;
    while let Some(at) = rest.find(['\\', '\n', '"']) {
        out.push_str(&rest[..at]);
        out.push_str(match rest.as_bytes()[at] {
            b'\\' => "\\\\",
            b'\n' => "\\n",
            _ if quotes => "\\\"",
            _ => "\"",
        });
        rest = &rest[at + 1..];
    }
    out.push_str(rest);
}

/// Appends a number in its shortest exact form.
pub(super) fn push_value(out: &mut String, value: Value) {
    match value {
        Value::Int(value) => out.push_str(itoa::Buffer::new().format(value)),
        Value::Uint(value) => out.push_str(itoa::Buffer::new().format(value)),
        Value::Float(value) => push_float(out, value),
    }
}

fn push_float(out: &mut String, value: f64) {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let size = value.abs();
    if size < EXACT && value.fract() == 0.0 {
        #[expect(clippy::cast_possible_truncation, reason = "integral and below 2^53")]
        out.push_str(itoa::Buffer::new().format(value as i64));
    } else if (1e-5..1e16).contains(&size) {
        // Both forms give the fewest digits that read back as the same number.
        let _ = write!(out, "{value}");
    } else {
        let _ = write!(out, "{value:e}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(value: f64) -> String {
        let mut out = String::new();
        push_value(&mut out, Value::Float(value));
        out
    }

    #[test]
    fn floats_are_short_and_read_back_as_the_same_number() {
        for (value, expected) in [
            (0.0, "0"),
            (41.0, "41"),
            (-3.0, "-3"),
            (73.456, "73.456"),
            (0.25, "0.25"),
            (0.1 + 0.2, "0.30000000000000004"),
            (1e-15, "1e-15"),
            (1.5e-7, "1.5e-7"),
            (9_007_199_254_740_992.0, "9007199254740992"),
            (1e22, "1e22"),
            (f64::MAX, "1.7976931348623157e308"),
            (f64::MIN_POSITIVE, "2.2250738585072014e-308"),
        ] {
            assert_eq!(printed(value), expected);
            assert_eq!(printed(value).parse(), Ok(value));
        }
    }

    #[test]
    fn openmetrics_types_a_counter_by_its_name() {
        assert_eq!(openmetrics_type("a_total", Kind::Counter), ("a", "counter"));
        assert_eq!(
            openmetrics_type("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", Kind::Counter),
            ("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "unknown")
        );
        assert_eq!(openmetrics_type("a_total", Kind::Gauge), ("a_total", "gauge"));
        assert_eq!(openmetrics_type("a", Kind::Untyped), ("a", "unknown"));
    }

    #[test]
    fn help_is_escaped_as_its_format_wants() {
        for (format, help) in [
            (Format::Text, r#"# HELP a one\ntwo \\ "three""#),
            (Format::OpenMetrics, r#"# HELP a one\ntwo \\ \"three\""#),
        ] {
            let mut writer = Writer::new(String::new(), format);
            writer.gauge("a", "one\ntwo \\ \"three\"", |writer| {
                writer.sample("a", " ", Value::Int(1));
            });
            assert_eq!(writer.into_string(), format!("{help}\n# TYPE a gauge\na 1\n"));
        }
    }
}
