//! dcgm-exporter's configuration file.

use std::path::PathBuf;
use std::time::Duration;

use super::super::{Config, Counters, InlineRow};
use super::{Imagined, machine};

/// A machine that has the file, and a counters file.
fn with_file(text: &str) -> Imagined {
    machine("DCGM_EXPORTER_CONFIG_FILE=/x.yaml").with("/x.yaml", text).with("/a.csv", "")
}

fn config(text: &str) -> Config {
    with_file(text).config("")
}

fn row(name: &str, kind: &str, help: &str, line: u64) -> InlineRow {
    let [name, kind, help] = [name, kind, help].map(str::to_owned);
    InlineRow { name, kind, help, at: format!("/x.yaml:{line}") }
}

const V2: &str = "\
version: 2
metrics:
  fields:
    - name: DCGM_FI_DEV_GPU_TEMP
      prometheusType: gauge
      help: GPU temperature, in C.
    - name: DCGM_FI_DRIVER_VERSION
      prometheusType: label
      help: Driver
collections:
  - name: scrape
    every: 45s
    metrics:
      include: [\"*\"]
server:
  maxConcurrentScrapes: 4
";

#[test]
fn version_2_is_taken_over() {
    let config = config(V2);
    let rows = vec![
        row("DCGM_FI_DEV_GPU_TEMP", "gauge", "GPU temperature, in C.", 4),
        row("DCGM_FI_DRIVER_VERSION", "label", "Driver", 7),
    ];
    assert_eq!(config.counters, Counters::Inline(rows));
    assert_eq!(config.interval, Duration::from_secs(45));
    assert_eq!(config.web.max_concurrent_scrapes.get(), 4);
    assert_eq!(config.warnings, [""; 0]);
}

#[test]
fn version_1_is_taken_over() {
    let config = config(
        "version: 1\nmetrics:\n  file: /a.csv\ncollection:\n  interval: 5s\nserver: {}\nsources:\n  \
         dcgm:\n    detectBindUnbind: {enabled: true, pollInterval: 250ms}\n",
    );
    assert_eq!(config.counters, Counters::File { path: PathBuf::from("/a.csv"), explicit: true });
    assert_eq!(config.interval, Duration::from_secs(5));
    assert_eq!(
        config.warnings,
        [
            "/x.yaml:9: sources.dcgm.detectBindUnbind.enabled=true: GPUs that come and go are \
             always noticed",
            "/x.yaml:9: sources.dcgm.detectBindUnbind.pollInterval=250ms: GPUs that come and go \
             are noticed at each reading",
        ]
    );
}

#[test]
fn case_35_flag_and_environment_come_before_the_file() {
    let machine = with_file(V2);
    let config = machine.config("-f /a.csv -c 7s --max-concurrent-scrapes 9");
    assert_eq!(config.counters, Counters::File { path: PathBuf::from("/a.csv"), explicit: true });
    assert_eq!(config.interval, Duration::from_secs(7));
    assert_eq!(config.web.max_concurrent_scrapes.get(), 9);
    // A ConfigMap too; the file's own rows are taken while it cannot be had.
    let Counters::ConfigMap { namespace, name, instead } = machine.config("-m a:b").counters else {
        panic!("the file comes first");
    };
    assert_eq!([namespace, name], ["a", "b"]);
    assert!(matches!(*instead, Counters::Inline(_)), "{instead:?}");
    // And the file before the defaults, also before a default file that exists.
    let machine = with_file(V2).with("/etc/dcgm-exporter/default-counters.csv", "");
    assert!(matches!(machine.config("").counters, Counters::Inline(_)));
}

#[test]
fn the_shortest_of_several_times_is_taken_for_all_fields() {
    let groups = "version: 2\ncollections:\n  - {name: a, every: 10s, metrics: {include: \
                  [DCGM_FI_DEV_POWER*]}}\n  - {name: b, every: 1m, metrics: {include: ['*']}}\n";
    let config = config(groups);
    assert_eq!(config.interval, Duration::from_secs(10));
    assert_eq!(
        config.warnings,
        ["/x.yaml:3: collections[0].every=10s: is of all fields: all are read at the shortest of \
          the times given"]
    );
    let config = with_file(groups).config("-c 2s");
    assert_eq!(config.interval, Duration::from_secs(2));
    assert_eq!(
        config.warnings,
        ["/x.yaml:3: collections[0].every=10s: ignored: --collect-interval=2s is of all fields"]
    );
    let slow = "version: 1\ncollection:\n  watchGroups:\n    - {name: slow, interval: 5m, fields: \
                [DCGM_FI_DEV_GPU_TEMP]}\n";
    assert_eq!(with_file(slow).config("").interval, Duration::from_secs(30));
}

#[test]
fn the_form_is_strict() {
    for (text, expected) in [
        ("version: 3\n", "/x.yaml:1: version=3: is unknown; allowed: version: 1, version: 2"),
        ("version: a\n", "/x.yaml:1: version=a: is unknown; allowed: version: 1, version: 2"),
        ("metrics: {file: /a.csv}\n", "/x.yaml: names no version; allowed: version: 1, version: 2"),
        (
            "version: 2\nmetricz: {}\n",
            "/x.yaml:2: unknown field metricz, expected one of version, metrics, collections, \
             sources, server",
        ),
        (
            "version: 2\nserver:\n  maxScrapes: 1\n",
            "/x.yaml:3: unknown field maxScrapes, expected one of maxConcurrentScrapes",
        ),
        (
            "version: 1\ncollections: []\n",
            "/x.yaml:2: unknown field collections, expected one of version, metrics, collection, \
             sources, server",
        ),
        (
            "version: 2\ncollection: {}\n",
            "/x.yaml:2: unknown field collection, expected one of version, metrics, collections, \
             sources, server",
        ),
        ("version: 2\nserver: {}\nserver: {}\n", "/x.yaml:3: server is there twice"),
        ("version: 2\n---\nversion: 2\n", "/x.yaml:3: a further document starts; allowed: one"),
        ("version: 2\nserver: [\n", "/x.yaml:2: unclosed bracket '['"),
        (
            "version: 2\nserver: {maxConcurrentScrapes: many}\n",
            "/x.yaml:2: server.maxConcurrentScrapes=many: is not a count; allowed: 1 or more",
        ),
    ] {
        assert_eq!(with_file(text).mistakes(""), expected, "{text}");
    }
    let missing = machine("").mistakes("--config-file /none.yaml");
    assert_eq!(missing, "--config-file=/none.yaml: cannot be read: entity not found");
    assert_eq!(machine("").config("--config-file="), machine("").config(""));
}

#[test]
fn all_mistakes_of_content_are_reported_at_once() {
    let text = "\
version: 2
metrics:
  file: /a.csv
  fields: [{name: A, prometheusType: gauge, help: a}]
collections:
  - every: 0s
    metrics: {include: [A]}
  - name: b
    every: 1us
  - name: b
    every: 5s
    metrics: {include: ['']}
    sources: {dcgm: {watch: {maxKeepAge: 0s, maxKeepSamples: 0}}}
sources:
  dcgm:
    watch: {maxKeepAge: -1s}
    detectBindUnbind: {pollInterval: 0s}
server:
  maxConcurrentScrapes: 0
";
    let duration =
        "allowed: a number with a unit of ns, us, ms, s, m, h, such as 15s, 500ms, 1h30m";
    let expected = [
        "/x.yaml:3: metrics: has both file and fields; allowed: one of them".to_owned(),
        "/x.yaml:6: collections[0]: has no name".to_owned(),
        format!(
            "/x.yaml:6: collections[0].every=0s: is not a time of whole milliseconds; {duration}"
        ),
        "/x.yaml:8: collections[1]: has an empty metrics.include; allowed: names of fields"
            .to_owned(),
        format!(
            "/x.yaml:9: collections[1].every=1us: is not a time of whole milliseconds; {duration}"
        ),
        "/x.yaml:10: collections[2]: b is there twice, first in line 8".to_owned(),
        "/x.yaml:10: collections[2]: has an empty metrics.include; allowed: names of fields"
            .to_owned(),
        "/x.yaml:13: collections[2].sources.dcgm.watch: keeps nothing: both are 0; allowed: one of \
         them"
            .to_owned(),
        format!("/x.yaml:16: sources.dcgm.watch.maxKeepAge=-1s: is not 0 or more; {duration}"),
        format!(
            "/x.yaml:17: sources.dcgm.detectBindUnbind.pollInterval=0s: is not more than 0; \
             {duration}"
        ),
        "/x.yaml:19: server.maxConcurrentScrapes=0: is not a count; allowed: 1 or more".to_owned(),
    ];
    assert_eq!(with_file(text).mistakes(""), expected.join("\n"));
}

#[test]
fn rows_are_complete_and_named_once() {
    let text = "\
version: 1
metrics:
  fields:
    - {name: A, prometheusType: gauge}
    - {name: A, prometheusType: gauge, help: a}
    - {prometheusType: gauge, help: a}
";
    let expected = [
        "/x.yaml:4: metrics.fields[0]: has no help; allowed: name, prometheusType, help",
        "/x.yaml:5: metrics.fields[1]: A is there twice, first in line 4",
        "/x.yaml:6: metrics.fields[2]: has no name; allowed: name, prometheusType, help",
    ];
    assert_eq!(with_file(text).mistakes(""), expected.join("\n"));
    let text = "version: 2\nmetrics: {}\n";
    let expected =
        "/x.yaml:2: metrics: is empty; allowed: file, fields, enableExporterMetrics".to_owned();
    assert_eq!(with_file(text).mistakes(""), expected);
    let text = "version: 2\nmetrics: {enableExporterMetrics: false}\ncollections: []\n";
    let expected = "/x.yaml:3: collections: is empty; allowed: one collection or more";
    assert_eq!(with_file(text).mistakes(""), expected);
    let text = "version: 2\nmetrics: {file: /none.csv}\n";
    let expected = "/x.yaml:2: metrics.file=/none.csv: there is no such file; allowed: a counters \
                    file (CSV)";
    assert_eq!(with_file(text).mistakes(""), expected);
}
