//! Rules of the source tree and its documents that a machine can check. What fails says where
//! and which rule.
#![expect(clippy::unwrap_used, reason = "a test ends where it fails")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Longer files have more than one subject.
const LINES: usize = 400;

/// Names that say nothing about what is in a file.
const SOUP: &[&str] = &["common", "consts", "helper", "helpers", "misc", "types", "util", "utils"];

/// Files with statics that are no state: what they hold never changes.
const STATICS: &[(&str, &str)] = &[("src/catalogue/names.rs", "indexes over the constant table")];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A file of the tree: its path from the root, and its text.
struct Source {
    path: String,
    text: String,
}

impl Source {
    fn is_in(&self, places: &[&str]) -> bool {
        places.iter().any(|place| self.path.starts_with(place))
    }

    fn code_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.text.lines().enumerate().map(|(index, line)| (index + 1, line));
        lines.filter(|(_, line)| !line.trim_start().starts_with("//"))
    }
}

/// All files with an extension below a folder, in order.
fn sources(folder: &str, extension: &str) -> Vec<Source> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|found| found == extension) {
                let text = fs::read_to_string(&path).unwrap();
                let path = path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
                found.push(Source { path, text });
            }
        }
    }
    assert!(!found.is_empty(), "no .{extension} below {folder}");
    found.sort_by(|one, other| one.path.cmp(&other.path));
    found
}

fn rust() -> Vec<Source> {
    ["src", "simulator/src", "xtask/src", "tests"]
        .iter()
        .flat_map(|folder| sources(folder, "rs"))
        .collect()
}

/// The Markdown files that people are pointed to, but for the one about a script with flags of
/// its own.
fn documents() -> Vec<Source> {
    let mut found = sources("docs", "md");
    found.retain(|source| source.path != "docs/device-check.md");
    for name in ["ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "README.md"] {
        found.push(document(name));
    }
    found
}

fn document(path: &str) -> Source {
    Source { path: path.to_owned(), text: fs::read_to_string(root().join(path)).unwrap() }
}

fn nothing(rule: &str, offences: &[String]) {
    assert!(offences.is_empty(), "{rule}:\n  {}", offences.join("\n  "));
}

/// Lines of code in `src/` with one of these words, outside the places where they belong.
fn named_outside(words: &[&str], home: &[&str]) -> Vec<String> {
    let mut offences = Vec::new();
    for source in sources("src", "rs").iter().filter(|source| !source.is_in(home)) {
        for (number, line) in source.code_lines() {
            if words.iter().any(|word| line.contains(word)) {
                offences.push(format!("{}:{number}: {}", source.path, line.trim()));
            }
        }
    }
    offences
}

#[test]
fn files_have_one_subject() {
    let table = |path: &str| path.starts_with("src/catalogue/rows_");
    let long: Vec<String> = sources("src", "rs")
        .iter()
        .filter(|source| !table(&source.path))
        .map(|source| (&source.path, source.text.lines().count()))
        .filter(|(_, lines)| *lines > LINES)
        .map(|(path, lines)| format!("{path}: {lines}"))
        .collect();
    nothing("files have at most 400 lines, tables of rows excepted", &long);
}

#[test]
fn files_say_what_they_are() {
    let silent: Vec<String> = rust()
        .into_iter()
        .filter(|source| !source.text.starts_with("//!"))
        .map(|source| source.path)
        .collect();
    nothing("files open with a //! sentence", &silent);
}

#[test]
fn files_are_named_after_their_subject() {
    // A test's helpers have no other subject than to help.
    let vague: Vec<String> = rust()
        .into_iter()
        .map(|source| source.path)
        .filter(|path| SOUP.iter().any(|name| Path::new(path).file_stem().unwrap() == *name))
        .collect();
    nothing("no file is named after nothing", &vague);
}

#[test]
fn only_nvml_names_the_binding() {
    let named = named_outside(&["nvml_wrapper"], &["src/nvml/"]);
    nothing("only src/nvml names nvml_wrapper", &named);
}

#[test]
fn only_nvml_is_unsafe() {
    let named = named_outside(&["unsafe_code", "unsafe {", "unsafe fn"], &["src/nvml/"]);
    nothing("only src/nvml holds unsafe code", &named);
}

#[test]
fn only_http_names_the_web_framework() {
    let named = named_outside(&["axum"], &["src/http/", "src/service"]);
    nothing("only src/http and the service name axum", &named);
}

#[test]
fn only_cluster_names_the_api_servers_client() {
    let named = named_outside(&["kube::", "k8s_openapi"], &["src/cluster/"]);
    nothing("only src/cluster names kube and k8s_openapi", &named);
}

#[test]
fn only_config_reads_the_environment() {
    let named = named_outside(&["env::var"], &["src/config/"]);
    nothing("only src/config reads environment variables", &named);
}

