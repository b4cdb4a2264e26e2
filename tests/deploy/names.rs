//! Names, labels and ports by which objects find each other, and others find them.

use serde_json::{Value, json};

use crate::matrix::{Rendered, rendered, the};
use crate::support::{CHART, items, objects, of_kind, only, said, template, text};

fn is_within(few: &Value, many: &Value) -> bool {
    few.as_object().unwrap().iter().all(|(key, value)| many[key] == *value)
}

fn pod_labels(rendered: &Rendered) -> &Value {
    &rendered.daemon_set()["spec"]["template"]["metadata"]["labels"]
}

/// Selectors cannot change, and so may have nothing that an upgrade changes.
#[test]
fn selectors_match_and_outlive_an_upgrade() {
    for rendered in rendered() {
        let selector = &rendered.daemon_set()["spec"]["selector"]["matchLabels"];
        let keys: Vec<&String> = selector.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["app.kubernetes.io/instance", "app.kubernetes.io/name"]);
        assert!(is_within(selector, pod_labels(rendered)));
        for service in of_kind(&rendered.objects, "Service") {
            assert_eq!(service["spec"]["selector"], *selector);
            for monitor in of_kind(&rendered.objects, "ServiceMonitor") {
                let wanted = &monitor["spec"]["selector"]["matchLabels"];
                assert!(is_within(wanted, &service["metadata"]["labels"]));
            }
        }
        for kind in ["PodMonitor", "NetworkPolicy"] {
            for object in of_kind(&rendered.objects, kind) {
                let spec = &object["spec"];
                let wanted =
                    if kind == "PodMonitor" { &spec["selector"] } else { &spec["podSelector"] };
                assert_eq!(wanted["matchLabels"], *selector);
            }
        }
    }
}

#[test]
fn ports_lead_to_the_exporter() {
    for rendered in rendered() {
        let ports: Vec<&Value> = items(&rendered.container()["ports"]).collect();
        assert_eq!(ports.len(), 1);
        assert_eq!(ports[0]["name"], "metrics");
        let listens = format!(":{}", ports[0]["containerPort"]);
        assert_eq!(rendered.env()["DCGM_EXPORTER_LISTEN"], listens);
        for service in of_kind(&rendered.objects, "Service") {
            let port = &service["spec"]["ports"][0];
            assert_eq!(
                (&port["name"], &port["targetPort"]),
                (&json!("gpu-metrics"), &json!("metrics"))
            );
            assert_eq!(port["port"], 9400);
        }
    }
    assert_eq!(the("host network").container()["ports"][0]["containerPort"], 9500);
    assert_eq!(the("host network").pod()["dnsPolicy"], "ClusterFirstWithHostNet");
}

#[test]
fn monitors_made_for_dcgm_exporter_find_the_service() {
    let labels = |name: &str| only(&the(name).objects, "Service")["metadata"]["labels"].clone();
    assert_eq!(labels("defaults")["app"], "nvidia-dcgm-exporter");
    assert!(labels("everything of one's own")["app"].is_null());
}

#[test]
fn monitors_say_what_the_values_say() {
    let standard = json!({
        "port": "metrics", "path": "/metrics", "scheme": "http", "interval": "15s",
        "scrapeTimeout": "10s", "honorLabels": true,
        "relabelings": [
            {"sourceLabels": ["__meta_kubernetes_pod_node_name"], "targetLabel": "node"},
        ],
    });
    let monitor = only(&the("PodMonitor").objects, "PodMonitor");
    assert_eq!(monitor["spec"]["podMetricsEndpoints"], json!([standard]));
    assert_eq!(monitor["metadata"]["labels"]["release"], "p");

    let monitor = only(&the("ServiceMonitor").objects, "ServiceMonitor");
    let own = json!({
        "port": "gpu-metrics", "path": "/metrics", "scheme": "https", "interval": "1m",
        "scrapeTimeout": "20s", "honorLabels": false,
        "relabelings": [{"action": "labeldrop", "regex": "endpoint"}],
        "metricRelabelings": [{"sourceLabels": ["__name__"], "regex": "go_.*", "action": "drop"}],
        "tlsConfig": {"insecureSkipVerify": true},
        "basicAuth": {"username": {"name": "s", "key": "u"}, "password": {"name": "s", "key": "p"}},
    });
    assert_eq!(monitor["spec"]["endpoints"], json!([own]));
    assert_eq!(monitor["metadata"]["namespace"], "prometheus");
    assert_eq!(monitor["spec"]["namespaceSelector"], json!({"matchNames": ["monitoring"]}));
    assert_eq!(monitor["spec"]["jobLabel"], "app.kubernetes.io/name");
}

