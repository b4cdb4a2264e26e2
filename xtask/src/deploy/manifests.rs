//! Plain manifests out of the chart, for those who do not use Helm. `cargo xtask deploy` writes
//! them; the tests render them again and compare.

use std::path::Path;
use std::process::Command;

/// Where the chart is.
pub(crate) const CHART: &str = "deploy/helm/nvml-exporter";

/// What the chart has copies of.
pub(crate) struct Copied {
    /// The folder that is copied, from the root.
    pub(crate) from: &'static str,
    /// Where the copies are, below the chart's `files`.
    pub(crate) to: &'static str,
    pub(crate) extension: &'static str,
    /// Files that stay behind.
    but: &'static [&'static str],
}

/// Rules are copied as Helm templates, whose thresholds are values.
pub(crate) const COPIED: [Copied; 5] = [
    Copied { from: "alerts/helm", to: "alerts", extension: "yml", but: &[] },
    Copied { from: "alerts/helm/dcgm47", to: "alerts/dcgm47", extension: "yml", but: &[] },
    // These have no thresholds, and classic names alone.
    Copied {
        from: "alerts",
        to: "alerts/workloads",
        extension: "yml",
        but: &["gpu-alerts.yml", "gpu-cost-rules.yml", "gpu-fleet-rules.yml", "dcgm-classic.yml"],
    },
    Copied { from: "dashboards", to: "dashboards", extension: "json", but: &[] },
    Copied { from: "dashboards/dcgm47", to: "dashboards/dcgm47", extension: "json", but: &[] },
];

impl Copied {
    /// What is to be copied, by name.
    pub(crate) fn wanted(&self, root: &Path) -> Result<Vec<(String, String)>, String> {
        let mut files = sources(root, self.from, self.extension)?;
        files.retain(|(name, _)| !self.but.contains(&name.as_str()));
        Ok(files)
    }
}

const HEADER: &str = "# Made from the Helm chart by `cargo xtask deploy`; change the chart.\n";

/// hostPath volumes are refused everywhere but here.
const NAMESPACE: &str = "\
apiVersion: v1
kind: Namespace
metadata:
  name: nvml-exporter
  labels:
    pod-security.kubernetes.io/enforce: privileged
    pod-security.kubernetes.io/warn: privileged
    pod-security.kubernetes.io/audit: privileged
";

/// What only Helm has a use for.
const HELMS: [&str; 3] = ["# Source:", "helm.sh/chart:", "app.kubernetes.io/managed-by:"];

/// All generated manifests: path from the root, and text.
pub(crate) fn all(root: &Path, helm: &Path) -> Result<Vec<(&'static str, String)>, String> {
    let render = |settings: &[&str], only: &[&str]| render(root, helm, settings, only);
    let plain = render(&["serviceMonitor.enabled=false"], &[])?;
    let monitor = render(&["serviceMonitor.enabled=true"], &["templates/servicemonitor.yaml"])?;
    let rights = render(&["kubernetes.podLabels.enabled=true"], &["templates/rbac.yaml"])?;
    Ok(vec![
        ("deploy/manifests/nvml-exporter.yaml", format!("{HEADER}{NAMESPACE}---\n{plain}")),
        (
            "deploy/kustomize/components/service-monitor/servicemonitor.yaml",
            format!("{HEADER}{monitor}"),
        ),
        ("deploy/kustomize/components/pod-labels/rbac.yaml", format!("{HEADER}{rights}")),
    ])
}

/// What the chart renders to, without what is Helm's.
fn render(root: &Path, helm: &Path, settings: &[&str], only: &[&str]) -> Result<String, String> {
    let mut command = Command::new(helm);
    command.args(["template", "nvml-exporter", CHART, "--namespace", "nvml-exporter"]);
    for setting in settings {
        command.args(["--set", setting]);
    }
    for template in only {
        command.args(["--show-only", template]);
    }
    let output = command
        .current_dir(root)
        .output()
        .map_err(|error| format!("cannot run {}: {error}", helm.display()))?;
    if !output.status.success() {
        return Err(format!("helm template: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    let text = format!("\n{}", String::from_utf8_lossy(&output.stdout));
    let documents = text.split("\n---\n").map(|document| {
        let kept = document.lines().filter(|line| {
            !line.is_empty() && !HELMS.iter().any(|word| line.trim_start().starts_with(word))
        });
        kept.collect::<Vec<_>>().join("\n")
    });
    let documents: Vec<String> = documents.filter(|document| !document.is_empty()).collect();
    Ok(documents.join("\n---\n") + "\n")
}

/// Rules or dashboards of a folder, by name; none if there is no such folder.
pub(crate) fn sources(
    root: &Path,
    folder: &str,
    extension: &str,
) -> Result<Vec<(String, String)>, String> {
    let folder = root.join(folder);
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for entry in std::fs::read_dir(&folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_none_or(|found| found != extension) {
            continue;
        }
        let text = std::fs::read_to_string(&path).map_err(failed)?;
        // Tests of rules lie beside them, and have the same extension.
        let is_test = extension == "yml" && !text.lines().any(|line| line.starts_with("groups:"));
        if let (false, Some(name)) = (is_test, path.file_name()) {
            found.push((name.to_string_lossy().into_owned(), text));
        }
    }
    found.sort();
    Ok(found)
}
