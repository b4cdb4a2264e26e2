//! What is done, and what must be true after it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::answer::Answer;
use super::devices::Devices;
use super::node::{NODE, Node, until, within};
use crate::shell::Outcome;

const GPU: &str = "nvidia.com/gpu";
const SHARED: &str = "nvidia.com/gpu.shared";
const SMALL: &str = "nvidia.com/mig-1g.18gb";
/// What the pod that ends is given.
const MEDIUM: &str = "nvidia.com/mig-2g.35gb";
/// How long the kubelet is away: several polls.
const AWAY: Duration = Duration::from_secs(8);
/// When the page must say what the kubelet says: a poll later, with time for a machine at work.
const POLLED: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Namespace, pod as in its file, container, and the resource it has one of.
type Line = (&'static str, &'static str, &'static str, Option<&'static str>);

const TRAINER: Line = ("training", "trainer", "main", Some(GPU));
const TRAINERS_SIDECAR: Line = ("training", "trainer", "log-shipper", None);
const EVALUATOR: Line = ("research", "evaluator", "main", Some(GPU));
const ALICE: Line = ("notebooks", "alice", "notebook", Some(SHARED));
const BOB: Line = ("notebooks", "bob", "notebook", Some(SHARED));
const LLM: Line = ("serving", "llm", "server", Some(SMALL));
const WEB: Line = ("default", "web", "server", None);

/// One failure hides no other: what can go on does.
struct Report {
    devices: Arc<Devices>,
    steps: usize,
    failed: usize,
}

pub(super) fn run() -> Outcome {
    let mut node = Node::new()?;
    node.start_kubelet()?;
    until("the kubelet", Node::ask)?;
    node.start_exporter()?;
    let devices = until("a page with all devices", || Devices::on(&Node::page()?))?;
    let mut report = Report { devices: Arc::new(devices), steps: 0, failed: 0 };

    report.step("no-plugins", "a kubelet without devices", &[])?;
    start_plugins(&mut node, &report.devices)?;
    report.step("idle", "devices that nobody holds", &[])?;

    for pod in ["finished", "mig", "plain", "sharer-alice", "sharer-bob", "whole"] {
        Node::add_pod(&format!("{pod}.yaml"))?;
    }
    until("the pod that ends gets its device", || {
        let got = Node::said(MEDIUM).contains("allocated");
        if got { Ok(()) } else { Err("not allocated".to_owned()) }
    })?;
    let all = [TRAINER, TRAINERS_SIDECAR, ALICE, BOB, LLM, WEB];
    report.step("pods", "a whole GPU, a shared one and an instance are held", &all)?;

    Node::remove_pod("mig.yaml")?;
    Node::remove_pod("sharer-alice.yaml")?;
    let fewer = [TRAINER, TRAINERS_SIDECAR, BOB, WEB];
    let held = report.step("pods-deleted", "two pods are gone", &fewer)?;

    let title = "labels stayed from the kubelet's end to the plugins' return";
    watched(&mut report, title, &held, |report| restart(&mut node, report, &fewer))?;
    let title = "labels stayed over a restart at once";
    watched(&mut report, title, &held, |report| restart_at_once(&mut node, report, &fewer))?;

    Node::remove_pod("whole.yaml")?;
    report.step("whole-free", "the whole GPU is free", &[BOB, WEB])?;
    Node::add_pod("successor.yaml")?;
    Node::add_pod("mig.yaml")?;
    let next = [EVALUATOR, BOB, LLM, WEB];
    report.step("handed-on", "the whole GPU has another pod, the instance one again", &next)?;
    report.end()
}

fn start_plugins(node: &mut Node, devices: &Devices) -> Outcome {
    for (resource, ids) in &devices.announced {
        node.start_plugin(resource, ids)?;
    }
    until("all devices are announced", || announced(devices))
}

fn announced(devices: &Devices) -> Outcome {
    let (found, wanted) = (Node::ask()?.allocatable, devices.allocatable());
    if found == wanted { Ok(()) } else { Err(format!("{found:?}")) }
}

fn stop_plugins(node: &mut Node, devices: &Devices) {
    for resource in devices.announced.keys() {
        node.kill(resource);
    }
}

