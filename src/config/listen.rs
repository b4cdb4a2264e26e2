//! Addresses to listen on, in Go's form.

use std::net::{IpAddr, SocketAddr};

use super::settings::Listen;

const ALLOWED: &str = "allowed: :PORT, ADDRESS:PORT, [IPV6]:PORT, NAME:PORT";

/// Reads one address.
pub(super) fn parse(text: &str) -> Result<Listen, String> {
    let Some((host, port)) = text.rsplit_once(':') else {
        return Err(format!("{text:?} has no port; {ALLOWED}"));
    };
    let port: u16 =
        port.parse().map_err(|_| format!("{port:?} is not a port (0 to 65535); {ALLOWED}"))?;
    if host.is_empty() {
        return Ok(Listen::Everywhere(port));
    }
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok(Listen::At(address));
    }
    if let Ok(IpAddr::V6(_)) = host.parse() {
        return Err(format!("an IPv6 address needs brackets: [{host}]:{port}; {ALLOWED}"));
    }
    if host.contains([':', '[', ']', '/']) {
        return Err(format!("{host:?} is not an address; {ALLOWED}"));
    }
    Ok(Listen::Named(host.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_read() {
        let at = |text: &str| Ok(Listen::At(text.parse().unwrap()));
        let cases: &[(&str, Result<Listen, &str>)] = &[
            (":9400", Ok(Listen::Everywhere(9400))),
            ("127.0.0.1:9400", at("127.0.0.1:9400")),
            ("[::1]:9400", at("[::1]:9400")),
            ("0.0.0.0:0", at("0.0.0.0:0")),
            ("localhost:9400", Ok(Listen::Named("localhost".to_owned(), 9400))),
            ("9400", Err("\"9400\" has no port; ")),
            (":http", Err("\"http\" is not a port (0 to 65535); ")),
            (":70000", Err("\"70000\" is not a port (0 to 65535); ")),
            ("::1:9400", Err("an IPv6 address needs brackets: [::1]:9400; ")),
            ("[::g]:9400", Err("\"[::g]\" is not an address; ")),
        ];
        for (text, expected) in cases {
            let expected = expected.clone().map_err(|problem| format!("{problem}{ALLOWED}"));
            assert_eq!(parse(text), expected, "{text}");
        }
    }
}
