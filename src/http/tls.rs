//! `tls_server_config` to a rustls configuration: Go's names, refused by name where rustls has
//! no such thing.

use std::sync::Arc;

use serde_saphyr::Spanned;
use tokio_rustls::rustls::crypto::ring as backend;
use tokio_rustls::rustls::crypto::{CryptoProvider, SupportedKxGroup};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::version::{TLS12, TLS13};
use tokio_rustls::rustls::{self, ServerConfig, SupportedCipherSuite, SupportedProtocolVersion};

use super::client_cert;
use super::files::Files;
use super::web_file::{Problem, Text, TlsSection};

/// The configuration for a section; `None` when nothing in it asks for TLS.
pub(super) fn config(
    section: &Spanned<TlsSection>,
    http2: bool,
    files: &mut Files,
) -> Result<Option<Arc<ServerConfig>>, Problem> {
    let tls = &section.value;
    let cert = files.inline_or_file("cert", tls.cert.as_ref(), tls.cert_file.as_ref())?;
    let key = files.inline_or_file("key", tls.key.as_ref(), tls.key_file.as_ref())?;
    let (cert, key) = match (cert, key) {
        (Some(cert), Some(key)) => (cert, key),
        (None, None) if !client_cert::is_asked_for(tls) => return Ok(None),
        (None, _) => return Err(Problem::at(section, "missing one of cert or cert_file")),
        (_, None) => return Err(Problem::at(section, "missing one of key or key_file")),
    };
    let provider = Arc::new(provider(tls)?);
    let chain = CertificateDer::pem_slice_iter(&cert.bytes)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| cert.problem(error))?;
    if chain.is_empty() {
        return Err(cert.problem("there is no certificate in it"));
    }
    let private = PrivateKeyDer::from_pem_slice(&key.bytes).map_err(|error| key.problem(error))?;

    let broken = |error: rustls::Error| Problem::at(section, error.to_string());
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&versions(tls)?)
        .map_err(broken)?;
    let builder = match client_cert::verifier(tls, files, &provider)? {
        Some(verifier) => builder.with_client_cert_verifier(verifier),
        None => builder.with_no_client_auth(),
    };
    let mut config =
        builder.with_single_cert(chain, private).map_err(|error| key.problem(error))?;
    if http2 {
        config.alpn_protocols.push(b"h2".to_vec());
    }
    config.alpn_protocols.push(b"http/1.1".to_vec());
    Ok(Some(Arc::new(config)))
}

fn versions(tls: &TlsSection) -> Result<Vec<&'static SupportedProtocolVersion>, Problem> {
    let parse = |key: &str, text: Option<&Text>, default: u8| match text {
        None => Ok(default),
        Some(text) => match text.value.as_str() {
            "TLS12" => Ok(12),
            "TLS13" => Ok(13),
            "TLS10" | "TLS11" => {
                let problem =
                    format!("{key}: {} is not supported, TLS12 and TLS13 are", text.value);
                Err(Problem::at(text, problem))
            }
            other => Err(Problem::at(text, format!("{key}: {other:?} is no TLS version"))),
        },
    };
    let min = parse("min_version", tls.min_version.as_ref(), 12)?;
    let max = parse("max_version", tls.max_version.as_ref(), 13)?;
    match (min, max) {
        (12, 12) => Ok(vec![&TLS12]),
        (12, _) => Ok(vec![&TLS13, &TLS12]),
        (13, 13) => Ok(vec![&TLS13]),
        _ => Err(Problem {
            line: tls.max_version.as_ref().map(|text| text.referenced.line()),
            text: "max_version is below min_version".to_owned(),
        }),
    }
}

fn provider(tls: &TlsSection) -> Result<CryptoProvider, Problem> {
    let mut provider = backend::default_provider();
    if let Some(names) = tls.cipher_suites.as_ref().filter(|names| !names.is_empty()) {
        // As in Go, the suites of TLS 1.3 may be named but are always on.
        let mut suites = TLS13_SUITES.to_vec();
        for name in names {
            let suite = suite(name)?;
            if !suites.contains(&suite) {
                suites.push(suite);
            }
        }
        provider.cipher_suites = suites;
    }
    if let Some(names) = tls.curve_preferences.as_ref().filter(|names| !names.is_empty()) {
        provider.kx_groups = names.iter().map(curve).collect::<Result<_, _>>()?;
    }
    Ok(provider)
}

const TLS13_SUITES: [SupportedCipherSuite; 3] = [
    backend::cipher_suite::TLS13_AES_128_GCM_SHA256,
    backend::cipher_suite::TLS13_AES_256_GCM_SHA384,
    backend::cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
];

fn suite(name: &Text) -> Result<SupportedCipherSuite, Problem> {
    use backend::cipher_suite as ring;
    Ok(match name.value.as_str() {
        "TLS_AES_128_GCM_SHA256" => ring::TLS13_AES_128_GCM_SHA256,
        "TLS_AES_256_GCM_SHA384" => ring::TLS13_AES_256_GCM_SHA384,
        "TLS_CHACHA20_POLY1305_SHA256" => ring::TLS13_CHACHA20_POLY1305_SHA256,
        "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256" => ring::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
        "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384" => ring::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
        "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"
        | "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305" => {
            ring::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256
        }
        "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256" => ring::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
        "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384" => ring::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
        "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256" | "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305" => {
            ring::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256
        }
        known if known.starts_with("TLS_") => {
            let text = format!(
                "cipher_suites: {known} is not supported (no CBC, no RSA key exchange, no RC4, no 3DES)"
            );
            return Err(Problem::at(name, text));
        }
        other => {
            return Err(Problem::at(name, format!("cipher_suites: {other:?} is no cipher suite")));
        }
    })
}

fn curve(name: &Text) -> Result<&'static dyn SupportedKxGroup, Problem> {
    match name.value.as_str() {
        "X25519" => Ok(backend::kx_group::X25519),
        "CurveP256" => Ok(backend::kx_group::SECP256R1),
        "CurveP384" => Ok(backend::kx_group::SECP384R1),
        other => {
            let text = format!(
                "curve_preferences: {other} is not supported, X25519, CurveP256 and CurveP384 are"
            );
            Err(Problem::at(name, text))
        }
    }
}
