//! docs/command-line.md lists the flags as they are declared.

use clap::CommandFactory;
use expect_test::expect_file;

use super::super::Args;

const BEGIN: &str = "<!-- flags: written by a test, from the declarations (UPDATE_EXPECT=1) -->\n";
const HEAD: &str = "\
| Flag | Value | Environment | Default | Meaning |
|---|---|---|---|---|
";
const END: &str = "<!-- end of flags -->\n";

/// One row of the table.
fn row(arg: &clap::Arg) -> Option<String> {
    let takes_value = arg.get_action().takes_values();
    let long = arg.get_long().filter(|_| takes_value)?;
    let default = arg.get_default_values().first().map(|it| it.to_string_lossy());
    let switch = default.as_ref().is_some_and(|it| it == "true" || it == "false");
    let value = arg.get_value_names().and_then(|it| it.first()).map(ToString::to_string);
    let value = value.filter(|name| !switch || name.contains('|'));
    let value = value.map(|name| name.replace('|', "\\|"));
    let names = std::iter::once(format!("`--{long}`"))
        .chain(arg.get_visible_aliases().into_iter().flatten().map(|it| format!("`--{it}`")))
        .chain(arg.get_short().map(|it| format!("`-{it}`")));
    let code = |text: Option<String>| text.map(|it| format!("`{it}`")).unwrap_or_default();
    Some(format!(
        "| {} | {} | {} | {} | {} |\n",
        names.collect::<Vec<_>>().join(", "),
        value.unwrap_or_default(),
        code(arg.get_env().map(|it| it.to_string_lossy().into_owned())),
        code(default.map(std::borrow::Cow::into_owned)),
        arg.get_help().map(ToString::to_string).unwrap_or_default(),
    ))
}

fn table() -> String {
    let command = Args::command();
    let mut table = String::new();
    let mut heading = None;
    for arg in command.get_arguments() {
        let Some(row) = row(arg) else { continue };
        if heading != arg.get_help_heading() {
            heading = arg.get_help_heading();
            let heading = heading.unwrap_or("Options");
            table = table + "\n### " + heading + "\n\n" + HEAD;
        }
        table.push_str(&row);
    }
    table
}

#[test]
fn the_document_lists_every_flag() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/command-line.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let expected = format!("{before}{BEGIN}{}\n{END}{after}", table());
    expect_file![path].assert_eq(&expected);
}
