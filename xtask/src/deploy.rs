//! `deploy`: the chart's copies of alerts and dashboards, and the manifests made from the chart.

pub(crate) mod manifests;

use std::path::Path;

use crate::needs::{self, PYTHON};
use crate::shell::{self, Outcome};

pub(crate) fn run() -> Outcome {
    needs::packages(&[PYTHON])?;
    let helm = needs::python_packages()?.join("bin/helm");
    let root = shell::root();
    let files = root.join(manifests::CHART).join("files");
    if files.exists() {
        std::fs::remove_dir_all(&files).map_err(|error| format!("{}: {error}", files.display()))?;
    }
    for copied in &manifests::COPIED {
        copy(&root, &files, copied)?;
    }
    for (path, text) in manifests::all(&root, &helm)? {
        let path = root.join(path);
        eprintln!("writing {}", path.display());
        std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

/// Helm packs only what is below the chart's own folder.
fn copy(root: &Path, files: &Path, copied: &manifests::Copied) -> Outcome {
    let place = files.join(copied.to);
    let failed = |error: std::io::Error| format!("{}: {error}", place.display());
    for (name, text) in copied.wanted(root)? {
        std::fs::create_dir_all(&place).map_err(failed)?;
        std::fs::write(place.join(name), text).map_err(failed)?;
    }
    Ok(())
}
