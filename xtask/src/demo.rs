//! `demo`: the exporter on a simulated machine, in one command.

use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::shell::{self, Outcome, cargo};

const DEFAULT_SCENARIO: &str = "dgx-h100";
const ADDRESS: &str = "127.0.0.1:9400";
/// Prometheus takes the first of these ports that is free; a service may hold its usual one.
const PROMETHEUS_PORTS: std::ops::Range<u16> = 9090..9100;
/// What the printed Prometheus page shows.
const QUERY: &str = "g0.expr=DCGM_FI_DEV_POWER_USAGE&g0.tab=0&g0.range_input=5m";
/// How long the children may take to end when told to.
const GRACE: Duration = Duration::from_secs(5);

/// What was asked for.
struct Demo {
    /// `None` is this machine's own GPUs.
    scenario: Option<String>,
    flags: Vec<String>,
}

pub(crate) fn run(arguments: &[String]) -> Outcome {
    let demo = parse(arguments)?;
    shell::run(&mut cargo(&["build", "--workspace"]))?;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))
            .map_err(|error| format!("cannot catch signals: {error}"))?;
    }
    let mut children = vec![exporter(&demo)?];
    let prometheus = prometheus()?;
    announce(&demo, prometheus.as_ref().map(|(port, _)| *port));
    children.extend(prometheus.map(|(_, child)| child));
    let ended = watch(&mut children, &stop);
    end(&mut children);
    ended
}

fn parse(arguments: &[String]) -> Outcome<Demo> {
    let split = arguments.iter().position(|word| word == "--").unwrap_or(arguments.len());
    let flags = arguments.get(split + 1..).unwrap_or_default().to_vec();
    let scenario = match &arguments[..split] {
        [] => Some(DEFAULT_SCENARIO.to_owned()),
        [real] if real == "--real" => None,
        [scenario] if !scenario.starts_with('-') => Some(scenario.clone()),
        _ => return Err("usage: cargo xtask demo [SCENARIO | --real] [-- FLAGS]".to_owned()),
    };
    Ok(Demo { scenario, flags })
}

fn exporter(demo: &Demo) -> Outcome<Child> {
    let mut command = Command::new(shell::target().join("debug/nvml-exporter"));
    // Readings as often as the Prometheus beside it looks. Flags of the caller come later and win.
    command.args(["--collect-interval=1s"]);
    if !demo.flags.iter().any(|flag| flag.trim_start_matches('-').starts_with("address")) {
        command.arg(format!("--address={ADDRESS}"));
    }
    if let Some(scenario) = &demo.scenario {
        command.args(["--simulate", scenario]);
    }
    command.args(&demo.flags).current_dir(shell::root());
    command.spawn().map_err(|error| format!("cannot run the exporter: {error}"))
}

/// Prometheus scraping the exporter each second, if it is installed.
fn prometheus() -> Outcome<Option<(u16, Child)>> {
    if !shell::works("prometheus", &["--version"]) {
        return Ok(None);
    }
    let free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
    let Some(port) = PROMETHEUS_PORTS.clone().find(free) else { return Ok(None) };
    let folder = shell::target().join("demo");
    let config = folder.join("prometheus.yml");
    write_config(&folder, &config).map_err(|error| format!("{}: {error}", config.display()))?;
    let child = Command::new("prometheus")
        .arg(format!("--config.file={}", config.display()))
        .arg(format!("--storage.tsdb.path={}", folder.join("data").display()))
        .arg(format!("--web.listen-address=127.0.0.1:{port}"))
        .args(["--storage.tsdb.retention.time=1d", "--log.level=error"])
        .spawn()
        .map_err(|error| format!("cannot run prometheus: {error}"))?;
    Ok(Some((port, child)))
}

fn write_config(folder: &PathBuf, config: &PathBuf) -> std::io::Result<()> {
    let text = format!(
        "global:\n  scrape_interval: 1s\nscrape_configs:\n  - job_name: nvml-exporter\n    \
         static_configs:\n      - targets: [\"{ADDRESS}\"]\n"
    );
    std::fs::create_dir_all(folder)?;
    std::fs::write(config, text)
}

fn announce(demo: &Demo, prometheus: Option<u16>) {
    let what = match &demo.scenario {
        Some(scenario) => format!("simulated machine {scenario}"),
        None => "this machine's GPUs".to_owned(),
    };
    println!("\n{what}\n  page     http://{ADDRESS}/\n  metrics  http://{ADDRESS}/metrics");
    match prometheus {
        Some(port) => println!("  queries  http://127.0.0.1:{port}/graph?{QUERY}"),
        None => println!("  (with Debian's package prometheus installed, a Prometheus scrapes it)"),
    }
    println!("Ctrl-C ends it.\n");
}

/// Until a signal comes or a child ends.
fn watch(children: &mut [Child], stop: &AtomicBool) -> Outcome {
    while !stop.load(Ordering::Relaxed) {
        for child in children.iter_mut() {
            if let Ok(Some(status)) = child.try_wait() {
                return if status.success() { Ok(()) } else { Err(format!("ended: {status}")) };
            }
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

fn end(children: &mut [Child]) {
    let until = Instant::now() + GRACE;
    for child in children.iter_mut() {
        let running = matches!(child.try_wait(), Ok(None));
        if let (true, Some(pid)) = (running, Pid::from_raw(child.id().cast_signed())) {
            // It may have ended by itself since.
            let _ = kill_process(pid, Signal::TERM);
        }
    }
    for child in children {
        while matches!(child.try_wait(), Ok(None)) {
            if Instant::now() >= until {
                let _ = child.kill();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
