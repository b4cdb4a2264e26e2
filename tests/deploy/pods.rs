//! What the pods may do, mount and ask for.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::matrix::{Rendered, rendered, the};
use crate::support::{items, of_kind, text};

/// What keeps a pod from a namespace with Pod Security `restricted`.
fn violations(rendered: &Rendered) -> Vec<String> {
    let (pod, container) = (rendered.pod(), rendered.container());
    let security = &container["securityContext"];
    let mut found: Vec<String> = items(&pod["volumes"])
        .filter(|volume| !volume["hostPath"].is_null())
        .map(|volume| format!("hostPath {}", text(&volume["name"])))
        .collect();
    for (name, wrong) in [
        ("hostPID", pod["hostPID"] == true),
        ("hostNetwork", pod["hostNetwork"] == true),
        ("privileged", security["privileged"] == true),
        ("allowPrivilegeEscalation", security["allowPrivilegeEscalation"] != false),
        ("drop", security["capabilities"]["drop"] != serde_json::json!(["ALL"])),
        ("add", !security["capabilities"]["add"].is_null()),
        ("seccompProfile", security["seccompProfile"]["type"] != "RuntimeDefault"),
        ("runAsNonRoot", security["runAsNonRoot"] != true),
        ("runAsUser", security["runAsUser"] == 0),
    ] {
        if wrong {
            found.push(name.to_owned());
        }
    }
    found
}

#[test]
fn pods_give_up_every_right_that_they_do_not_need() {
    let kubelet = "hostPath pod-resources";
    for (name, expected) in [
        ("without kubernetes", vec![]),
        ("defaults", vec![kubelet, "runAsNonRoot", "runAsUser"]),
        ("all that asks the API server", vec![kubelet, "runAsNonRoot", "runAsUser"]),
        ("virtual GPUs", vec![kubelet, "hostPID", "runAsNonRoot", "runAsUser"]),
        ("host network", vec![kubelet, "hostNetwork", "runAsNonRoot", "runAsUser"]),
        ("jobs", vec![kubelet, "hostPath job-mapping", "runAsNonRoot", "runAsUser"]),
        ("MIG monitor", vec!["add", "runAsNonRoot", "runAsUser"]),
    ] {
        assert_eq!(violations(the(name)), expected, "{name}");
    }
    let add = &the("MIG monitor").container()["securityContext"]["capabilities"]["add"];
    assert_eq!(*add, serde_json::json!(["SYS_ADMIN"]));
}

/// The API server refuses a privileged container that may not escalate.
#[test]
fn privileged_containers_are_said_to_be_so_and_nothing_else() {
    let privileged = ["GKE", "kernel log", "privileged"];
    for rendered in rendered() {
        let security = &rendered.container()["securityContext"];
        assert_eq!(security["readOnlyRootFilesystem"], true, "{}", rendered.row.name);
        assert_eq!(security["privileged"] == true, privileged.contains(&rendered.row.name));
        if security["privileged"] == true {
            assert!(security["allowPrivilegeEscalation"].is_null());
            assert!(security["capabilities"].is_null());
        }
    }
}

/// Either without the other keeps the container from starting.
#[test]
fn the_mig_monitor_is_asked_for_with_the_capability_that_it_takes() {
    for rendered in rendered() {
        let capable = rendered.container()["securityContext"]["capabilities"]["add"]
            == serde_json::json!(["SYS_ADMIN"]);
        let asks = rendered.env().contains_key("NVIDIA_MIG_MONITOR_DEVICES");
        assert_eq!(asks, capable, "{}", rendered.row.name);
    }
}

#[test]
fn the_driver_is_asked_for_and_no_gpu_is_taken() {
    for rendered in rendered() {
        let env = rendered.env();
        assert_eq!(env["NVIDIA_VISIBLE_DEVICES"], "all");
        assert_eq!(env["NVIDIA_DRIVER_CAPABILITIES"], "utility");
        let resources = rendered.container()["resources"].to_string();
        assert!(!resources.contains("nvidia.com"), "{resources}");
    }
    let resources = &the("defaults").container()["resources"];
    assert_eq!(
        *resources,
        serde_json::json!({
            "requests": {"cpu": "20m", "memory": "32Mi"}, "limits": {"memory": "128Mi"},
        })
    );
}

