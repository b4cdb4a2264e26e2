//! Expanding a template. Beside names of fields, which are replaced wherever they stand, it has:
//!
//! | Written | Becomes |
//! |---|---|
//! | `<<name>>` | the constant |
//! | `<<EXPR in ratio>>` | the expression over one field, converted to the unit if need be |
//! | `<<EXPR in any unit>>` | the expression; says that it does not depend on its fields' units |
//! | `<<0.5 as FIELD>>` | the value, given in the base unit, as the field shows it |

use super::constants::Constant;
use super::fields::{Fields, Names, per_base_unit};
use crate::shell::Outcome;

/// What is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Check {
    /// A field whose unit depends on the scheme, where nothing says what is done about that.
    Units,
    /// Nothing: tests name such fields as series.
    Nothing,
}

/// What a template is expanded with.
pub(super) struct Template<'a> {
    pub(super) fields: &'a Fields,
    pub(super) names: Names,
    pub(super) constants: &'a [&'a Constant],
}

impl Template<'_> {
    /// The text under this scheme of names. Comments stay as they are.
    pub(super) fn expand(&self, text: &str, check: Check) -> Outcome<String> {
        let mut expanded = String::with_capacity(text.len());
        for (index, line) in text.split_inclusive('\n').enumerate() {
            if line.trim_start().starts_with('#') {
                expanded.push_str(line);
            } else {
                let problem = |problem| format!("line {}: {problem}", index + 1);
                expanded.push_str(&self.line(line, check).map_err(problem)?);
            }
        }
        Ok(expanded)
    }

    fn line(&self, text: &str, check: Check) -> Outcome<String> {
        let mut expanded = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once("<<") {
            let (placeholder, after) = behind
                .split_once(">>")
                .ok_or_else(|| format!("<< without >>: {}", behind.trim_end()))?;
            expanded.push_str(&self.renamed(before, check)?);
            expanded.push_str(&self.placeholder(placeholder.trim())?);
            rest = after;
        }
        expanded.push_str(&self.renamed(rest, check)?);
        Ok(expanded)
    }

    /// The text as a Helm template: Prometheus' own braces are passed through.
    pub(super) fn expand_helm(&self, text: &str) -> Outcome<String> {
        let parts: Vec<&str> = text.split("{{").collect();
        let text = parts.join("\u{1}").replace("}}", "\u{2}");
        let expanded = self.expand(&text, Check::Units)?;
        Ok(expanded.replace('\u{1}', "{{ \"{{\" }}").replace('\u{2}', "{{ \"}}\" }}"))
    }

    fn placeholder(&self, text: &str) -> Outcome<String> {
        if let Some(expression) = text.strip_suffix(" in any unit") {
            return self.renamed(expression, Check::Nothing);
        }
        if let Some((expression, base)) = text.rsplit_once(" in ") {
            let field = one_field(expression)?;
            let unit = self.fields.unit(field, self.names)?;
            let expression = self.renamed(expression, Check::Nothing)?;
            let divisor = per_base_unit(unit, base)?;
            let whole = divisor <= 1.0;
            return Ok(if whole { expression } else { format!("({expression} / {divisor})") });
        }
        if let Some((value, field)) = text.rsplit_once(" as ") {
            let value: f64 = value.parse().map_err(|_| format!("not a number: {text}"))?;
            let unit = self.fields.unit(field, self.names)?;
            let base = if unit == "%" { "ratio" } else { unit };
            return Ok(format!("{}", value * per_base_unit(unit, base)?));
        }
        let constant = self.constants.iter().find(|constant| constant.name == text);
        constant
            .map(|constant| constant.value.clone())
            .ok_or_else(|| format!("nothing is called <<{text}>>"))
    }

    fn renamed(&self, text: &str, check: Check) -> Outcome<String> {
        let mut renamed = String::with_capacity(text.len());
        for word in words(text) {
            if !word.starts_with("DCGM_FI_") {
                renamed.push_str(word);
                continue;
            }
            if check == Check::Units && !self.fields.keeps_its_unit(word)? {
                return Err(format!(
                    "{word} has another unit under dcgm47: write <<… in UNIT>> or <<… in any unit>>"
                ));
            }
            renamed.push_str(self.fields.name(word, self.names)?);
        }
        Ok(renamed)
    }
}

/// A text in pieces that are names or what stands between them.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let in_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let end = rest.find(|c| in_name(c) != in_name(first)).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        rest = behind;
        Some(word)
    })
}

/// The only field that an expression names.
fn one_field(expression: &str) -> Outcome<&str> {
    let mut found = words(expression).filter(|word| word.starts_with("DCGM_FI_"));
    match (found.next(), found.next()) {
        (Some(field), None) => Ok(field),
        _ => Err(format!("one field is converted at a time: {expression}")),
    }
}
