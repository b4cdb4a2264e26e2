//! Scenario files: which machine the library pretends to run on.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;

use serde::Deserialize;
use toml::Spanned;

use crate::curve::Work;
use crate::mig;
use crate::model::{self, Model};

/// The scenarios that come with the library.
pub(crate) const BUILT_IN: &[(&str, &str)] = &[
    ("dgx-h100", include_str!("../scenarios/dgx-h100.toml")),
    ("dgx-b200", include_str!("../scenarios/dgx-b200.toml")),
    ("a100-mig-mixed", include_str!("../scenarios/a100-mig-mixed.toml")),
    ("h200-mig-and-whole", include_str!("../scenarios/h200-mig-and-whole.toml")),
    ("t4-l4-mixed", include_str!("../scenarios/t4-l4-mixed.toml")),
    ("geforce-3090", include_str!("../scenarios/geforce-3090.toml")),
    ("gh200", include_str!("../scenarios/gh200.toml")),
    ("v100-old-driver", include_str!("../scenarios/v100-old-driver.toml")),
    ("no-gpus", include_str!("../scenarios/no-gpus.toml")),
    ("dense-16x7", include_str!("../scenarios/dense-16x7.toml")),
];

/// The scenario that is played when nobody asks for another.
pub(crate) const DEFAULT: &str = "dgx-h100";

/// A scenario file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scenario {
    /// For people.
    #[serde(rename = "description", default)]
    _description: String,
    #[serde(default)]
    pub(crate) seed: u64,
    pub(crate) driver: Driver,
    #[serde(default)]
    pub(crate) gpu: Vec<Gpus>,
    /// Board models of the scenario's own, beside the built-in ones.
    #[serde(default)]
    pub(crate) models: BTreeMap<String, Model>,
}

/// The driver and its library.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Driver {
    pub(crate) version: Spanned<String>,
    /// The CUDA version that the driver supports, `12.8`.
    pub(crate) cuda: Spanned<String>,
    #[serde(default = "yes")]
    pub(crate) persistence: bool,
    /// Symbols that are missing beyond those the driver version lacks.
    #[serde(default)]
    pub(crate) hide: Vec<String>,
}

fn yes() -> bool {
    true
}

/// One or more GPUs of a kind.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Gpus {
    pub(crate) model: Spanned<String>,
    #[serde(default = "one")]
    pub(crate) count: usize,
    pub(crate) work: Work,
    /// Whether the work keeps the video engines busy.
    #[serde(default)]
    pub(crate) media: bool,
    /// `bus:device` or `domain:bus:device`, one per GPU.
    pub(crate) bus_ids: Option<Spanned<Vec<String>>>,
    /// The numbers of the device nodes, one per GPU; the index where missing.
    pub(crate) minors: Option<Spanned<Vec<u32>>>,
    pub(crate) numa_nodes: Option<Spanned<Vec<u32>>>,
    /// GPU instances; MIG mode is on where the list is there, even if empty.
    pub(crate) mig: Option<Spanned<Vec<String>>>,
    /// Process ids to report; the client and its parent where missing.
    pub(crate) processes: Option<Vec<u32>>,
    /// Functions that answer `NOT_SUPPORTED` here, beyond those of the model.
    #[serde(default)]
    pub(crate) unsupported: Vec<String>,
    #[serde(default)]
    pub(crate) unsupported_fields: Vec<u32>,
}

fn one() -> usize {
    1
}

impl Scenario {
    /// Finds and reads a scenario: a built-in name, or the path of a file.
    pub(crate) fn load(name: &str) -> Result<Self, Error> {
        if let Some((_, text)) = BUILT_IN.iter().find(|(n, _)| *n == name) {
            return Self::parse(name, text);
        }
        if !name.contains(['/', '.']) {
            let names: Vec<&str> = BUILT_IN.iter().map(|(n, _)| *n).collect();
            return Err(Error::Unknown(format!(
                "no scenario {name}; there are {}; a file is named by its path, with a / or a .",
                names.join(", ")
            )));
        }
        let text = std::fs::read_to_string(name)
            .map_err(|e| Error::Unknown(format!("cannot read scenario {name}: {e}")))?;
        Self::parse(name, &text)
    }

    /// Reads and checks the text of a scenario. `name` is for messages.
    pub(crate) fn parse(name: &str, text: &str) -> Result<Self, Error> {
        let at = |span: Option<Range<usize>>, message: &str| {
            let mut place = name.to_owned();
            if let Some(span) = span {
                let before = &text[..span.start.min(text.len())];
                let _ = write!(place, ":{}", before.matches('\n').count() + 1);
            }
            Error::Wrong(format!("{place}: {message}"))
        };
        let scenario: Self = toml::from_str(text).map_err(|e| at(e.span(), e.message()))?;
        scenario.check().map_err(|(span, message)| at(Some(span), &message))?;
        Ok(scenario)
    }

