//! Values that are wrong are refused, with a line that says where and why.

use crate::support::{CHART, said, template};

/// Values, and what is said about them.
const WRONG: &[(&str, &[&str])] = &[
    ("colectInterval: 15s", &["additional properties 'colectInterval' not allowed"]),
    ("image: {name: a}", &["at '/image'", "'name' not allowed"]),
    ("image: {pullPolicy: Sometimes}", &["/image/pullPolicy", "'IfNotPresent'"]),
    ("image: {digest: 'sha256:123'}", &["/image/digest", "does not match pattern"]),
    ("collectInterval: 15 s", &["/collectInterval", "does not match pattern"]),
    ("collectInterval: 0", &["/collectInterval", "minimum"]),
    ("hostLabel: host", &["/hostLabel", "'Hostname'"]),
    ("metricNames: dcgm46", &["/metricNames", "'dcgm47'"]),
    ("log: {level: verbose}", &["/log/level", "'trace'"]),
    ("kubernetes: {enabled: 'yes'}", &["/kubernetes/enabled", "want boolean"]),
    ("kubernetes: {enablePodLabels: true}", &["/kubernetes", "'enablePodLabels' not allowed"]),
    ("kubernetes: {attribution: everywhere}", &["/kubernetes/attribution", "'info'"]),
    (
        "kubernetes: {podLabels: {allowlistRegex: ['a{1,2}']}}",
        &["kubernetes.podLabels.allowlistRegex: \"a{1,2}\" has a comma"],
    ),
    ("kubernetes: {pollInterval: 20}", &["/kubernetes/pollInterval", "want string"]),
    ("kubeletPath: var/lib/kubelet", &["/kubeletPath", "does not match pattern '^/'"]),
    ("listenPort: 94000", &["/listenPort", "maximum"]),
    ("service: {type: Headless}", &["/service/type", "'ClusterIP'"]),
    ("serviceMonitor: {enabled: maybe}", &["/serviceMonitor/enabled", "'auto'"]),
    ("serviceMonitor: {interval: 15}", &["/serviceMonitor/interval", "want string"]),
    (
        "kubernetes: {ignorePods: ['a,b']}",
        &["kubernetes.ignorePods: \"a,b\" has a comma, at which the exporter splits the list"],
    ),
    ("basicAuth: {users: {me: s3cret}}", &["basicAuth.users.me is not a bcrypt hash"]),
    (
        "tlsServerConfig: {clientAuthType: Always}",
        &["/clientAuthType", "'VerifyClientCertIfGiven'"],
    ),
    ("networkPolicy: {apiServerPorts: []}", &["/networkPolicy/apiServerPorts", "minItems"]),
    ("updateStrategy: {type: Recreate}", &["/updateStrategy/type", "'OnDelete'"]),
    ("podLabels: {a: 1}", &["/podLabels/a", "got number"]),
    (
        "{customMetrics: a, configMapData: {name: b}}",
        &["customMetrics and configMapData.name both give the counters file"],
    ),
    ("tlsServerConfig: {enabled: true}", &["tlsServerConfig.enabled needs a certificate"]),
    (
        "tlsServerConfig: {enabled: true, cert: a, key: b, clientAuthType: VerifyClientCertIfGiven}",
        &["VerifyClientCertIfGiven needs the authority of the clients: set tlsServerConfig.ca"],
    ),
    (
        "{webConfig: {existingSecret: a}, tlsServerConfig: {enabled: true, existingSecret: b}}",
        &["webConfig.existingSecret is the whole web configuration"],
    ),
    ("usageBy: [group]", &["/usageBy/0", "value must be one of"]),
    ("{usageBy: [pod], kubernetes: {enabled: false}}", &["usageBy: pod needs kubernetes.enabled"]),
    ("usageBy: [user]", &["usageBy: user is found by processes", "hostPID"]),
    ("{usageBy: [none, user], hostPID: true}", &["usageBy: none stands alone"]),
    (
        "{serviceMonitor: {enabled: true}, podMonitor: {enabled: true}}",
        &["would scrape every pod twice"],
    ),
    (
        "{serviceMonitor: {enabled: true}, service: {enabled: false}}",
        &["serviceMonitor.enabled needs service.enabled"],
    ),
    (
        "{nameOverride: gpumon, prometheusRule: {enabled: true}}",
        &["prometheusRule.thresholds.job \".*nvml-exporter.*\" does not match the job \"gpumon\""],
    ),
    (
        "{hostLabel: Hostname, prometheusRule: {enabled: true}}",
        &["prometheusRule.enabled needs the label hostname"],
    ),
    ("prometheusRule: {thresholds: {job: 'a\"b'}}", &["/thresholds/job", "does not match pattern"]),
    ("prometheusRule: {thresholds: {memoryShare: 98}}", &["/thresholds/memoryShare", "maximum"]),
    ("prometheusRule: {thresholds: {idleFor: long}}", &["/thresholds/idleFor", "pattern"]),
    (
        "extraEnv: [{name: NVIDIA_MIG_MONITOR_DEVICES, value: all}]",
        &["without SYS_ADMIN keeps the container from starting: set migMonitor.enabled"],
    ),
];

#[test]
fn wrong_values_are_refused_with_a_reason() {
    for (values, reasons) in WRONG {
        let output = template(CHART, values, &[]);
        let said = said(&output);
        assert!(!output.status.success(), "{values} is taken");
        for reason in *reasons {
            assert!(said.contains(reason), "{values}: no {reason:?} in\n{said}");
        }
        assert!(!said.contains("s3cret"), "a password is in a message:\n{said}");
    }
}

#[test]
fn a_chart_that_has_this_one_may_set_what_is_global() {
    let output = template(CHART, "global: {imageRegistry: registry.example}", &[]);
    assert!(output.status.success(), "{}", said(&output));
}
