//! Which of the ready bodies a client gets: `Accept` and `Accept-Encoding`, read as RFC 9110 does.

use std::cmp::Reverse;

use axum::http::header::{ACCEPT, ACCEPT_ENCODING};
use axum::http::{HeaderMap, HeaderName, HeaderValue};

use crate::exposition::{Encoding, Format};

/// The format for an `Accept` header, with its `Content-Type`. Text is what a client gets unless
/// it rates `OpenMetrics` at least as high: Prometheus 3 refuses a scrape of an unknown type, and
/// no client is known to refuse text.
pub(super) fn format(headers: &HeaderMap, offers_openmetrics: bool) -> (Format, HeaderValue) {
    let text = (Format::Text, HeaderValue::from_static(TEXT));
    if !offers_openmetrics {
        return text;
    }
    let accept = joined(headers, ACCEPT);
    let (mut open, mut plain, mut any) = (None::<Rated>, None::<Rated>, None::<Rated>);
    for (place, item) in items(&accept).enumerate() {
        let rated = Rated { q: item.q, first: Reverse(place), version: item.version };
        match item.token.to_ascii_lowercase().as_str() {
            "application/openmetrics-text" if content_type(item.version).is_some() => {
                open = open.max(Some(rated));
            }
            "text/plain" => plain = plain.max(Some(rated)),
            "text/*" | "*/*" => any = any.max(Some(rated)),
            _ => {}
        }
    }
    let Some(open) = open.filter(|open| open.q > 0) else { return text };
    let wins = match (plain, any) {
        (Some(plain), _) => (open.q, open.first) > (plain.q, plain.first),
        // A wildcard is less specific than the name, so the name wins a tie.
        (None, Some(any)) => open.q >= any.q,
        (None, None) => true,
    };
    match content_type(open.version).filter(|_| wins) {
        Some(kind) => (Format::OpenMetrics, HeaderValue::from_static(kind)),
        None => text,
    }
}

/// The coding for an `Accept-Encoding` header; `None` when the client rules out all we have.
pub(super) fn encoding(headers: &HeaderMap) -> Option<Encoding> {
    let accept = joined(headers, ACCEPT_ENCODING);
    let (mut gzip, mut zstd, mut identity, mut any) = (None, None, None, None);
    for item in items(&accept) {
        let slot = match item.token.to_ascii_lowercase().as_str() {
            "gzip" | "x-gzip" => &mut gzip,
            "zstd" => &mut zstd,
            "identity" => &mut identity,
            "*" => &mut any,
            _ => continue,
        };
        *slot = (*slot).max(Some(item.q));
    }
    // Gzip before zstd on a tie: every Prometheus asks for it, so it is the one that is ready.
    let (gzip, zstd) = (gzip.or(any).unwrap_or(0), zstd.or(any).unwrap_or(0));
    let (coding, q) = if zstd > gzip { (Encoding::Zstd, zstd) } else { (Encoding::Gzip, gzip) };
    // Identity needs no mention to be acceptable, but then anything mentioned is preferred to it.
    match identity.or(any) {
        Some(identity) if identity > q => Some(Encoding::Identity),
        None if q == 0 => Some(Encoding::Identity),
        _ => (q > 0).then_some(coding),
    }
}

const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// For the versions we may call ours; the bytes are the same.
fn content_type(version: Option<&str>) -> Option<&'static str> {
    match version {
        None | Some("1.0.0") => Some("application/openmetrics-text; version=1.0.0; charset=utf-8"),
        Some("0.0.1") => Some("application/openmetrics-text; version=0.0.1; charset=utf-8"),
        Some(_) => None,
    }
}

/// Higher is preferred: by weight, then by place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rated<'a> {
    q: u16,
    first: Reverse<usize>,
    version: Option<&'a str>,
}

/// One element of a weighted list.
struct Item<'a> {
    token: &'a str,
    version: Option<&'a str>,
    /// In thousandths.
    q: u16,
}

fn joined(headers: &HeaderMap, name: HeaderName) -> String {
    let lines = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    lines.collect::<Vec<_>>().join(",")
}