    /// The model of a name: the scenario's own, or a built-in one.
    pub(crate) fn model(&self, name: &str) -> Result<Model, String> {
        if let Some(model) = self.models.get(name) {
            return Ok(model.clone());
        }
        let text = model::built_in(name).ok_or_else(|| {
            let names: Vec<&str> = model::built_in_names().collect();
            format!("no board model {name}; there are {}", names.join(", "))
        })?;
        toml::from_str(text).map_err(|e| format!("model {name}: {e}"))
    }

    fn check(&self) -> Result<(), (Range<usize>, String)> {
        let driver = &self.driver;
        for (value, what) in [(&driver.version, "a driver version"), (&driver.cuda, "a version")] {
            if version_numbers(value.get_ref()).is_empty() {
                return Err((value.span(), format!("not {what}: {}", value.get_ref())));
            }
        }
        for gpus in &self.gpu {
            let model = self.model(gpus.model.get_ref()).map_err(|e| (gpus.model.span(), e))?;
            let per_gpu = |span: Range<usize>, length: usize, what: &str| {
                if length == gpus.count {
                    Ok(())
                } else {
                    Err((span, format!("{length} {what} for {} GPUs", gpus.count)))
                }
            };
            if let Some(list) = &gpus.bus_ids {
                per_gpu(list.span(), list.get_ref().len(), "bus ids")?;
                for id in list.get_ref() {
                    parse_bus_id(id).ok_or_else(|| (list.span(), format!("not a bus id: {id}")))?;
                }
            }
            if let Some(list) = &gpus.minors {
                per_gpu(list.span(), list.get_ref().len(), "minor numbers")?;
            }
            if let Some(list) = &gpus.numa_nodes {
                per_gpu(list.span(), list.get_ref().len(), "NUMA nodes")?;
            }
            if let Some(list) = &gpus.mig {
                let Some(table) = &model.mig else {
                    return Err((list.span(), format!("{} has no MIG", model.name)));
                };
                let words: Vec<&str> = list.get_ref().iter().map(String::as_str).collect();
                mig::layout(table, &words).map_err(|e| (list.span(), e))?;
            }
        }
        Ok(())
    }
}

/// The numbers of a dotted version; empty if it is none.
pub(crate) fn version_numbers(version: &str) -> Vec<u32> {
    version.split('.').map(str::parse).collect::<Result<_, _>>().unwrap_or_default()
}

/// Reads `bus:device` or `domain:bus:device` (hexadecimal, an ending `.0` allowed).
pub(crate) fn parse_bus_id(text: &str) -> Option<[u32; 3]> {
    let text = text.split_once('.').map_or(text, |(before, _)| before);
    let mut parts = text.rsplit(':').map(|part| u32::from_str_radix(part, 16).ok());
    let (device, bus) = (parts.next()??, parts.next()??);
    let domain = parts.next().map_or(Some(0), |d| d)?;
    (parts.next().is_none() && bus < 256 && device < 32).then_some([domain, bus, device])
}

/// Why a scenario cannot be played.
#[derive(Debug)]
pub(crate) enum Error {
    /// There is no such scenario.
    Unknown(String),
    /// It is there, but it is wrong.
    Wrong(String),
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (Self::Unknown(message) | Self::Wrong(message)) = self;
        f.write_str(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        Scenario::parse("test.toml", text).unwrap_err().to_string()
    }

    const DRIVER: &str = "[driver]\nversion = \"570.1\"\ncuda = \"12.8\"\n";

    #[test]
    fn built_in_scenarios_are_well_formed() {
        for (name, text) in BUILT_IN {
            if let Err(e) = Scenario::parse(name, text) {
                panic!("{e}");
            }
        }
    }

    #[test]
    fn errors_name_file_and_line() {
        let text = format!("{DRIVER}[[gpu]]\nmodel = \"h100-sxm5-80gb\"\nwork = \"lazy\"\n");
        assert!(error(&text).starts_with("test.toml:6: "), "{}", error(&text));
        let text = format!("{DRIVER}[[gpu]]\nmodel = \"h1000\"\nwork = \"idle\"\n");
        assert!(error(&text).starts_with("test.toml:5: no board model h1000"), "{}", error(&text));
    }

    #[test]
    fn lists_must_match_the_count() {
        let text =
            format!("{DRIVER}[[gpu]]\nmodel = \"l4\"\nwork = \"idle\"\ncount = 2\nminors = [1]\n");
        assert!(error(&text).contains("1 minor numbers for 2 GPUs"), "{}", error(&text));
    }

    #[test]
    fn mig_needs_a_board_that_has_it() {
        let text = format!("{DRIVER}[[gpu]]\nmodel = \"l4\"\nwork = \"idle\"\nmig = []\n");
        assert!(error(&text).contains("has no MIG"), "{}", error(&text));
    }

    #[test]
    fn bus_ids_are_read_in_all_their_forms() {
        assert_eq!(parse_bus_id("1B:00"), Some([0, 0x1b, 0]));
        assert_eq!(parse_bus_id("00000009:01:00.0"), Some([9, 1, 0]));
        assert_eq!(parse_bus_id("0000:65:00.0"), Some([0, 0x65, 0]));
        assert_eq!(parse_bus_id("65"), None);
        assert_eq!(parse_bus_id("1:2:3:4"), None);
    }
}
