//! The labels that an expression's result can have, and a complaint where it names a series or
//! a label that is not there.

use std::collections::BTreeMap;

use promql_parser::label::{MatchOp, Matcher};
use promql_parser::parser::{self, Call, Expr, LabelModifier, VectorSelector};

use crate::series::{Labels, Series, TARGET};

/// What expressions may name.
pub(crate) struct Scope {
    pub(crate) series: Series,
    /// Recorded series, by name.
    pub(crate) records: BTreeMap<String, Labels>,
}

type Outcome = Result<Labels, String>;

impl Scope {
    /// The labels of an expression's result.
    pub(crate) fn labels(&self, expr: &str) -> Outcome {
        let parsed = parser::parse(expr).map_err(|problem| format!("{problem} in {expr}"))?;
        self.of(&parsed)
    }

    /// The same of an expression that was read before.
    pub(crate) fn of(&self, expr: &Expr) -> Outcome {
        match expr {
            Expr::Aggregate(aggregate) => {
                let inner = self.of(&aggregate.expr)?;
                // These choose among series, and leave them as they are.
                let chooses = ["topk", "bottomk"].contains(&aggregate.op.to_string().as_str());
                match &aggregate.modifier {
                    Some(LabelModifier::Include(by)) if chooses => {
                        known(&by.labels, &inner).map(|_| inner)
                    }
                    Some(LabelModifier::Include(by)) => known(&by.labels, &inner),
                    Some(LabelModifier::Exclude(without)) => {
                        let mut left = inner;
                        left.retain(|label| !without.labels.contains(label));
                        Ok(left)
                    }
                    None => Ok(Labels::new()),
                }
            }
            Expr::Binary(binary) => {
                let (mut left, right) = (self.of(&binary.lhs)?, self.of(&binary.rhs)?);
                if let Some(modifier) = &binary.modifier {
                    if let Some(LabelModifier::Include(on)) = &modifier.matching {
                        known(&on.labels, &left)?;
                        known(&on.labels, &right)?;
                    }
                    if let Some(group) = modifier.card.labels() {
                        left.extend(known(&group.labels, &right)?);
                    }
                }
                // A scalar has no labels; `or` passes on the right side's as well.
                if left.is_empty() || binary.op.to_string() == "or" {
                    left.extend(right);
                }
                Ok(left)
            }
            Expr::Unary(unary) => self.of(&unary.expr),
            Expr::Paren(paren) => self.of(&paren.expr),
            Expr::Subquery(subquery) => self.of(&subquery.expr),
            Expr::VectorSelector(selector) => self.selected(selector),
            Expr::MatrixSelector(selector) => self.selected(&selector.vs),
            Expr::Call(call) => self.called(call),
            Expr::NumberLiteral(_) | Expr::StringLiteral(_) => Ok(Labels::new()),
            Expr::Extension(_) => Err(format!("not understood: {expr}")),
        }
    }

    /// Takes in what a rule records. A rule may ask for what it recorded before.
    pub(crate) fn record(&mut self, name: &str, expr: &str) -> Result<(), String> {
        self.records.insert(name.to_owned(), Labels::new());
        let labels = self.labels(expr)?;
        self.records.insert(name.to_owned(), labels);
        Ok(())
    }

    fn called(&self, call: &Call) -> Outcome {
        let arguments = call.args.args.iter().map(|argument| self.of(argument));
        let mut labels: Labels =
            arguments.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect();
        match (call.func.name, call.args.args.as_slice()) {
            ("label_replace", [_, to, _, from, _]) => {
                if let (Expr::StringLiteral(to), Expr::StringLiteral(from)) = (&**to, &**from) {
                    if !from.val.is_empty() {
                        known(std::slice::from_ref(&from.val), &labels)?;
                    }
                    labels.insert(to.val.clone());
                }
                Ok(labels)
            }
            // Its result has labels only where a matcher asks for one value.
            ("absent" | "absent_over_time", _) => Ok(Labels::new()),
            _ => Ok(labels),
        }
    }

    /// The labels of a selector, which may name several series in `__name__`.
    fn selected(&self, selector: &VectorSelector) -> Outcome {
        let matchers = &selector.matchers.matchers;
        let names: Vec<String> = match &selector.name {
            Some(name) => vec![name.clone()],
            None => matchers
                .iter()
                .filter(|matcher| matcher.name == "__name__")
                .flat_map(alternatives)
                .collect(),
        };
        if names.is_empty() {
            return Err(format!("a selector without a name: {selector}"));
        }
        let mut labels: Labels = TARGET.iter().map(|label| (*label).to_owned()).collect();
        for name in names {
            let found = self.records.get(&name).or_else(|| self.series.labels(&name));
            let found = found.ok_or_else(|| format!("no series is called {name} by default"))?;
            labels.extend(found.iter().cloned());
        }
        let matched: Vec<String> = matchers.iter().map(|matcher| matcher.name.clone()).collect();
        let matched: Vec<String> = matched.into_iter().filter(|name| name != "__name__").collect();
        known(&matched, &labels).map_err(|problem| format!("{problem} in {selector}"))?;
        Ok(labels)
    }
}

fn alternatives(matcher: &Matcher) -> Vec<String> {
    match matcher.op {
        MatchOp::Equal | MatchOp::Re(_) => matcher.value.split('|').map(str::to_owned).collect(),
        MatchOp::NotEqual | MatchOp::NotRe(_) => Vec::new(),
    }
}

/// The wanted labels, if all are there.
fn known(wanted: &[String], there: &Labels) -> Outcome {
    match wanted.iter().find(|label| !there.contains(*label)) {
        Some(unknown) => Err(format!("no label {unknown}; there are {there:?}")),
        None => Ok(wanted.iter().cloned().collect()),
    }
}

/// The labels that an annotation shows.
pub(crate) fn named_labels(annotation: &str) -> impl Iterator<Item = &str> {
    let in_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let texts = annotation.split("$labels.").skip(1);
    texts.map(move |text| &text[..text.find(|c| !in_name(c)).unwrap_or(text.len())])
}
