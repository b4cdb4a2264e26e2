//! Helm, kubectl and Kubernetes' schemas, from the environment that `cargo xtask test` makes.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::sync::{LazyLock, Mutex, PoisonError};

use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) const CHART: &str = "deploy/helm/nvml-exporter";

/// Versions of Kubernetes that every object must be right for: the oldest that the chart installs
/// on, the newest that there is a schema of, and two between.
pub(crate) const VERSIONS: [&str; 4] = ["1.27", "1.30", "1.34", "1.37"];

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A program in `.venv/bin`.
pub(crate) fn tool(name: &str) -> PathBuf {
    let program = root().join(".venv/bin").join(name);
    let path = program.display();
    assert!(
        program.exists(),
        "{path} is not there; `cargo xtask test` installs what the tests need"
    );
    program
}

/// Helm with nothing of whoever runs the tests.
pub(crate) fn helm(arguments: &[&str]) -> Output {
    let home = TempDir::new().unwrap();
    let mut command = Command::new(tool("helm"));
    for place in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
        command.env(place, home.path());
    }
    command.env("KUBECONFIG", home.path().join("no-kubeconfig"));
    command.args(arguments).current_dir(root()).output().unwrap()
}

/// The chart at a path with these values (YAML), installed as `nvml-exporter` into `monitoring`.
pub(crate) fn template(chart: &str, values: &str, more: &[&str]) -> Output {
    template_with("template", chart, values, more)
}

/// The same by another of Helm's commands.
pub(crate) fn template_with(command: &str, chart: &str, values: &str, more: &[&str]) -> Output {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("values.yaml");
    std::fs::write(&file, values).unwrap();
    let file = file.to_str().unwrap();
    let mut arguments =
        vec![command, "nvml-exporter", chart, "--namespace", "monitoring", "--values", file];
    arguments.extend(more);
    helm(&arguments)
}

/// What a program said, for the message of a failure.
pub(crate) fn said(output: &Output) -> String {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    format!("{}{}", text(&output.stdout), text(&output.stderr))
}

/// The objects of a text, and what is wrong with them.
pub(crate) fn judged(text: &str) -> (Vec<Value>, Vec<String>) {
    let answer = asked(&json!({"text": text, "versions": VERSIONS}));
    let problems = answer["problems"].as_array().unwrap().iter();
    let problems = problems.map(|problem| problem.as_str().unwrap().to_owned()).collect();
    (answer["documents"].as_array().unwrap().clone(), problems)
}

/// The objects of a text that nothing is wrong with.
pub(crate) fn objects(text: &str) -> Vec<Value> {
    let (documents, problems) = judged(text);
    assert!(problems.is_empty(), "{}\n{text}", problems.join("\n"));
    documents
}

/// The status that a GET is answered with, whatever the certificate; 0 if it is not answered.
pub(crate) fn knock(url: &str, user: Option<&str>) -> i64 {
    asked(&json!({"url": url, "user": user}))["status"].as_i64().unwrap()
}

/// `objects.py`, which answers all tests: reading the schemas takes longer than using them.
#[derive(Debug)]
struct Judge {
    _process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

static JUDGE: LazyLock<Mutex<Judge>> = LazyLock::new(|| {
    let mut process = Command::new(tool("python"))
        .arg(root().join("tests/deploy/objects.py"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (input, output) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
    Mutex::new(Judge { _process: process, input, output: BufReader::new(output) })
});

fn asked(question: &Value) -> Value {
    // A test that failed within has left it in order, or the next answer is none.
    let mut judge = JUDGE.lock().unwrap_or_else(PoisonError::into_inner);
    writeln!(judge.input, "{question}").unwrap();
    let mut line = String::new();
    judge.output.read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap_or_else(|error| {
        panic!("objects.py has ended ({error}); `cargo xtask test` installs what it needs")
    })
}

/// The objects of one kind.
pub(crate) fn of_kind<'a>(objects: &'a [Value], kind: &str) -> Vec<&'a Value> {
    objects.iter().filter(|object| object["kind"] == kind).collect()
}

/// The only object of a kind.
pub(crate) fn only<'a>(objects: &'a [Value], kind: &str) -> &'a Value {
    let found = of_kind(objects, kind);
    assert_eq!(found.len(), 1, "objects of kind {kind}");
    found[0]
}

/// Elements of an array that may be absent.
pub(crate) fn items(array: &Value) -> impl Iterator<Item = &Value> {
    array.as_array().into_iter().flatten()
}

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text"))
}
