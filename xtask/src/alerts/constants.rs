//! Thresholds and lists: `name: value` lines with the comment that explains them above.

use std::fmt::Write as _;

use crate::shell::Outcome;

/// A value with a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Constant {
    pub(super) name: String,
    pub(super) value: String,
    /// The comment above it, without `#`.
    meaning: Vec<String>,
}

/// What a value may be replaced with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Number,
    Duration,
    Text,
}

impl Kind {
    fn of(value: &str) -> Self {
        if value.parse::<f64>().is_ok_and(f64::is_finite) {
            Self::Number
        } else if is_duration(value) {
            Self::Duration
        } else {
            Self::Text
        }
    }

    const fn noun(self) -> &'static str {
        match self {
            Self::Number => "a number",
            Self::Duration => "a duration such as 30m",
            Self::Text => "a text without quotes, backslashes and line ends",
        }
    }
}

/// Prometheus' durations, of one unit.
fn is_duration(value: &str) -> bool {
    let digits = value.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = &value[digits.len()..];
    !digits.is_empty()
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && ["s", "m", "h", "d", "w"].contains(&unit)
}

impl Constant {
    /// The same constant with a reference to a Helm value in place of its own.
    pub(super) fn as_helm_value(&self) -> Self {
        let value = format!("{{{{ .Values.prometheusRule.thresholds.{} }}}}", self.name);
        Self { value, ..self.clone() }
    }
}

/// Reads a file of constants.
pub(super) fn parse(text: &str) -> Outcome<Vec<Constant>> {
    let mut constants = Vec::new();
    let mut meaning = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if let Some(comment) = line.strip_prefix('#') {
            meaning.push(comment.trim().to_owned());
        } else if let Some((name, value)) = line.split_once(": ") {
            let meaning = std::mem::take(&mut meaning);
            let value = value.trim().trim_matches('"').to_owned();
            constants.push(Constant { name: name.to_owned(), value, meaning });
        } else if line.is_empty() {
            meaning.clear();
        } else {
            return Err(format!("line {}: neither a comment nor `name: value`: {line}", index + 1));
        }
    }
    Ok(constants)
}

/// Takes `NAME=VALUE`, if there is such a constant and the value is of its kind.
pub(super) fn set(constants: &mut [Constant], assignment: &str) -> Outcome {
    let (name, value) = assignment
        .split_once('=')
        .ok_or_else(|| format!("--set {assignment}: write NAME=VALUE"))?;
    let Some(constant) = constants.iter_mut().find(|constant| constant.name == name) else {
        return Err(format!("--set {assignment}: alerts/src/thresholds.yml has no {name}"));
    };
    let wanted = Kind::of(&constant.value);
    let broken = value.is_empty() || value.contains(['"', '\'', '\\', '\n', '<', '{']);
    if broken || (wanted != Kind::Text && wanted != Kind::of(value)) {
        return Err(format!("--set {assignment}: {name} is {}", wanted.noun()));
    }
    value.clone_into(&mut constant.value);
    Ok(())
}

/// The part of a chart's `values.yaml` that the Helm templates need.
pub(super) fn helm_values(constants: &[Constant]) -> String {
    let mut text = "# Generated from alerts/src/thresholds.yml: cargo xtask alerts\n\
                    prometheusRule:\n  thresholds:\n"
        .to_owned();
    for Constant { name, value, meaning } in constants {
        for line in meaning {
            let _ = writeln!(text, "    # {line}");
        }
        // A text in quotes: bare, YAML could take it for something else.
        let _ = match Kind::of(value) {
            Kind::Text => writeln!(text, "    {name}: \"{value}\""),
            Kind::Number | Kind::Duration => writeln!(text, "    {name}: {value}"),
        };
    }
    text
}
