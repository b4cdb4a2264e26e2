//! The committed files are those that the definitions give.

use std::collections::BTreeSet;
use std::fs;

use super::{SCHEMES, current, files};
use crate::shell::root;

#[test]
fn committed_files_are_current() {
    for (path, text) in files().unwrap() {
        current(&root().join("dashboards").join(path), &text).unwrap();
    }
}

/// A dashboard that is no longer defined is no longer there.
#[test]
fn no_file_is_left_over() {
    let defined: BTreeSet<String> = files().unwrap().into_iter().map(|(path, _)| path).collect();
    for (_, folder) in SCHEMES {
        for entry in fs::read_dir(root().join("dashboards").join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let is_dashboard = path.extension().is_some_and(|end| end == "json");
            let name = path.file_name().unwrap().display().to_string();
            let path = format!("{folder}{name}");
            assert!(!is_dashboard || defined.contains(&path), "{path}");
        }
    }
}
