//! The exporter's page, as far as the test reads it.

use std::collections::BTreeMap;

/// The labels of one series.
pub(super) type Labels = BTreeMap<String, String>;

/// The series of one name, in the page's order.
pub(super) fn series(page: &str, name: &str) -> Vec<Labels> {
    page.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('{')).map(labels).collect()
}

/// From `name="value",...} 1`. The page is the exporter's own, so what does not fit ends it.
fn labels(text: &str) -> Labels {
    let mut labels = Labels::new();
    let mut rest = text;
    while let Some((name, after)) = rest.split_once("=\"") {
        let mut value = String::new();
        let mut characters = after.char_indices();
        let end = loop {
            match characters.next() {
                None => return labels,
                Some((index, '"')) => break index,
                Some((_, '\\')) => match characters.next() {
                    Some((_, 'n')) => value.push('\n'),
                    Some((_, other)) => value.push(other),
                    None => return labels,
                },
                Some((_, other)) => value.push(other),
            }
        };
        labels.insert(name.trim_start_matches(',').to_owned(), value);
        rest = &after[end + 1..];
        if rest.starts_with('}') {
            break;
        }
    }
    labels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_series_of_the_very_name_are_found() {
        let page = "# TYPE a gauge\na{x=\"1\"} 1\nab{x=\"2\"} 1\na 3\na{x=\"4\",y=\"\"} 1\n";
        let found: Vec<_> =
            series(page, "a").into_iter().map(|labels| labels["x"].clone()).collect();
        assert_eq!(found, ["1", "4"]);
    }

    #[test]
    fn values_may_have_quotes_and_braces() {
        let found = series("a{x=\"say \\\"}\\\" \\\\n\",y=\"=\\n,\"} 1\n", "a");
        let expected = [("x", "say \"}\" \\n"), ("y", "=\n,")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(found, [Labels::from(expected)]);
    }
}
