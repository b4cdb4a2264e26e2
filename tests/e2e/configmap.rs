//! `--configmap-data`: the counters come from the API server, and are watched there.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::support::apiserver::{ApiServer, Kind, kubeconfig};
use crate::support::{Exporter, Setup, until};

const TEMP: &str = "DCGM_FI_DEV_GPU_TEMP, gauge, Temperature.";
const POWER: &str = "DCGM_FI_DEV_POWER_USAGE, gauge, Power.";

fn counters(text: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}, "data": {"metrics": text}})
}

fn setup(config: &str) -> Setup {
    let setup = Setup::simulate("t4-l4-mixed").args(["--configmap-data=gpu:rows"]);
    let config = setup.file("kubeconfig", config);
    setup.env("KUBECONFIG", &config)
}

fn families(exporter: &Exporter) -> Vec<String> {
    let page = exporter.scrape();
    let names = page.names().into_iter().filter_map(|name| name.strip_prefix("DCGM_"));
    names.map(str::to_owned).collect()
}

fn successful(exporter: &Exporter) -> Option<f64> {
    exporter.scrape().value("nvml_exporter_config_last_reload_successful", &[])
}

fn until_families(exporter: &Exporter, expected: &[&str]) {
    let look = || (families(exporter) == expected).then_some(());
    until("the families", look, || format!("{:?}\n{}", families(exporter), exporter.log()));
}

#[test]
fn case_25_the_key_metrics_is_the_counters_file_and_changes_are_taken() {
    let server = ApiServer::start();
    server.put(Kind::ConfigMap, "gpu", "rows", counters(TEMP));
    server.put(Kind::ConfigMap, "gpu", "other", counters(POWER));
    let exporter = setup(&server.kubeconfig()).ready();
    until_families(&exporter, &["FI_DEV_GPU_TEMP"]);

    server.put(Kind::ConfigMap, "gpu", "rows", counters(POWER));
    until_families(&exporter, &["FI_DEV_POWER_USAGE"]);

    server.put(Kind::ConfigMap, "gpu", "rows", counters("DCGM_FI_DEV_NOPE, gauge, x"));
    let refused = || (successful(&exporter) == Some(0.0)).then_some(());
    until("the refusal", refused, || exporter.log());
    assert!(exporter.log().contains("ConfigMap gpu:rows:1"), "{}", exporter.log());
    until_families(&exporter, &["FI_DEV_POWER_USAGE"]);

    server.delete(Kind::ConfigMap, "gpu", "rows");
    exporter.until_log("it does not exist");
    until_families(&exporter, &["FI_DEV_POWER_USAGE"]);

    server.put(Kind::ConfigMap, "gpu", "rows", counters(TEMP));
    until_families(&exporter, &["FI_DEV_GPU_TEMP"]);
    let taken = || (successful(&exporter) == Some(1.0)).then_some(());
    until("success", taken, || exporter.log());
}

#[test]
fn mistakes_in_it_end_the_start_with_its_name_and_line() {
    let server = ApiServer::start();
    let text = format!("{TEMP}\nDCGM_FI_DEV_NOPE, gauge, x");
    server.put(Kind::ConfigMap, "gpu", "rows", counters(&text));
    let (code, _, log) = setup(&server.kubeconfig()).run();
    assert_eq!(code, 1, "{log}");
    assert!(log.contains("ConfigMap gpu:rows:2"), "{log}");
}

#[test]
fn case_26_until_it_is_there_the_counters_file_stands_in() {
    let server = ApiServer::start();
    let exporter = setup(&server.kubeconfig()).counters(POWER).ready();
    until_families(&exporter, &["FI_DEV_POWER_USAGE"]);
    assert!(exporter.log().contains("it does not exist"), "{}", exporter.log());
    assert_eq!(successful(&exporter), Some(0.0));

    server.put(Kind::ConfigMap, "gpu", "rows", json!({"metadata": {}, "data": {"csv": TEMP}}));
    exporter.until_log("it has no key metrics");
    server.put(Kind::ConfigMap, "gpu", "rows", counters(TEMP));
    until_families(&exporter, &["FI_DEV_GPU_TEMP"]);
}

#[test]
fn an_api_server_that_refuses_or_is_away_holds_up_nothing() {
    let server = ApiServer::start();
    server.refuse(Some(StatusCode::FORBIDDEN));
    let exporter = setup(&server.kubeconfig()).counters(POWER).ready();
    until_families(&exporter, &["FI_DEV_POWER_USAGE"]);

    let address = server.address();
    drop(server);
    let exporter = setup(&kubeconfig(address)).counters(POWER).ready();
    until_families(&exporter, &["FI_DEV_POWER_USAGE"]);
    let server = ApiServer::start_at(address);
    server.put(Kind::ConfigMap, "gpu", "rows", counters(TEMP));
    until_families(&exporter, &["FI_DEV_GPU_TEMP"]);
}

#[test]
fn a_watch_that_has_expired_is_taken_up_again() {
    let server = ApiServer::start();
    server.put(Kind::ConfigMap, "gpu", "rows", counters(TEMP));
    let exporter = setup(&server.kubeconfig()).ready();
    until_families(&exporter, &["FI_DEV_GPU_TEMP"]);
    server.expire_watches();
    server.put(Kind::ConfigMap, "gpu", "rows", counters(POWER));
    until_families(&exporter, &["FI_DEV_POWER_USAGE"]);
}

#[test]
fn without_credentials_the_log_says_what_is_missing() {
    let setup = Setup::simulate("t4-l4-mixed").args(["--configmap-data=gpu:rows"]);
    let exporter = setup.env("HOME", "/nonexistent").counters(POWER).ready();
    until_families(&exporter, &["FI_DEV_POWER_USAGE"]);
    assert!(exporter.log().contains("automountServiceAccountToken"), "{}", exporter.log());
}
