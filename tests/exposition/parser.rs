//! A strict reader of text 0.0.4, to check pages with.

use std::collections::HashSet;

/// A family as it stands on the page.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Family {
    pub(crate) name: String,
    pub(crate) help: String,
    pub(crate) kind: String,
    pub(crate) points: Vec<Point>,
}

/// A sample.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Point {
    pub(crate) name: String,
    pub(crate) labels: Vec<(String, String)>,
    /// As printed.
    pub(crate) value: String,
}

impl Point {
    pub(crate) fn label(&self, name: &str) -> Option<&str> {
        self.labels.iter().find(|(label, _)| label == name).map(|(_, value)| value.as_str())
    }
}

/// Reads a page; panics where Prometheus would refuse it or guess.
pub(crate) fn parse(page: &str) -> Vec<Family> {
    assert!(page.is_empty() || page.ends_with('\n'), "the last line is not ended");
    let mut families: Vec<Family> = Vec::new();
    let mut lines = page.split_terminator('\n').peekable();
    while let Some(line) = lines.next() {
        let (name, help) = line.strip_prefix("# HELP ").unwrap().split_once(' ').unwrap();
        let kind = lines.next().unwrap().strip_prefix("# TYPE ").unwrap();
        let kind = kind.strip_prefix(name).unwrap().trim_start();
        let mut points = Vec::new();
        while let Some(line) = lines.next_if(|line| !line.starts_with("# ")) {
            let point = parse_point(line);
            let suffix = point.name.strip_prefix(name).expect("a sample of its family");
            let histogram = ["_bucket", "_sum", "_count"].contains(&suffix) && kind == "histogram";
            assert!(suffix.is_empty() || histogram, "{line}");
            points.push(point);
        }
        families.push(Family {
            name: name.to_owned(),
            help: unescape(help, false),
            kind: kind.to_owned(),
            points,
        });
    }
    check(&families);
    families
}

fn check(families: &[Family]) {
    let mut names = HashSet::new();
    let mut series = HashSet::new();
    for family in families {
        assert!(names.insert(&family.name), "{} stands twice", family.name);
        assert!(!family.points.is_empty(), "{} has no samples", family.name);
        for point in &family.points {
            let mut labels = point.labels.clone();
            labels.sort();
            let count = labels.len();
            labels.dedup_by(|a, b| a.0 == b.0);
            assert_eq!(labels.len(), count, "a label stands twice: {point:?}");
            assert!(series.insert((&point.name, labels)), "a series stands twice: {point:?}");
            assert!(point.value.parse::<f64>().unwrap().is_finite(), "{point:?}");
        }
    }
}

fn parse_point(line: &str) -> Point {
    let end = line.find(['{', ' ']).unwrap();
    let (name, mut rest) = line.split_at(end);
    let mut labels = Vec::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        loop {
            let (label, after) = rest.split_once("=\"").unwrap();
            assert!(is_name(label), "{line}");
            let end = closing_quote(after);
            labels.push((label.to_owned(), unescape(&after[..end], true)));
            rest = &after[end + 1..];
            match rest.strip_prefix(',') {
                Some(more) => rest = more,
                None => break,
            }
        }
        rest = rest.strip_prefix('}').unwrap();
    }
    assert!(is_name(name), "{line}");
    let value = rest.strip_prefix(' ').unwrap();
    assert!(!value.contains(' '), "a timestamp: {line}");
    Point { name: name.to_owned(), labels, value: value.to_owned() }
}

fn closing_quote(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at,
            _ => {}
        }
    }
    panic!("no closing quote in {text}");
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn unescape(text: &str, quotes: bool) -> String {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        out.push(if c == '\\' {
            match chars.next() {
                Some('n') => '\n',
                Some('\\') => '\\',
                Some('"') if quotes => '"',
                other => panic!("\\{other:?} in {text}"),
            }
        } else {
            c
        });
    }
    out
}