#[test]
fn nothing_is_global() {
    let declares = |line: &str| {
        let line = line.trim_start();
        let line = line
            .strip_prefix("pub")
            .map_or(line, |rest| rest.split_once(") ").map_or(rest, |(_, rest)| rest).trim_start());
        line.starts_with("static ") || line.contains("thread_local!")
    };
    let mut offences = Vec::new();
    for source in sources("src", "rs") {
        if STATICS.iter().any(|(path, _)| source.path == *path) {
            continue;
        }
        let found = source.code_lines().filter(|(_, line)| declares(line));
        offences.extend(found.map(|(number, line)| format!("{}:{number}: {line}", source.path)));
    }
    nothing("there is no global state", &offences);
}

#[test]
fn work_to_do_has_an_issue() {
    let mut offences = Vec::new();
    for source in rust().iter().filter(|source| source.path != "tests/tidy.rs") {
        for (number, line) in source.text.lines().enumerate() {
            let bare = ["TODO", "FIXME"].iter().any(|word| line.contains(word));
            let ignored = line.trim_start().starts_with("#[ignore]");
            if (bare && !line.contains('#')) || ignored {
                offences.push(format!("{}:{}: {line}", source.path, number + 1));
            }
        }
    }
    nothing("a TODO has an issue's number, an ignored test a reason", &offences);
}

#[test]
fn the_code_map_names_every_module() {
    let map = document("ARCHITECTURE.md").text;
    let modules = fs::read_dir(root().join("src")).unwrap().map(|entry| {
        let name = entry.unwrap().file_name().into_string().unwrap();
        format!("`src/{name}`")
    });
    // `lib.rs` only lists the others.
    let missing: Vec<String> =
        modules.filter(|name| name != "`src/lib.rs`" && !map.contains(name)).collect();
    nothing("ARCHITECTURE.md's code map names every top-level module", &missing);
}

#[test]
fn the_readme_names_every_scenario() {
    let readme = document("README.md").text;
    let missing: Vec<String> = sources("simulator/scenarios", "toml")
        .iter()
        .map(|source| format!("`{}`", Path::new(&source.path).file_stem().unwrap().display()))
        .filter(|name| !readme.contains(name))
        .collect();
    nothing("README.md lists the simulated machines", &missing);
}

#[test]
fn links_lead_somewhere() {
    let mut dead = Vec::new();
    for page in documents() {
        let folder: PathBuf = root().join(&page.path).parent().unwrap().to_owned();
        for link in page.text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = link.split('#').next().unwrap();
            if !link.contains("://") && !file.is_empty() && !folder.join(file).exists() {
                dead.push(format!("{}: {link}", page.path));
            }
        }
    }
    nothing("links in documents lead to files", &dead);
}

/// Flags in a text that are the exporter's: not those of other programs' commands, nor the
/// `--flag` that stands for any.
fn flags(text: &str) -> BTreeSet<&str> {
    let others = ["cargo ", "docker ", "ExecReload", "git ", "helm ", "kubectl ", "systemctl "];
    let own = text.lines().filter(|line| !others.iter().any(|other| line.contains(other)));
    let words = own.flat_map(|line| {
        line.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '.'))
    });
    words
        .map(|word| word.trim_end_matches('.'))
        .filter(|word| {
            word.starts_with("--")
                && word.len() > 2
                && !word.starts_with("---")
                && *word != "--flag"
        })
        .collect()
}

#[test]
fn documented_flags_exist() {
    let exporter = env!("CARGO_BIN_EXE_nvml-exporter");
    let help = Command::new(exporter).arg("--help").output().unwrap();
    assert!(help.status.success());
    let help = String::from_utf8(help.stdout).unwrap();
    let known = flags(&help);
    let mut unknown = Vec::new();
    // The one tells of flags that were, the other of a script's.
    let elsewhere = ["CHANGELOG.md", "docs/device-check.md"];
    for page in documents().iter().filter(|page| !page.is_in(&elsewhere)) {
        let flags = flags(&page.text).into_iter().filter(|flag| !known.contains(flag));
        unknown.extend(flags.map(|flag| format!("{}: {flag}", page.path)));
    }
    nothing("flags in documents are those of --help", &unknown);
}

#[test]
fn documented_fields_exist() {
    let is_name = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    let metrics = document("docs/metrics.md").text;
    let known: BTreeSet<&str> = metrics.split(|c| !is_name(c)).collect();
    let mut unknown = Vec::new();
    for page in documents() {
        let names = page.text.split(|c: char| !is_name(c));
        // A name that ends in `_` stands for several.
        let names = names.filter(|name| name.starts_with("DCGM_FI_") && !name.ends_with('_'));
        let names = names.filter(|name| !known.contains(name));
        unknown.extend(names.map(|name| format!("{}: {name}", page.path)));
    }
    nothing("DCGM names in documents are in docs/metrics.md", &unknown);
}
