//! What can be said of image, unit and compose file without building or starting them: no daemon is
//! needed. The image itself is built by the release.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test ends where it fails")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

const DOCKERFILE: &str = "deploy/docker/Dockerfile";
const UNIT: &str = "deploy/systemd/nvml-exporter.service";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn text(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn yaml(path: &str) -> Value {
    serde_saphyr::from_str(&text(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The exporter's `--help`.
fn help() -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_nvml-exporter")).arg("--help").output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// An instruction of the Dockerfile: its name and the rest, continued lines joined.
type Instruction = (String, String);

/// Instructions by stage.
fn stages() -> Vec<Vec<Instruction>> {
    let text = text(DOCKERFILE);
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    let joined = lines.collect::<Vec<_>>().join("\n").replace("\\\n", " ");
    let mut stages = Vec::new();
    for line in joined.lines().filter(|line| !line.trim().is_empty()) {
        let (name, rest) = line.split_once(' ').unwrap();
        if name == "FROM" {
            stages.push(Vec::new());
        }
        let rest = rest.split_whitespace().collect::<Vec<_>>().join(" ");
        stages.last_mut().unwrap_or_else(|| panic!("{line} before FROM")).push((name.into(), rest));
    }
    stages
}

/// Those of the image.
fn image() -> Vec<Instruction> {
    stages().pop().unwrap()
}

fn all<'a>(stage: &'a [Instruction], name: &str) -> Vec<&'a str> {
    stage.iter().filter(|(found, _)| found == name).map(|(_, rest)| rest.as_str()).collect()
}

/// Words of instructions that are pairs.
fn pairs(stage: &[Instruction], name: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for rest in all(stage, name) {
        let mut rest = rest;
        while let Some((key, after)) = rest.split_once('=') {
            let (value, next) = match after.strip_prefix('"') {
                Some(quoted) => quoted.split_once('"').unwrap(),
                None => after.split_once(' ').unwrap_or((after, "")),
            };
            found.insert(key.trim().to_owned(), value.to_owned());
            rest = next;
        }
    }
    found
}

/// Files copied from the context: sources and target, for each COPY that is not from a stage.
fn copies(stage: &[Instruction]) -> Vec<(Vec<String>, String)> {
    all(stage, "COPY")
        .into_iter()
        .filter(|rest| !rest.contains("--from="))
        .map(|rest| {
            let words = rest.split(' ').filter(|word| !word.starts_with("--"));
            let mut words: Vec<String> = words.map(str::to_owned).collect();
            let target = words.pop().unwrap();
            (words, target)
        })
        .collect()
}

/// Everything that is copied from the context in any stage.
fn sources() -> Vec<String> {
    stages().iter().flat_map(|stage| copies(stage)).flat_map(|(sources, _)| sources).collect()
}

#[test]
fn the_image_tells_the_container_runtime_what_it_needs() {
    let expected = [
        ("NVIDIA_DISABLE_REQUIRE", "true"),
        ("NVIDIA_DRIVER_CAPABILITIES", "utility"),
        ("NVIDIA_VISIBLE_DEVICES", "all"),
    ];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(pairs(&image(), "ENV"), BTreeMap::from(expected));
}

/// Without `CAP_SYS_ADMIN` it keeps the container from starting.
#[test]
fn the_image_asks_for_no_mig_monitor() {
    assert!(!text(DOCKERFILE).contains("NVIDIA_MIG_MONITOR_DEVICES"));
}

#[test]
fn the_image_starts_the_exporter_and_takes_arguments() {
    let image = image();
    assert_eq!(all(&image, "ENTRYPOINT"), [r#"["/usr/bin/nvml-exporter"]"#]);
    assert_eq!(all(&image, "CMD"), [""; 0]);
    let binary = all(&image, "COPY").into_iter().find(|rest| rest.contains("--from=build"));
    assert!(binary.unwrap().ends_with(" /usr/bin/nvml-exporter"));
}

#[test]
fn the_image_needs_no_shell() {
    let image = image();
    for name in ["RUN", "SHELL", "HEALTHCHECK"] {
        assert_eq!(all(&image, name), [""; 0], "{name}");
    }
    let base = all(&image, "FROM")[0].split(':').next().unwrap();
    assert_eq!(base, "gcr.io/distroless/cc-debian12");
}

/// A driver's library in the image would hide the node's.
#[test]
fn the_image_has_no_nvml() {
    assert!(!sources().iter().any(|source| source.contains("libnvidia")));
    assert!(!text(DOCKERFILE).contains("libnvidia-ml"));
}

#[test]
fn the_image_has_the_selection_where_it_is_looked_for() {
    let targets: Vec<String> = copies(&image())
        .into_iter()
        .filter(|(sources, _)| sources == &["metrics.csv"])
        .map(|(_, target)| target)
        .collect();
    let help = help();
    let collectors = help.split("--collectors").nth(1).unwrap();
    let default = collectors.split("[default: ").nth(1).unwrap().split(']').next().unwrap();
    let operator = yaml("tests/data/gpu-operator.yaml");
    let operators = operator["daemonSet"]["env"]["DCGM_EXPORTER_COLLECTORS"].as_str().unwrap();
    assert_eq!(targets, [default, operators]);
}

#[test]
fn the_image_exposes_the_default_port() {
    let help = help();
    let address = help.split("--address").nth(1).unwrap();
    let default = address.split("[default: :").nth(1).unwrap().split(']').next().unwrap();
    assert_eq!(all(&image(), "EXPOSE"), [default]);
}

/// The kubelet's socket is root's, and the GPU Operator sets no user.
#[test]
fn the_image_runs_as_root() {
    assert_eq!(all(&image(), "USER"), ["0:0"]);
}

#[test]
fn the_image_says_what_it_is() {
    let labels = pairs(&image(), "LABEL");
    let manifest = text("Cargo.toml");
    let label = |name: &str| labels[&format!("org.opencontainers.image.{name}")].as_str();
    for (field, name) in [("license", "licenses"), ("description", "description")] {
        let line = format!("{field} = \"{}\"", label(name));
        assert!(manifest.contains(&line), "{line} is not in Cargo.toml");
    }
    assert_eq!(label("title"), env!("CARGO_PKG_NAME"));
    assert_eq!((label("version"), label("revision")), ("$VERSION", "$REVISION"));
    let version = concat!("VERSION=", env!("CARGO_PKG_VERSION"));
    assert!(all(&image(), "ARG").contains(&version), "ARG {version}");
}

#[test]
fn the_image_is_compiled_by_the_oldest_supported_rust_on_the_images_debian() {
    let build = &stages()[0];
    let manifest = text("Cargo.toml");
    let rust = manifest.split("rust-version = \"").nth(1).unwrap().split('"').next().unwrap();
    let from = all(build, "FROM")[0];
    assert!(from.contains(&format!("/rust:{rust}-bookworm ")), "{from}");
}

#[test]
fn what_is_copied_exists() {
    for source in sources() {
        assert!(root().join(&source).exists(), "{source}");
    }
}

#[test]
fn the_context_is_what_is_copied() {
    let ignore = text(".dockerignore");
    let rules: Vec<&str> =
        ignore.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    assert_eq!(rules[0], "*");
    let mut allowed: Vec<&str> =
        rules[1..].iter().map(|rule| rule.strip_prefix('!').unwrap()).collect();
    let mut copied = sources();
    copied.sort();
    copied.dedup();
    allowed.sort_unstable();
    assert_eq!(allowed, copied);
}

/// Copies what the Dockerfile copies and has cargo read it.
#[test]
fn what_is_copied_is_a_whole_workspace() {
    let context = tempfile::tempdir().unwrap();
    for source in copies(&stages()[0]).into_iter().flat_map(|(sources, _)| sources) {
        let copied = Command::new("cp")
            .arg("-r")
            .arg(root().join(&source))
            .arg(context.path())
            .status()
            .unwrap();
        assert!(copied.success(), "{source}");
    }
    let read = Command::new(env!("CARGO"))
        .args(["metadata", "--offline", "--locked", "--format-version=1", "--no-deps"])
        .current_dir(context.path())
        .output()
        .unwrap();
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    let metadata: Value = serde_json::from_slice(&read.stdout).unwrap();
    assert_eq!(metadata["packages"].as_array().unwrap().len(), 3);
}

/// Directives of the unit that `systemd-analyze verify` (252) knew, by section; a new one is tried
/// with it by hand.
const DIRECTIVES: &[(&str, &[&str])] = &[
    ("Unit", &["Description", "After"]),
    (
        "Service",
        &[
            "Type",
            "Environment",
            "EnvironmentFile",
            "ExecStart",
            "ExecReload",
            "Restart",
            "RestartSec",
            "TimeoutStopSec",
            "DynamicUser",
            "NoNewPrivileges",
            "CapabilityBoundingSet",
            "AmbientCapabilities",
            "ProtectSystem",
            "ProtectHome",
            "PrivateTmp",
            "ProtectClock",
            "ProtectControlGroups",
            "ProtectHostname",
            "ProtectKernelLogs",
            "ProtectKernelModules",
            "ProtectKernelTunables",
            "LockPersonality",
            "RestrictNamespaces",
            "RestrictRealtime",
            "RestrictSUIDSGID",
            "RestrictAddressFamilies",
            "SystemCallArchitectures",
            "SystemCallFilter",
            "PrivateDevices",
            "UMask",
        ],
    ),
    ("Install", &["WantedBy"]),
];

/// Directives with their values, by section.
fn unit() -> Vec<(String, String, String)> {
    let text = text(UNIT);
    let mut section = String::new();
    let mut found = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            name.clone_into(&mut section);
        } else {
            let (name, value) = line.split_once('=').unwrap_or_else(|| panic!("{line}"));
            found.push((section.clone(), name.to_owned(), value.to_owned()));
        }
    }
    found
}

fn directive(name: &str) -> String {
    let unit = unit();
    let found: Vec<_> = unit.iter().filter(|(_, found, _)| found == name).collect();
    assert_eq!(found.len(), 1, "{name}");
    found[0].2.clone()
}

#[test]
fn the_units_directives_are_systemds() {
    for (section, name, _) in unit() {
        let known = DIRECTIVES.iter().find(|(known, _)| *known == section);
        assert!(
            known.is_some_and(|(_, names)| names.contains(&name.as_str())),
            "[{section}] {name}"
        );
    }
}

#[test]
fn the_unit_starts_reloads_and_has_the_kernel_logs_right_alone() {
    assert!(directive("ExecStart").ends_with("/nvml-exporter"));
    assert_eq!(directive("ExecReload"), "/bin/kill -HUP $MAINPID");
    for of in ["CapabilityBoundingSet", "AmbientCapabilities"] {
        assert_eq!(directive(of), "CAP_SYSLOG", "{of}");
    }
    assert_eq!(directive("DynamicUser"), "yes");
    // Else it would see no GPU.
    assert_eq!(directive("PrivateDevices"), "no");
}

#[test]
fn the_units_and_the_compose_files_variables_are_the_exporters() {
    let help = help();
    let unit = directive("Environment");
    let compose = yaml("deploy/compose/compose.yaml");
    let compose = compose["services"]["nvml-exporter"]["environment"].as_object().unwrap().clone();
    let unit = unit.split_once('=').unwrap().0.to_owned();
    // NODE_NAME has no flag.
    let names = compose.keys().filter(|name| *name != "NODE_NAME").chain([&unit]);
    for name in names {
        assert!(help.contains(&format!("{name}]")), "{name}");
    }
}

#[test]
fn the_compose_file_asks_for_gpus_and_no_rights() {
    let service = yaml("deploy/compose/compose.yaml")["services"]["nvml-exporter"].clone();
    assert_eq!(service["cap_drop"], json!(["ALL"]));
    assert_eq!(service["read_only"], json!(true));
    assert_eq!(service["ports"], json!(["9400:9400"]));
    let devices = &service["deploy"]["resources"]["reservations"]["devices"];
    assert_eq!(
        devices,
        &json!([{"driver": "nvidia", "count": "all", "capabilities": ["utility"]}])
    );
}

const OPERATOR: &str = "deploy/gpu-operator/values.yaml";

/// The GPU Operator puts the reference together, and refuses an image with other characters.
#[test]
fn the_gpu_operators_values_name_the_image_that_the_compose_file_names() {
    let exporter = yaml(OPERATOR)["dcgmExporter"].clone();
    let part = |name: &str| exporter[name].as_str().unwrap().to_owned();
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-';
    assert!(part("image").chars().all(allowed), "{}", part("image"));
    assert_eq!(part("version"), env!("CARGO_PKG_VERSION"));
    let image = format!("{}/{}:{}", part("repository"), part("image"), part("version"));
    let compose = yaml("deploy/compose/compose.yaml")["services"]["nvml-exporter"]["image"].clone();
    assert!(compose.as_str().unwrap().ends_with(&format!(":-{image}}}")), "{compose}");
}

#[test]
fn the_gpu_operators_values_set_variables_that_the_exporter_knows() {
    let help = help();
    let exporter = yaml(OPERATOR)["dcgmExporter"].clone();
    let variables = exporter["env"].as_array().unwrap();
    assert!(!variables.is_empty());
    for variable in variables {
        let name = variable["name"].as_str().unwrap();
        assert!(help.contains(name), "{name}");
    }
}

/// The rights that the exporter was seen to need are the ones that people are told to give.
#[test]
fn the_cluster_page_names_every_right() {
    let page = text("docs/kubernetes.md");
    let rights = text("tests/data/rights.txt");
    let lines: Vec<&str> = rights.lines().filter(|line| !line.starts_with('#')).collect();
    assert!(!lines.is_empty());
    for line in lines {
        let mut words = line.split_whitespace().skip(1);
        let (verb, resource) = (words.next().unwrap(), words.next().unwrap());
        let resource = format!("`{}`", resource.rsplit('/').next().unwrap());
        let row = page.lines().find(|row| row.starts_with('|') && row.contains(&resource));
        let row = row.unwrap_or_else(|| panic!("{resource}"));
        assert!(row.contains(&format!("`{verb}`")), "{verb} {resource}");
    }
}
