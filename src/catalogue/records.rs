//! Splits comma-separated text into records, by the rules of the parser that dcgm-exporter uses
//! (Go's `encoding/csv`), whose verdict on a file must be ours.
//!
//! The `csv` crate decodes the columns. What it cannot be told is where that parser refuses a
//! file: the crate takes a quote inside an unquoted column for text, and an open quote swallows
//! the rest of the file, so that later faults go unreported. So each record's quotes are judged
//! first, which also says how many lines it has.

/// One record: at which line it starts, and its columns, or why there are none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    /// Counted from 1.
    pub(super) line: usize,
    /// The columns, untrimmed.
    pub(super) columns: Result<Vec<String>, Fault>,
}

/// What is wrong with a record's quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// A quote inside a column that does not start with one.
    Bare,
    /// Text between a closing quote and the next comma.
    Trailing,
    /// A quote that is never closed.
    Open,
}

/// Splits the text. Empty lines are no records, nor are lines whose first byte is `#`. A faulty
/// record ends with its first line, so that one stray quote hides no other fault.
pub(super) fn records(text: &str) -> Vec<Record> {
    let lines: Vec<&str> =
        text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line)).collect();
    let mut records = Vec::new();
    let mut rest = lines.as_slice();
    while let Some((first, after)) = rest.split_first() {
        let line = lines.len() - after.len();
        rest = after;
        if first.is_empty() || first.starts_with('#') {
            continue;
        }
        let columns = lines_of(first, after).map(|more| {
            rest = &after[more..];
            decode(&[&[*first], &after[..more]].concat().join("\n"))
        });
        records.push(Record { line, columns });
    }
    records
}

/// How many of the following lines belong to the record that starts with `first`: its quoted
/// columns may reach over several.
fn lines_of(first: &str, following: &[&str]) -> Result<usize, Fault> {
    let mut following = following.iter().copied();
    let count = following.len();
    let mut rest = Some(first);
    while let Some(line) = rest {
        rest = if let Some(quoted) = line.strip_prefix('"') {
            after_quoted(quoted, &mut following)?
        } else {
            let (column, after) = line.split_once(',').map_or((line, None), |(c, a)| (c, Some(a)));
            if column.contains('"') {
                return Err(Fault::Bare);
            }
            after
        };
    }
    Ok(count - following.len())
}

/// What follows the comma after the column whose opening quote is before `rest`; `None` at the
/// record's end.
fn after_quoted<'a>(
    mut rest: &'a str,
    following: &mut impl Iterator<Item = &'a str>,
) -> Result<Option<&'a str>, Fault> {
    loop {
        let Some((_, after)) = rest.split_once('"') else {
            rest = following.next().ok_or(Fault::Open)?;
            continue;
        };
        if let Some(more) = after.strip_prefix('"') {
            rest = more;
        } else if let Some(more) = after.strip_prefix(',') {
            return Ok(Some(more));
        } else if after.is_empty() {
            return Ok(None);
        } else {
            return Err(Fault::Trailing);
        }
    }
}

/// The columns of one record whose quotes are right.
fn decode(record: &str) -> Vec<String> {
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        // A carriage return on its own is text.
        .terminator(csv::Terminator::Any(b'\n'))
        .from_reader(record.as_bytes());
    // A record without a fault, read from memory as text, leaves the crate nothing to refuse.
    let columns = reader.records().next().and_then(Result::ok).unwrap_or_default();
    columns.iter().map(String::from).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn columns_of(text: &str) -> Vec<Result<Vec<String>, Fault>> {
        records(text).into_iter().map(|record| record.columns).collect()
    }

    #[test]
    fn quotes_are_judged_as_the_go_parser_does() {
        for (text, expected) in [
            ("a,b,\"c, d\"", Ok(vec!["a", "b", "c, d"])),
            ("a,b,\"c \"\"d\"\"\"", Ok(vec!["a", "b", "c \"d\""])),
            ("a,\"b\nc\",d", Ok(vec!["a", "b\nc", "d"])),
            ("a,\"b\r\nc\",d\r\n", Ok(vec!["a", "b\nc", "d"])),
            ("a,b, \"c\"", Err(Fault::Bare)),
            ("a,b,c\"", Err(Fault::Bare)),
            ("a,\"b\"c,d", Err(Fault::Trailing)),
            ("a,\"b\" ,d", Err(Fault::Trailing)),
            ("a,b,\"c", Err(Fault::Open)),
            ("a,b,\"c\n", Err(Fault::Open)),
            ("a,,", Ok(vec!["a", "", ""])),
            ("a,b,\"\"", Ok(vec!["a", "b", ""])),
        ] {
            let expected = expected.map(|columns| columns.into_iter().map(String::from).collect());
            assert_eq!(columns_of(text), [expected], "{text:?}");
        }
    }

    #[test]
    fn only_a_first_byte_makes_a_comment() {
        assert_eq!(columns_of("# a,b\n\n\r\n#\n"), []);
        assert_eq!(columns_of(" # a,b"), [Ok(vec![" # a".into(), "b".into()])]);
    }

    #[test]
    fn a_carriage_return_within_a_line_is_text() {
        assert_eq!(
            columns_of("a\rb,c\r\nd,e\n"),
            [Ok(vec!["a\rb".into(), "c".into()]), Ok(vec!["d".into(), "e".into()])]
        );
    }

    #[test]
    fn a_stray_quote_costs_one_line() {
        let found = records("a,\"b\nc,d\"e\nf,g\n");
        let lines: Vec<_> =
            found.iter().map(|record| (record.line, record.columns.is_ok())).collect();
        assert_eq!(lines, [(1, false), (2, false), (3, true)]);
    }

    #[test]
    fn lines_are_counted_over_quoted_newlines() {
        let lines: Vec<_> = records("a,\"b\n\nc\"\n# x\nd").iter().map(|r| r.line).collect();
        assert_eq!(lines, [1, 5]);
    }

    proptest! {
        #[test]
        fn text_without_quotes_is_split_as_the_csv_crate_does(text in "([ab#, \t]{0,5}\r?\n){0,6}[ab,]{0,4}") {
            let mut reader = csv::ReaderBuilder::new()
                .has_headers(false)
                .flexible(true)
                .comment(Some(b'#'))
                .from_reader(text.as_bytes());
            let theirs: Vec<Result<Vec<String>, Fault>> = reader
                .records()
                .map(|record| Ok(record.unwrap().iter().map(String::from).collect()))
                .collect();
            prop_assert_eq!(columns_of(&text), theirs);
        }

        #[test]
        fn any_columns_survive_quoting(rows in prop::collection::vec(prop::collection::vec("[^\r]{0,9}", 1..4), 0..5)) {
            let quoted = |column: &String| format!("\"{}\"", column.replace('"', "\"\""));
            let text: String = rows
                .iter()
                .map(|row| row.iter().map(quoted).collect::<Vec<_>>().join(",") + "\n")
                .collect();
            let rows: Vec<_> = rows.into_iter().map(Ok).collect();
            prop_assert_eq!(columns_of(&text), rows);
        }
    }
}
