//! Go's flag style to clap's: there one dash and two mean the same, long name or short.

use std::collections::BTreeMap;
use std::ffi::OsString;

/// What may follow a flag.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Follows {
    Nothing,
    /// `--flag` or `--flag=true`.
    Truth,
    /// `--flag value` or `--flag=value`.
    Value,
}

/// Rewrites `-collectors x` to `--collectors x`, `--f x` to `-f x`, and `-k true` to `-k=true`.
///
/// The last is not Go's (whose parser would take `true` for the end of the flags), but what its
/// author meant.
pub(super) fn with_two_dashes(
    argv: impl Iterator<Item = OsString>,
    command: &clap::Command,
) -> Vec<OsString> {
    let flags = flags(command);
    let mut argv = argv.peekable();
    let mut rewritten = Vec::new();
    rewritten.extend(argv.next()); // the program's name
    while let Some(word) = argv.next() {
        if word == "--" {
            rewritten.push(word);
            rewritten.extend(argv);
            break;
        }
        let Some((mut text, follows)) = word.to_str().and_then(|word| flag_of(word, &flags)) else {
            rewritten.push(word);
            continue;
        };
        let mut value = None;
        if !text.contains('=') {
            match follows {
                Follows::Nothing => {}
                Follows::Truth => {
                    if let Some(truth) = argv.next_if(|next| next == "true" || next == "false") {
                        text = format!("{text}={}", truth.display());
                    }
                }
                Follows::Value => value = argv.next(),
            }
        }
        rewritten.push(text.into());
        rewritten.extend(value);
    }
    rewritten
}

/// The word with clap's number of dashes, if it is a flag.
fn flag_of(word: &str, flags: &BTreeMap<String, Follows>) -> Option<(String, Follows)> {
    let bare = word.strip_prefix("--").or_else(|| word.strip_prefix('-'))?;
    let name = bare.split_once('=').map_or(bare, |(name, _)| name);
    let follows = *flags.get(name)?;
    let dashes = if name.chars().count() == 1 { "-" } else { "--" };
    Some((format!("{dashes}{bare}"), follows))
}

/// Every name of every flag, long or short.
fn flags(command: &clap::Command) -> BTreeMap<String, Follows> {
    let mut flags = BTreeMap::new();
    // clap adds these when it parses.
    flags.insert("help".to_owned(), Follows::Nothing);
    flags.insert("h".to_owned(), Follows::Nothing);
    for arg in command.get_arguments() {
        let follows = if !arg.get_action().takes_values() {
            Follows::Nothing
        } else if arg.is_require_equals_set() {
            Follows::Truth
        } else {
            Follows::Value
        };
        let longs = arg.get_long_and_visible_aliases().unwrap_or_default();
        flags.extend(longs.into_iter().map(|name| (name.to_owned(), follows)));
        flags.extend(arg.get_short().map(|name| (name.to_string(), follows)));
    }
    flags
}
