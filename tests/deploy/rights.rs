//! The chart's roles are what the exporter asks the API server for, neither more nor less.
//! `tests/e2e/cluster.rs` holds the exporter to the same list.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::matrix::{Rendered, rendered, the};
use crate::support::{CHART, items, objects, of_kind, only, said, template, text};

const KINDS: [&str; 4] = ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"];

/// What is asked for these purposes. Claims are asked for in whatever namespace they are; the one
/// in the list is an example.
fn wanted(purposes: &[&str]) -> BTreeSet<String> {
    let lines = include_str!("../data/rights.txt").lines();
    let rights =
        lines.filter(|line| !line.starts_with('#') && !line.is_empty()).filter_map(|line| {
            let (purpose, right) = line.split_once(' ').unwrap();
            let right = if purpose == "claims" {
                format!("{} *", right.rsplit_once(' ').unwrap().0)
            } else {
                right.to_owned()
            };
            purposes.contains(&purpose).then_some(right)
        });
    rights.collect()
}

/// What the roles among these objects allow, in the form of the list.
fn allowed(objects: &[Value]) -> BTreeSet<String> {
    let mut rights = BTreeSet::new();
    for role in of_kind(objects, "ClusterRole").into_iter().chain(of_kind(objects, "Role")) {
        let namespace = role["metadata"]["namespace"].as_str().unwrap_or("*");
        for rule in items(&role["rules"]) {
            for group in items(&rule["apiGroups"]) {
                for resource in items(&rule["resources"]) {
                    for verb in items(&rule["verbs"]) {
                        let [verb, group, resource] = [verb, group, resource].map(text);
                        rights.insert(format!("{verb} {group}/{resource} {namespace}"));
                    }
                }
            }
            let known = ["apiGroups", "resources", "verbs", "resourceNames"];
            assert!(rule.as_object().unwrap().keys().all(|key| known.contains(&key.as_str())));
        }
    }
    rights
}

fn has_token(rendered: &Rendered) -> bool {
    rendered.pod()["automountServiceAccountToken"].as_bool().unwrap()
}

#[test]
fn every_purpose_is_in_the_matrix() {
    let asked: BTreeSet<&str> =
        rendered().iter().flat_map(|rendered| rendered.row.purposes).copied().collect();
    let lines = include_str!("../data/rights.txt").lines();
    let listed: BTreeSet<&str> = lines
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert_eq!(asked, listed);
}

#[test]
fn roles_are_what_is_asked_for() {
    for rendered in rendered() {
        let name = rendered.row.name;
        assert_eq!(allowed(&rendered.objects), wanted(rendered.row.purposes), "{name}");
        assert_eq!(has_token(rendered), !rendered.row.purposes.is_empty(), "{name}");
        if rendered.row.purposes.is_empty() {
            for kind in KINDS {
                assert!(of_kind(&rendered.objects, kind).is_empty(), "{name}: {kind}");
            }
        }
    }
}

#[test]
fn each_role_is_bound_to_the_account_of_the_pods() {
    for rendered in rendered() {
        let account = &rendered.pod()["serviceAccountName"];
        let home = &rendered.daemon_set()["metadata"]["namespace"];
        for (role, binding) in [("ClusterRole", "ClusterRoleBinding"), ("Role", "RoleBinding")] {
            let roles = of_kind(&rendered.objects, role);
            let bindings = of_kind(&rendered.objects, binding);
            assert_eq!(roles.len(), bindings.len(), "{}", rendered.row.name);
            for (role, binding) in roles.into_iter().zip(bindings) {
                assert_eq!(binding["roleRef"]["kind"], role["kind"]);
                assert_eq!(binding["roleRef"]["name"], role["metadata"]["name"]);
                assert_eq!(binding["metadata"]["namespace"], role["metadata"]["namespace"]);
                let subjects: Vec<_> = items(&binding["subjects"]).collect();
                assert_eq!(subjects.len(), 1);
                assert_eq!(subjects[0]["kind"], "ServiceAccount");
                assert_eq!((&subjects[0]["name"], &subjects[0]["namespace"]), (account, home));
            }
        }
        let made = of_kind(&rendered.objects, "ServiceAccount");
        for one in made {
            assert_eq!(&one["metadata"]["name"], account);
            assert_eq!(one["automountServiceAccountToken"], false, "the pod says when");
        }
    }
}

#[test]
fn one_config_map_can_be_read_and_no_other() {
    for name in ["ConfigMap elsewhere", "ConfigMap at home", "all that asks the API server"] {
        let role = only(&the(name).objects, "Role");
        assert!(!role["rules"].as_array().unwrap().is_empty());
        for rule in items(&role["rules"]) {
            assert_eq!(rule["resourceNames"], serde_json::json!(["rows"]));
        }
    }
}

#[test]
fn roles_can_be_left_to_others_and_the_token_stays() {
    let values =
        "{kubernetes: {podUid: true, rbac: {create: false}}, kubernetesDRA: {enabled: true},
configMapData: {name: rows}}";
    let output = template(CHART, values, &[]);
    assert!(output.status.success(), "{}", said(&output));
    let objects = objects(&String::from_utf8(output.stdout).unwrap());
    assert!(KINDS.iter().all(|kind| of_kind(&objects, kind).is_empty()));
    let pods = &only(&objects, "DaemonSet")["spec"]["template"]["spec"];
    assert_eq!(pods["automountServiceAccountToken"], true);
}
