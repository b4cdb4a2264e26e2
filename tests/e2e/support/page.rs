//! A strict reader of text format 0.0.4: what Prometheus would put up with is an error here.

use std::collections::HashSet;

/// A page.
#[derive(Debug, Clone)]
pub(crate) struct Page {
    pub(crate) text: String,
    pub(crate) families: Vec<Family>,
}

/// HELP, TYPE and samples.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Family {
    pub(crate) name: String,
    pub(crate) help: String,
    pub(crate) kind: String,
    pub(crate) samples: Vec<Sample>,
}

/// One line.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sample {
    pub(crate) name: String,
    /// In the order of the line.
    pub(crate) labels: Vec<(String, String)>,
    pub(crate) value: f64,
    /// The value as it is written.
    pub(crate) digits: String,
}

impl Sample {
    pub(crate) fn label(&self, name: &str) -> Option<&str> {
        self.labels.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn label_names(&self) -> Vec<&str> {
        self.labels.iter().map(|(name, _)| name.as_str()).collect()
    }

    /// Whether it has all of these labels.
    pub(crate) fn has(&self, labels: &[(&str, &str)]) -> bool {
        labels.iter().all(|(name, value)| self.label(name) == Some(value))
    }
}

impl Page {
    /// Reads a page; the error names the line.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if !text.is_empty() && !text.ends_with('\n') {
            return Err("the last line does not end".to_owned());
        }
        let mut reader = Reader::default();
        for (number, line) in text.lines().enumerate() {
            reader.line(line).map_err(|error| format!("line {}: {error}: {line}", number + 1))?;
        }
        reader.close()?;
        Ok(Self { text: text.to_owned(), families: reader.families })
    }

    pub(crate) fn family(&self, name: &str) -> Option<&Family> {
        self.families.iter().find(|family| family.name == name)
    }

    /// The samples of this name; those of a histogram by their own names.
    pub(crate) fn samples<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Sample> {
        self.families.iter().flat_map(|f| &f.samples).filter(move |sample| sample.name == name)
    }

    /// The only sample with this name and these labels.
    pub(crate) fn sample(&self, name: &str, labels: &[(&str, &str)]) -> Option<&Sample> {
        let samples = self.families.iter().flat_map(|family| &family.samples);
        let found: Vec<_> =
            samples.filter(|sample| sample.name == name && sample.has(labels)).collect();
        assert!(found.len() < 2, "{name}{labels:?} is not one sample");
        found.first().copied()
    }

    pub(crate) fn value(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        self.sample(name, labels).map(|sample| sample.value)
    }

    /// As [`Page::value`], by the label `gpu`.
    pub(crate) fn of_gpu(&self, name: &str, gpu: &str) -> Option<f64> {
        self.value(name, &[("gpu", gpu)])
    }

    pub(crate) fn sum(&self, name: &str) -> f64 {
        self.samples(name).map(|sample| sample.value).sum()
    }

    /// Whether a value is there and is this one.
    pub(crate) fn is(&self, name: &str, labels: &[(&str, &str)], value: f64) -> bool {
        self.value(name, labels).is_some_and(|found| found.to_bits() == value.to_bits())
    }

    /// The samples of DCGM's names and of our own of GPUs, all that come from readings.
    pub(crate) fn readings(&self) -> impl Iterator<Item = &Sample> {
        self.families
            .iter()
            .filter(|family| {
                let name = &family.name;
                name.starts_with("DCGM_") || name.starts_with("nvml_")
            })
            .filter(|family| {
                let name = family.name.as_str();
                // What happened to a GPU, and what follows, is told when it has no readings, too.
                !["nvml_exporter_", "nvml_xid_", "DCGM_EXP_"]
                    .iter()
                    .any(|prefix| name.starts_with(prefix))
                    && !matches!(
                        name,
                        "nvml_up"
                            | "nvml_down"
                            | "nvml_driver_info"
                            | "nvml_device_info"
                            | "nvml_mig_instance_info"
                    )
            })
            .flat_map(|family| &family.samples)
    }

    /// Names, types and labels of everything but values.
    pub(crate) fn names(&self) -> Vec<&str> {
        self.families.iter().map(|family| family.name.as_str()).collect()
    }
}

#[derive(Default)]
struct Reader {
    families: Vec<Family>,
    names: HashSet<String>,
    series: HashSet<(String, Vec<(String, String)>)>,
}

impl Reader {
    fn line(&mut self, line: &str) -> Result<(), String> {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').ok_or("HELP without text")?;
            check_name(name, true)?;
            self.close()?;
            if !self.names.insert(name.to_owned()) {
                return Err("this family was there before".to_owned());
            }
            let (name, help) = (name.to_owned(), unescape(help, false)?);
            self.families.push(Family { name, help, kind: String::new(), samples: Vec::new() });
            return Ok(());
        }
        let family = self.families.last_mut().ok_or("no family yet")?;
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').ok_or("TYPE without a type")?;
            if name != family.name || !family.kind.is_empty() {
                return Err("TYPE does not follow its HELP".to_owned());
            }
            if !["counter", "gauge", "histogram", "summary", "untyped"].contains(&kind) {
                return Err("unknown type".to_owned());
            }
            kind.clone_into(&mut family.kind);
            return Ok(());
        }
        let sample = sample(line)?;
        if family.kind.is_empty() {
            return Err("a sample before TYPE".to_owned());
        }
        if !belongs(&sample.name, family) {
            return Err(format!("the family is {}", family.name));
        }
        let mut sorted = sample.labels.clone();
        sorted.sort();
        if !self.series.insert((sample.name.clone(), sorted)) {
            return Err("this series was there before".to_owned());
        }
        family.samples.push(sample);
        Ok(())
    }

    /// The end of a family.
    fn close(&self) -> Result<(), String> {
        match self.families.last() {
            Some(family) if family.samples.is_empty() => {
                Err(format!("{} has HELP or TYPE, and no samples", family.name))
            }
            _ => Ok(()),
        }
    }
}

