//! What a scrape costs: `wrk` asks for the page, the kernel says how much CPU time answering took.

use std::time::Duration;

use super::Selection;
use super::exporter::Exporter;
use crate::shell::{self, Outcome, program};

/// Long enough that no pass falls into a measurement but the first ones.
const INTERVAL: Duration = Duration::from_secs(3600);
/// The second pass follows the first by a second; then it is quiet.
const SETTLE: Duration = Duration::from_secs(3);
const CONNECTIONS: &str = "-c4";
const DURATION: &str = "-d5s";

pub(super) fn measure(selection: &Selection, say: &dyn Fn(&str, String)) -> Outcome {
    let exporter = Exporter::start(selection, INTERVAL)?;
    exporter.first_page()?;
    std::thread::sleep(SETTLE);
    for encoding in ["identity", "gzip", "zstd"] {
        // Once by hand, so that the page in this encoding is there.
        load(&exporter, encoding, "-d1s")?;
        let before = exporter.cpu()?;
        let answered = load(&exporter, encoding, DURATION)?;
        let cpu = exporter.cpu()?.saturating_sub(before);
        let each = cpu.as_secs_f64() * 1e6 / answered.requests as f64;
        say(
            &format!("server CPU of a scrape, {encoding}"),
            format!("{each:.0} µs ({} scrapes, 99 % within {})", answered.requests, answered.p99),
        );
    }
    Ok(())
}

/// What `wrk` reports.
struct Answered {
    requests: u64,
    p99: String,
}

fn load(exporter: &Exporter, encoding: &str, duration: &str) -> Outcome<Answered> {
    let url = format!("http://127.0.0.1:{}/metrics", exporter.port);
    let header = format!("Accept-Encoding: {encoding}");
    let report = shell::output(&mut program(
        "wrk",
        &["-t1", CONNECTIONS, duration, "--latency", "-H", &header, &url],
    ))?;
    if report.contains("Non-2xx") || report.contains("Socket errors") {
        return Err(format!("wrk saw failures:\n{report}"));
    }
    let word = |marker: &str, nth: usize| {
        let line = report.lines().find(|line| line.contains(marker))?;
        line.split_whitespace().nth(nth)
    };
    match (word(" requests in ", 0).and_then(|count| count.parse().ok()), word("99%", 1)) {
        (Some(requests @ 1..), Some(p99)) => Ok(Answered { requests, p99: p99.to_owned() }),
        _ => Err(format!("wrk's report is odd:\n{report}")),
    }
}