#[test]
fn volumes_and_mounts_belong_together_and_files_can_change() {
    for rendered in rendered() {
        let name = rendered.row.name;
        let volumes: BTreeSet<&str> =
            items(&rendered.pod()["volumes"]).map(|volume| text(&volume["name"])).collect();
        let mounts: Vec<&Value> = items(&rendered.container()["volumeMounts"]).collect();
        let mounted: BTreeSet<&str> = mounts.iter().map(|mount| text(&mount["name"])).collect();
        assert_eq!(volumes, mounted, "{name}");
        assert_eq!(volumes.len(), items(&rendered.pod()["volumes"]).count(), "{name}");
        let paths: BTreeSet<&str> = mounts.iter().map(|mount| text(&mount["mountPath"])).collect();
        assert_eq!(paths.len(), mounts.len(), "{name}");
        for mount in mounts {
            assert!(mount["subPath"].is_null(), "{name}: what is mounted by subPath never changes");
            let writable = ["dump", "dev", "more"].contains(&text(&mount["name"]));
            assert_eq!(mount["readOnly"] == true, !writable, "{name}: {mount}");
        }
    }
}

#[test]
fn volumes_are_those_of_the_values() {
    let path = |name: &str, volume: &str| {
        let mut volumes = items(&the(name).pod()["volumes"]);
        let found = volumes.find(|found| found["name"] == volume).unwrap();
        found["hostPath"]["path"].clone()
    };
    assert_eq!(path("defaults", "pod-resources"), "/var/lib/kubelet/pod-resources");
    assert_eq!(path("kubelet", "pod-resources"), "/srv/kubelet/pod-resources");
    assert_eq!(path("jobs", "job-mapping"), "/srv/jobs");
    assert_eq!(path("GKE", "driver"), "/home/kubernetes/bin/nvidia");
    assert!(the("without kubernetes").pod()["volumes"].is_null());
}

#[test]
fn pods_run_on_nodes_with_gpus() {
    let pod = the("defaults").pod();
    let terms = &pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    let terms: Vec<String> = items(&terms["nodeSelectorTerms"])
        .flat_map(|term| items(&term["matchExpressions"]))
        .map(|expression| {
            let values: Vec<&str> = items(&expression["values"]).map(text).collect();
            let [key, operator] = [&expression["key"], &expression["operator"]].map(text);
            format!("{key} {operator} {}", values.join(","))
        })
        .collect();
    let node = "feature.node.kubernetes.io";
    let expected = [
        format!("{node}/pci-10de.present In true"),
        format!("{node}/pci-0302_10de.present In true"),
        format!("{node}/pci-0300_10de.present In true"),
        format!("{node}/cpu-model.vendor_id In NVIDIA"),
        "nvidia.com/gpu.present In true".to_owned(),
        "cloud.google.com/gke-accelerator Exists ".to_owned(),
    ];
    assert_eq!(terms, expected);
    let tolerated: Vec<&str> =
        items(&pod["tolerations"]).map(|toleration| text(&toleration["key"])).collect();
    assert_eq!(tolerated, ["nvidia.com/gpu", "node-role.kubernetes.io/control-plane"]);
    assert_eq!(pod["priorityClassName"], "system-node-critical");

    let own = the("everything of one's own").pod();
    assert!(own["affinity"].to_string().contains(r#""key":"gpu""#));
    assert!(!own["affinity"].to_string().contains("10de"));
    assert_eq!(own["tolerations"], serde_json::json!([{"operator": "Exists"}]));
    assert!(own["priorityClassName"].is_null());
    assert_eq!(own["runtimeClassName"], "nvidia");
    assert!(the("on all nodes, without a Service").pod()["affinity"].is_null());
}

#[test]
fn nodes_can_be_drained() {
    for rendered in rendered() {
        assert!(of_kind(&rendered.objects, "PodDisruptionBudget").is_empty());
        assert_eq!(rendered.pod()["terminationGracePeriodSeconds"], 10);
    }
    let strategy = |name: &str| the(name).daemon_set()["spec"]["updateStrategy"].clone();
    let rolling = serde_json::json!({
        "type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"},
    });
    assert_eq!(strategy("defaults"), rolling);
    assert_eq!(strategy("everything of one's own"), serde_json::json!({"type": "OnDelete"}));
}