/// Nothing is scraped twice, and a cluster without the kind is no obstacle.
#[test]
fn a_service_monitor_comes_by_itself_where_the_cluster_has_the_kind() {
    let has = ["--api-versions", "monitoring.coreos.com/v1/ServiceMonitor"];
    for (values, more, expected) in [
        ("{}", &[][..], 0),
        ("{}", &has[..], 1),
        ("serviceMonitor: {enabled: false}", &has[..], 0),
        ("serviceMonitor: {enabled: true}", &[][..], 1),
        ("podMonitor: {enabled: true}", &has[..], 0),
        ("service: {enabled: false}", &has[..], 0),
        ("{tlsServerConfig: {enabled: true, existingSecret: a}}", &has[..], 1),
    ] {
        let output = template(CHART, values, more);
        assert!(output.status.success(), "{}", said(&output));
        let objects = objects(&String::from_utf8(output.stdout).unwrap());
        let found = of_kind(&objects, "ServiceMonitor");
        assert_eq!(found.len(), expected, "{values} {more:?}");
        for monitor in found {
            let scheme = if values.contains("tls") { "https" } else { "http" };
            assert_eq!(monitor["spec"]["endpoints"][0]["scheme"], scheme);
        }
    }
}

#[test]
fn objects_are_named_and_placed_as_asked() {
    for rendered in rendered() {
        let namespaced = |object: &&Value| !text(&object["kind"]).starts_with("Cluster");
        let home = &rendered.daemon_set()["metadata"]["namespace"];
        for object in rendered.objects.iter().filter(namespaced) {
            let elsewhere = ["Role", "RoleBinding", "ServiceMonitor"];
            if !elsewhere.contains(&text(&object["kind"])) {
                assert_eq!(object["metadata"]["namespace"], *home, "{}", rendered.row.name);
            }
            let labels = &object["metadata"]["labels"];
            assert_eq!(labels["app.kubernetes.io/instance"], "nvml-exporter");
            assert_eq!(labels["app.kubernetes.io/version"], env!("CARGO_PKG_VERSION"));
        }
    }
    let named = the("names");
    assert_eq!(named.daemon_set()["metadata"]["name"], "gpu-metrics");
    assert_eq!(named.daemon_set()["metadata"]["namespace"], "gpu-system");
    assert_eq!(named.pod()["serviceAccountName"], "someone");
    assert!(of_kind(&named.objects, "ServiceAccount").is_empty());
}

#[test]
fn the_image_is_the_one_asked_for() {
    let version = env!("CARGO_PKG_VERSION");
    let image = |name: &str| text(&the(name).container()["image"]).to_owned();
    assert_eq!(image("defaults"), format!("ghcr.io/nvml-exporter/nvml-exporter:{version}"));
    let digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    assert_eq!(image("image"), format!("registry.example:5000/nvml-exporter@{digest}"));
    let pull = &the("image").pod()["imagePullSecrets"];
    assert_eq!(*pull, json!([{"name": "registry"}]));
}

#[test]
fn who_may_talk_to_whom_is_no_more_than_needed() {
    let policy = |name: &str| only(&the(name).objects, "NetworkPolicy")["spec"].clone();
    let closed = policy("network policy");
    assert_eq!(closed["policyTypes"], json!(["Ingress", "Egress"]));
    assert_eq!(closed["egress"], json!([]));
    assert_eq!(closed["ingress"][0]["ports"], json!([{"port": 9400, "protocol": "TCP"}]));
    let peer = json!([{"namespaceSelector": {"matchLabels": {"a": "b"}}}]);
    assert_eq!(closed["ingress"][0]["from"], peer);
    let open = policy("all that asks the API server");
    let ports: Vec<_> =
        items(&open["egress"][0]["ports"]).map(|port| port["port"].clone()).collect();
    assert_eq!(ports, [443, 6443]);
}
