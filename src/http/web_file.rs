//! The web configuration file as written: exporter-toolkit's YAML, strict.

use std::collections::BTreeMap;

use axum::http::{HeaderName, HeaderValue};
use serde::Deserialize;
use serde_saphyr::Spanned;

use super::rate_limit::Rate;

/// A text and the line it stands on.
pub(super) type Text = Spanned<String>;

/// The whole file. Not `Debug`: it may hold a private key.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct WebFile {
    pub(super) tls_server_config: Option<Spanned<TlsSection>>,
    http_server_config: Option<HttpSection>,
    basic_auth_users: Option<BTreeMap<String, Text>>,
    rate_limit: Option<Spanned<RateSection>>,
}

/// `tls_server_config`.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct TlsSection {
    pub(super) cert: Option<Text>,
    pub(super) cert_file: Option<Text>,
    pub(super) key: Option<Text>,
    pub(super) key_file: Option<Text>,
    pub(super) client_ca: Option<Text>,
    pub(super) client_ca_file: Option<Text>,
    pub(super) client_auth_type: Option<Text>,
    pub(super) client_allowed_sans: Option<Vec<Text>>,
    pub(super) min_version: Option<Text>,
    pub(super) max_version: Option<Text>,
    pub(super) cipher_suites: Option<Vec<Text>>,
    pub(super) curve_preferences: Option<Vec<Text>>,
    /// Read and ignored, as in exporter-toolkit.
    #[serde(rename = "prefer_server_cipher_suites")]
    _prefer_server_cipher_suites: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct HttpSection {
    http2: Option<bool>,
    headers: Option<BTreeMap<String, Text>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RateSection {
    interval: Option<Text>,
    burst: Option<u32>,
}

/// What is wrong, and where if it is in the YAML.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) line: Option<u64>,
    pub(super) text: String,
}

impl Problem {
    pub(super) fn at<T>(place: &Spanned<T>, text: impl Into<String>) -> Self {
        Self { line: Some(place.referenced.line()), text: text.into() }
    }
}

impl WebFile {
    pub(super) fn parse(yaml: &str) -> Result<Self, Problem> {
        let file = serde_saphyr::from_str::<Option<Self>>(yaml).map_err(|error| {
            // The excerpt that the error carries may show a key or a hash.
            let text = error.without_snippet().to_string();
            let text = text.lines().next().unwrap_or_default();
            let text = text.rsplit_once(" at line ").map_or(text, |(text, _)| text).to_owned();
            Problem { line: error.location().map(|location| location.line()), text }
        })?;
        Ok(file.unwrap_or_default())
    }

    pub(super) fn http2(&self) -> bool {
        self.http_server_config.as_ref().and_then(|http| http.http2).unwrap_or(true)
    }

    /// Names to bcrypt hashes.
    pub(super) fn users(&self) -> Result<BTreeMap<String, String>, Problem> {
        let users = self.basic_auth_users.iter().flatten();
        let checked = users.map(|(name, hash)| {
            // The hash itself is not repeated in the error.
            hash.value.parse::<bcrypt::HashParts>().map_err(|_| {
                Problem::at(hash, format!("basic_auth_users: {name:?} has no bcrypt hash"))
            })?;
            Ok((name.clone(), hash.value.clone()))
        });
        checked.collect()
    }

    /// Only the headers that exporter-toolkit lets be set, with the values it lets them have.
    pub(super) fn headers(&self) -> Result<Vec<(HeaderName, HeaderValue)>, Problem> {
        let headers = self.http_server_config.iter().filter_map(|http| http.headers.as_ref());
        let checked = headers.flatten().map(|(name, value)| {
            let allowed: &[&str] = match name.as_str() {
                "Strict-Transport-Security" | "X-XSS-Protection" | "Content-Security-Policy" => &[],
                "X-Content-Type-Options" => &["nosniff"],
                "X-Frame-Options" => &["deny", "sameorigin"],
                _ => return Err(Problem::at(value, format!("header {name:?} cannot be set"))),
            };
            if !allowed.is_empty() && !allowed.contains(&value.value.as_str()) {
                let allowed = allowed.join(", ");
                return Err(Problem::at(value, format!("header {name:?} may be: {allowed}")));
            }
            match (name.parse(), value.value.parse()) {
                (Ok(name), Ok(value)) => Ok((name, value)),
                _ => Err(Problem::at(value, format!("header {name:?}: not a header's value"))),
            }
        });
        checked.collect()
    }

    pub(super) fn rate(&self) -> Result<Option<Rate>, Problem> {
        let Some(section) = &self.rate_limit else { return Ok(None) };
        let Some(text) = &section.value.interval else { return Ok(None) };
        let interval = go_duration(&text.value).ok_or_else(|| {
            Problem::at(text, format!("interval: {:?} is no duration", text.value))
        })?;
        match section.value.burst.unwrap_or(0) {
            _ if interval.is_zero() => Ok(None),
            0 => Err(Problem::at(section, "rate_limit: with burst 0 no request would be answered")),
            burst => Ok(Some(Rate { interval, burst })),
        }
    }
}

/// A duration as Go writes it: `1s`, `1m30s`, `0.5s`, `100ms`.
fn go_duration(text: &str) -> Option<std::time::Duration> {
    let mut rest = text;
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at(end);
        let unit_end = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_end);
        let unit = match unit {
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 1e-3,
            "us" | "µs" => 1e-6,
            "ns" => 1e-9,
            _ => return None,
        };
        seconds += number.parse::<f64>().ok()? * unit;
        rest = tail;
    }
    std::time::Duration::try_from_secs_f64(seconds).ok().filter(|_| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn durations() {
        let cases = [
            ("1s", Some(1000)),
            ("1m30s", Some(90_000)),
            ("0.5s", Some(500)),
            ("100ms", Some(100)),
            ("2h", Some(7_200_000)),
            ("", None),
            ("1", None),
            ("s", None),
            ("1 s", None),
            ("-1s", None),
        ];
        for (text, millis) in cases {
            assert_eq!(go_duration(text), millis.map(Duration::from_millis), "{text}");
        }
    }

    #[test]
    fn problems_name_their_line() {
        let parsed = |yaml: &str| -> Result<(), Problem> {
            let file = WebFile::parse(yaml)?;
            file.users()?;
            file.headers()?;
            file.rate()?;
            Ok(())
        };
        for yaml in ["", "# nothing\n", "tls_server_config:\nbasic_auth_users:\n"] {
            assert_eq!(parsed(yaml), Ok(()), "{yaml}");
        }
        let cases = [
            ("\nbasic_auth: {}\n", 2, "unknown field `basic_auth`"),
            ("http_server_config:\n  http2: maybe\n", 2, "invalid boolean"),
            ("basic_auth_users:\n  a: x\n", 2, "basic_auth_users: \"a\" has no bcrypt hash"),
            (
                "http_server_config:\n  headers:\n    Server: x\n",
                3,
                "header \"Server\" cannot be set",
            ),
            (
                "http_server_config:\n  headers:\n    X-Frame-Options: allow\n",
                3,
                "header \"X-Frame-Options\" may be: deny, sameorigin",
            ),
            ("rate_limit:\n  interval: soon\n", 2, "interval: \"soon\" is no duration"),
            ("rate_limit:\n  interval: 1s\n", 2, "rate_limit: with burst 0"),
        ];
        for (yaml, line, text) in cases {
            let problem = parsed(yaml).unwrap_err();
            assert_eq!(problem.line, Some(line), "{yaml}");
            assert!(problem.text.starts_with(text), "{problem:?}");
        }
    }
}