fn belongs(name: &str, family: &Family) -> bool {
    match (name.strip_prefix(family.name.as_str()), family.kind.as_str()) {
        (Some(""), kind) => kind != "histogram",
        (Some("_bucket" | "_sum" | "_count"), "histogram") => true,
        _ => false,
    }
}

fn sample(line: &str) -> Result<Sample, String> {
    let end = line.find(['{', ' ']).ok_or("no value")?;
    let (name, rest) = line.split_at(end);
    check_name(name, true)?;
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(rest) => labels(rest)?,
        None => (Vec::new(), rest),
    };
    let digits = rest.strip_prefix(' ').ok_or("no blank before the value")?;
    let value = match digits {
        "NaN" | "+Inf" | "-Inf" => return Err("the value is not a number".to_owned()),
        digits => digits.parse::<f64>().map_err(|error| format!("value: {error}"))?,
    };
    Ok(Sample { name: name.to_owned(), labels, value, digits: digits.to_owned() })
}

type Labels = Vec<(String, String)>;

/// Reads up to the closing brace; what follows it.
fn labels(mut rest: &str) -> Result<(Labels, &str), String> {
    let mut labels: Labels = Vec::new();
    loop {
        let (name, value) = rest.split_once("=\"").ok_or("no label")?;
        check_name(name, false)?;
        let end = closing_quote(value).ok_or("a label value does not end")?;
        if labels.iter().any(|(known, _)| known == name) {
            return Err(format!("the label {name} is there twice"));
        }
        labels.push((name.to_owned(), unescape(&value[..end], true)?));
        rest = &value[end + 1..];
        if let Some(after) = rest.strip_prefix('}') {
            return Ok((labels, after));
        }
        rest = rest.strip_prefix(',').ok_or("neither comma nor brace after a label")?;
    }
}

fn closing_quote(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.bytes().position(|byte| {
        let closes = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        closes
    })
}

fn unescape(text: &str, quotes: bool) -> Result<String, String> {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        out.push(match char {
            '\\' => match chars.next() {
                Some('\\') => '\\',
                Some('n') => '\n',
                Some('"') if quotes => '"',
                other => return Err(format!("bad escape: {other:?}")),
            },
            other => other,
        });
    }
    Ok(out)
}

fn check_name(name: &str, colons: bool) -> Result<(), String> {
    let good = |at: usize, char: char| {
        char.is_ascii_alphabetic()
            || char == '_'
            || (colons && char == ':')
            || (at > 0 && char.is_ascii_digit())
    };
    if name.is_empty() || !name.char_indices().all(|(at, char)| good(at, char)) {
        return Err(format!("bad name {name:?}"));
    }
    Ok(())
}

#[test]
fn the_reader_is_strict() {
    let head = "# HELP a Text.\n# TYPE a gauge\n";
    for (text, complaint) in [
        (format!("{head}a 1\na 1\n"), "this series was there before"),
        (format!("{head}a{{x=\"1\",y=\"2\"}} 1\na{{y=\"2\",x=\"1\"}} 1\n"), "was there before"),
        (format!("{head}a 1\n# HELP b T.\n# TYPE b gauge\nb 1\n{head}a 2\n"), "was there before"),
        (format!("{head}a 1\nb 2\n"), "the family is a"),
        (head.to_owned(), "no samples"),
        (format!("{head}# HELP b T.\n# TYPE b gauge\nb 1\n"), "no samples"),
        (format!("{head}a 1"), "does not end"),
        (format!("{head}a 1 1700000000\n"), "value"),
        (format!("{head}a NaN\n"), "not a number"),
        (format!("{head}a{{x=\"1\",x=\"2\"}} 1\n"), "twice"),
        (format!("{head}a{{x=\"\\q\"}} 1\n"), "bad escape"),
        (format!("{head}a{{x=\"1\",}} 1\n"), "no label"),
        (format!("{head}\na 1\n"), "no value"),
        ("a 1\n".to_owned(), "no family yet"),
        ("# HELP a T.\na 1\n".to_owned(), "before TYPE"),
    ] {
        let error = Page::parse(&text).unwrap_err();
        assert!(error.contains(complaint), "{text}: {error}");
    }
    let page = Page::parse(&format!("{head}a{{x=\"q\\\"\\\\\\n}}\"}} -1.5e3\n")).unwrap();
    assert_eq!(page.value("a", &[("x", "q\"\\\n}")]), Some(-1500.0));
}