/// The elements of a list; what is malformed is as if it were not there.
fn items(list: &str) -> impl Iterator<Item = Item<'_>> {
    list.split(',').filter_map(|element| {
        let mut parts = element.split(';').map(str::trim);
        let mut item = Item { token: parts.next()?, version: None, q: 1000 };
        for part in parts {
            let Some((name, value)) = part.split_once('=') else { continue };
            let value = value.trim().trim_matches('"');
            match name.trim().to_ascii_lowercase().as_str() {
                "q" => item.q = thousandths(value)?,
                "version" => item.version = Some(value),
                _ => {}
            }
        }
        (!item.token.is_empty()).then_some(item)
    })
}

/// `0`, `1`, `0.5`, `0.333`.
fn thousandths(q: &str) -> Option<u16> {
    let (whole, fraction) = q.split_once('.').unwrap_or((q, ""));
    let digits = fraction.len() <= 3 && fraction.bytes().all(|b| b.is_ascii_digit());
    let fraction: u16 = format!("{fraction:0<3}").parse().ok().filter(|_| digits)?;
    match whole {
        "0" => Some(fraction),
        "1" if fraction == 0 => Some(1000),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: HeaderName, value: Option<&str>) -> HeaderMap {
        value.map(|value| (name, HeaderValue::from_str(value).unwrap())).into_iter().collect()
    }

    #[test]
    fn accept_encoding() {
        use Encoding::{Gzip, Identity, Zstd};
        let cases = [
            (None, Some(Identity)),
            (Some(""), Some(Identity)),
            (Some("gzip"), Some(Gzip)),
            (Some("GZIP"), Some(Gzip)),
            (Some("x-gzip"), Some(Gzip)),
            (Some("zstd"), Some(Zstd)),
            (Some("gzip, deflate, br, zstd"), Some(Gzip)),
            (Some("gzip;q=0.5, zstd;q=0.8"), Some(Zstd)),
            (Some("gzip;q=0.5, identity"), Some(Identity)),
            (Some("gzip;q=0"), Some(Identity)),
            (Some("gzip;q=0, *"), Some(Zstd)),
            (Some("br"), Some(Identity)),
            (Some("*"), Some(Gzip)),
            (Some("*;q=0"), None),
            (Some("identity;q=0"), None),
            (Some("br, identity;q=0"), None),
            (Some("identity;q=0, zstd;q=0.1"), Some(Zstd)),
            (Some("*;q=0, identity"), Some(Identity)),
            (Some("*;q=0, gzip"), Some(Gzip)),
            (Some("gzip;q=nonsense"), Some(Identity)),
            (Some("gzip; q = 1.0"), Some(Gzip)),
            (Some("gzip;q=1.5"), Some(Identity)),
            (Some(",,;;q=1,=,"), Some(Identity)),
        ];
        for (header, wanted) in cases {
            assert_eq!(encoding(&of(ACCEPT_ENCODING, header)), wanted, "{header:?}");
        }
    }

    #[test]
    fn accept() {
        let prometheus = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
            application/openmetrics-text;version=0.0.1;q=0.5,\
            text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,\
            */*;q=0.2";
        let cases = [
            (None, TEXT),
            (Some("*/*"), TEXT),
            (Some("text/html, */*;q=0.8"), TEXT),
            (Some(prometheus), "application/openmetrics-text; version=1.0.0; charset=utf-8"),
            (
                Some("application/openmetrics-text"),
                "application/openmetrics-text; version=1.0.0; charset=utf-8",
            ),
            (
                Some("application/openmetrics-text; version=\"0.0.1\""),
                "application/openmetrics-text; version=0.0.1; charset=utf-8",
            ),
            (Some("application/openmetrics-text; version=2.0.0"), TEXT),
            (Some("application/openmetrics-text;q=0"), TEXT),
            (Some("text/plain, application/openmetrics-text"), TEXT),
            (Some("text/plain, application/openmetrics-text;q=0.9"), TEXT),
            (
                Some("application/openmetrics-text, text/plain"),
                "application/openmetrics-text; version=1.0.0; charset=utf-8",
            ),
            (
                Some("*/*, application/openmetrics-text"),
                "application/openmetrics-text; version=1.0.0; charset=utf-8",
            ),
            (Some("*/*, application/openmetrics-text;q=0.5"), TEXT),
        ];
        for (header, wanted) in cases {
            let headers = of(ACCEPT, header);
            assert_eq!(format(&headers, true).1, wanted, "{header:?}");
            assert_eq!(format(&headers, false).1, TEXT, "{header:?}");
        }
    }
}
