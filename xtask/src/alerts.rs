//! `alerts`: the rule files, written from the templates in `alerts/src`.
//!
//! DCGM 4.7 renamed fields and changed the units of some, so each file exists once for each set
//! of names, and once more for Helm, with the thresholds as values of the chart.

mod constants;
pub(crate) mod fields;
mod template;
#[cfg(test)]
mod tests;

use std::fs;
use std::path::Path;

use crate::shell::{Outcome, root};
use constants::{Constant, set};
use fields::{Fields, Names};
use template::Template;

/// A file, and where it belongs, from the folder that is written to.
struct Written {
    path: String,
    text: String,
}

/// The templates: rules, tests of rules, and what is put into both.
struct Source {
    fields: Fields,
    /// May be set by those who load the rules.
    thresholds: Vec<Constant>,
    /// Are what they are.
    lists: Vec<Constant>,
    rules: Vec<Written>,
    tests: Vec<Written>,
}

/// Every scheme of names, and the folder of its files.
const SCHEMES: &[(Names, &str)] = &[(Names::Legacy, ""), (Names::Dcgm47, "dcgm47/")];

const USAGE: &str = "\
cargo xtask alerts                         writes alerts/ anew
cargo xtask alerts --out DIR [--set NAME=VALUE]...
                                           writes rules with other thresholds into a folder;
                                           alerts/src/thresholds.yml lists their names";

pub(crate) fn run(arguments: &[String]) -> Outcome {
    let mut source = Source::read(&root())?;
    let mut arguments = arguments.iter();
    let mut out = None;
    let mut sets = 0_usize;
    while let Some(flag) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{flag} needs a value\n{USAGE}"));
        match flag.as_str() {
            "--out" => out = Some(value()?.clone()),
            "--set" => {
                set(&mut source.thresholds, value()?)?;
                sets += 1;
            }
            other => return Err(format!("alerts has no flag {other}\n{USAGE}")),
        }
    }
    match out {
        Some(folder) => write(Path::new(&folder), &source.rules()?),
        None if sets > 0 => Err(format!("--set needs --out: alerts/ has the defaults\n{USAGE}")),
        None => write(&root().join("alerts"), &source.all()?),
    }
}

fn write(folder: &Path, files: &[Written]) -> Outcome {
    for file in files {
        let path = folder.join(&file.path);
        let problem = |error| format!("{}: {error}", path.display());
        path.parent().map_or(Ok(()), fs::create_dir_all).map_err(problem)?;
        fs::write(&path, &file.text).map_err(problem)?;
        println!("{}", path.display());
    }
    Ok(())
}

impl Source {
    fn read(root: &Path) -> Outcome<Self> {
        let folder = root.join("alerts/src");
        Ok(Self {
            fields: Fields::parse(&read(&root.join("docs/metrics.md"))?)?,
            thresholds: constants::parse(&read(&folder.join("thresholds.yml"))?)?,
            lists: constants::parse(&read(&folder.join("lists.yml"))?)?,
            rules: files(&folder.join("rules"))?,
            tests: files(&folder.join("tests"))?,
        })
    }

    /// The rules of both schemes.
    fn rules(&self) -> Outcome<Vec<Written>> {
        self.expanded(&self.rules, "", template::Check::Units)
    }

    /// All that `alerts/` holds beside the templates.
    fn all(&self) -> Outcome<Vec<Written>> {
        let mut files = self.rules()?;
        files.extend(self.expanded(&self.tests, "tests/", template::Check::Nothing)?);
        files.extend(self.helm()?);
        Ok(files)
    }

    fn expanded(
        &self,
        templates: &[Written],
        folder: &str,
        check: template::Check,
    ) -> Outcome<Vec<Written>> {
        let constants: Vec<&Constant> = self.thresholds.iter().chain(&self.lists).collect();
        let mut files = Vec::new();
        for (names, scheme) in SCHEMES {
            let template = Template { fields: &self.fields, names: *names, constants: &constants };
            for file in templates {
                let text = template
                    .expand(&file.text, check)
                    .map_err(|problem| format!("alerts/src: {}: {problem}", file.path))?;
                let path = format!("{scheme}{folder}{}", file.path);
                files.push(Written { path, text: format!("{}{text}", header(&file.path)) });
            }
        }
        Ok(files)
    }

    /// The rules as Helm templates, and the values that they take.
    fn helm(&self) -> Outcome<Vec<Written>> {
        let values: Vec<Constant> = self.thresholds.iter().map(Constant::as_helm_value).collect();
        let constants: Vec<&Constant> = values.iter().chain(&self.lists).collect();
        let mut files = vec![Written {
            path: "helm/values.yaml".to_owned(),
            text: constants::helm_values(&self.thresholds),
        }];
        for (names, scheme) in SCHEMES {
            let template = Template { fields: &self.fields, names: *names, constants: &constants };
            for file in &self.rules {
                let text = template.expand_helm(&file.text)?;
                let path = format!("helm/{scheme}{}", file.path);
                files.push(Written { path, text: format!("{}{text}", header(&file.path)) });
            }
        }
        Ok(files)
    }
}

fn header(template: &str) -> String {
    format!("# Generated from alerts/src ({template}): cargo xtask alerts\n")
}

fn read(path: &Path) -> Outcome<String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// The YAML files of a folder, in order.
fn files(folder: &Path) -> Outcome<Vec<Written>> {
    let problem = |error| format!("{}: {error}", folder.display());
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(problem)? {
        let path = entry.map_err(problem)?.path();
        if path.extension().is_some_and(|extension| extension == "yml") {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
            found.push(Written { path: name.unwrap_or_default(), text: read(&path)? });
        }
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(found)
}
