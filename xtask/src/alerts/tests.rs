//! The committed files are those that the templates give.

use super::constants::{self, set};
use super::{Source, read};
use crate::shell::root;

#[test]
fn committed_files_are_current() {
    for file in Source::read(&root()).unwrap().all().unwrap() {
        let path = root().join("alerts").join(&file.path);
        let committed = read(&path).unwrap_or_default();
        assert!(
            committed == file.text,
            "{} is not what alerts/src gives: run `cargo xtask alerts`",
            path.display()
        );
    }
}

/// What Helm does with the templates, for the few constructs that they have.
#[test]
fn helm_templates_with_default_values_are_the_rules() {
    let source = Source::read(&root()).unwrap();
    let rules = source.rules().unwrap();
    for file in source.helm().unwrap() {
        let plain = file.path.strip_prefix("helm/").unwrap();
        if plain == "values.yaml" {
            continue;
        }
        let mut text = file.text.clone();
        for constant in &source.thresholds {
            text = text.replace(&constant.as_helm_value().value, &constant.value);
        }
        let text = text.replace("{{ \"{{\" }}", "{{").replace("{{ \"}}\" }}", "}}");
        let rules = rules.iter().find(|rules| rules.path == plain).unwrap();
        assert_eq!(text, rules.text, "{}", file.path);
    }
}

#[test]
fn thresholds_are_set_by_name_and_kind() {
    let read = || constants::parse("# Degrees.\nmargin: 3\n# How long.\nidle: 1h\n").unwrap();
    let after = |assignment| {
        let mut constants = read();
        set(&mut constants, assignment).map(|()| constants)
    };
    assert_eq!(after("margin=5").unwrap()[0].value, "5");
    assert_eq!(after("idle=30m").unwrap()[1].value, "30m");
    for wrong in ["margin", "margin=", "margin=5m", "margin=NaN", "idle=5", "idle=5x", "idle=m"] {
        assert!(after(wrong).unwrap_err().contains(wrong), "{wrong}");
    }
    assert!(after("other=1").unwrap_err().contains("thresholds.yml"));
}