/// Ends the kubelet without a farewell for a while, and starts it before the plugins.
fn restart(node: &mut Node, report: &mut Report, listed: &[Line]) -> Outcome {
    node.kill("kubelet");
    thread::sleep(AWAY);
    stop_plugins(node, &report.devices);
    node.start_kubelet()?;
    let first = until("the kubelet again", || Node::record("kubelet-starts"))?;
    println!("        first it lists {:?}", lines_of(&first));
    let since = Instant::now();
    let next = until("the kubelet lists pods", || {
        let answer = Node::record("kubelet-admits")?;
        if answer.containers.is_empty() { Err("none".to_owned()) } else { Ok(answer) }
    })?;
    let (time, lines) = (since.elapsed().as_millis(), lines_of(&next));
    println!("        {time} ms later it lists {lines:?}");
    report.step("kubelet-restarted", "restarted, and no plugin is back", listed)?;
    start_plugins(node, &report.devices)?;
    report.step("plugins-back", "plugins are back after the restart", listed)?;
    Ok(())
}

/// Ends it and starts it at once; the plugins notice, and register by themselves.
fn restart_at_once(node: &mut Node, report: &mut Report, listed: &[Line]) -> Outcome {
    node.kill("kubelet");
    node.start_kubelet()?;
    until("the plugins register again", || announced(&report.devices))?;
    report.step("restarted-at-once", "restarted at once, the plugins register again", listed)?;
    Ok(())
}

/// Looks at the page all the while that something goes on; what is held must not be seen free.
fn watched(
    report: &mut Report,
    title: &str,
    held: &Answer,
    goes_on: impl FnOnce(&mut Report) -> Outcome,
) -> Outcome {
    let devices = Arc::clone(&report.devices);
    let over = AtomicBool::new(false);
    let stayed = thread::scope(|scope| {
        let watch = scope.spawn(|| stays(&devices, held, &over));
        let went = goes_on(report);
        over.store(true, Ordering::Relaxed);
        went.map(|()| watch.join().unwrap_or_else(|_| Err("the watch panicked".to_owned())))
    })?;
    report.tell(title, stayed);
    Ok(())
}

/// Looks at the page again and again; held devices have their holders each time.
fn stays(devices: &Devices, held: &Answer, over: &AtomicBool) -> Outcome {
    let begin = Instant::now();
    while !over.load(Ordering::Relaxed) {
        let seen = devices.check_held(&Node::page()?, held);
        seen.map_err(|problem| format!("after {} ms: {problem}", begin.elapsed().as_millis()))?;
        thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

impl Report {
    /// Waits until the kubelet lists these containers, records that, and compares the page.
    fn step(&mut self, name: &str, title: &str, expected: &[Line]) -> Outcome<Answer> {
        let lines: BTreeSet<_> = expected
            .iter()
            .map(|(namespace, pod, container, resource)| {
                let pod = format!("{pod}-{NODE}");
                [*namespace, &pod, *container, resource.unwrap_or("-")].join(" ")
            })
            .collect();
        let listed = |answer: &Answer| {
            let found = lines_of(answer);
            if found == lines { Ok(()) } else { Err(format!("the kubelet lists {found:?}")) }
        };
        let answer = until(title, || {
            let answer = Node::record(name)?;
            listed(&answer).map(|()| answer)
        })?;
        let shown =
            within(POLLED, "the exporter's page", || self.devices.check(&Node::page()?, &answer));
        self.tell(title, shown);
        Ok(answer)
    }

    fn tell(&mut self, title: &str, outcome: Outcome) {
        self.steps += 1;
        match outcome {
            Ok(()) => println!("ok      {title}"),
            Err(problem) => {
                self.failed += 1;
                println!("FAILED  {title}: {problem}");
            }
        }
    }

    fn end(self) -> Outcome {
        match self.failed {
            0 => Ok(()),
            failed => Err(format!("{failed} of {} steps failed", self.steps)),
        }
    }
}

fn lines_of(answer: &Answer) -> BTreeSet<String> {
    let containers = answer.containers.iter().map(|holder| {
        let held = answer.held.iter().filter(|held| held.holder == *holder);
        let resources: Vec<&str> = held.map(|held| held.resource.as_str()).collect();
        let resources = if resources.is_empty() { "-".to_owned() } else { resources.join(",") };
        format!("{} {} {} {resources}", holder.namespace, holder.pod, holder.container)
    });
    containers.collect()
}
