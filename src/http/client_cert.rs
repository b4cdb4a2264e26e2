//! Client certificates: Go's `ClientAuthType` and exporter-toolkit's `client_allowed_sans`.

use std::net::IpAddr;
use std::sync::Arc;

use tokio_rustls::rustls::client::danger::HandshakeSignatureValid;
use tokio_rustls::rustls::crypto::{
    CryptoProvider, verify_tls12_signature, verify_tls13_signature,
};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use tokio_rustls::rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, RootCertStore,
    SignatureScheme,
};
use webpki::EndEntityCert;

use super::files::{Files, Source};
use super::web_file::{Problem, Text, TlsSection};

type Verifier = Arc<dyn ClientCertVerifier>;

/// Whether anything in the section is about client certificates.
pub(super) fn is_asked_for(tls: &TlsSection) -> bool {
    let said = |text: &Option<Text>| text.as_ref().is_some_and(|text| !text.value.is_empty());
    said(&tls.client_auth_type) || said(&tls.client_ca) || said(&tls.client_ca_file)
}

/// Who may connect; `None` when no certificate is asked for.
pub(super) fn verifier(
    tls: &TlsSection,
    files: &mut Files,
    provider: &Arc<CryptoProvider>,
) -> Result<Option<Verifier>, Problem> {
    let ca =
        files.inline_or_file("client_ca", tls.client_ca.as_ref(), tls.client_ca_file.as_ref())?;
    let policy = tls.client_auth_type.as_ref().filter(|policy| !policy.value.is_empty());
    let allowed = tls.client_allowed_sans.as_deref().unwrap_or_default();
    let Some(policy) = policy.filter(|policy| policy.value != "NoClientCert") else {
        return match (ca, allowed.first()) {
            (Some(ca), _) => Err(ca.problem("needs a client_auth_type that asks for certificates")),
            (None, Some(name)) => {
                Err(Problem::at(name, "client_allowed_sans needs a client_auth_type"))
            }
            (None, None) => Ok(None),
        };
    };
    let any = |mandatory| -> Verifier { Arc::new(Any { mandatory, provider: provider.clone() }) };
    let verifier = match policy.value.as_str() {
        "RequestClientCert" => any(false),
        // The second name is how exporter-toolkit first called it.
        "RequireAnyClientCert" | "RequireClientCert" => any(true),
        "VerifyClientCertIfGiven" => verified(policy, ca, false, provider)?,
        "RequireAndVerifyClientCert" => verified(policy, ca, true, provider)?,
        other => return Err(Problem::at(policy, format!("client_auth_type: {other:?} is none"))),
    };
    if allowed.is_empty() {
        return Ok(Some(verifier));
    }
    let allowed = allowed.iter().map(San::parse).collect::<Result<_, _>>()?;
    Ok(Some(Arc::new(Named { inner: verifier, allowed })))
}

fn verified(
    policy: &Text,
    ca: Option<Source>,
    mandatory: bool,
    provider: &Arc<CryptoProvider>,
) -> Result<Verifier, Problem> {
    // Go would take the system's authorities here: any certificate of the public web.
    let ca = ca.ok_or_else(|| {
        Problem::at(policy, format!("{} needs client_ca or client_ca_file", policy.value))
    })?;
    let mut roots = RootCertStore::empty();
    for root in CertificateDer::pem_slice_iter(&ca.bytes) {
        let root = root.map_err(|error| ca.problem(error))?;
        roots.add(root).map_err(|error| ca.problem(error))?;
    }
    if roots.is_empty() {
        return Err(ca.problem("there is no certificate in it"));
    }
    let builder = WebPkiClientVerifier::builder_with_provider(roots.into(), provider.clone());
    let builder = if mandatory { builder } else { builder.allow_unauthenticated() };
    builder.build().map_err(|error| ca.problem(error))
}

/// Takes any certificate whose key the client holds.
#[derive(Debug)]
struct Any {
    mandatory: bool,
    provider: Arc<CryptoProvider>,
}

impl ClientCertVerifier for Any {
    fn client_auth_mandatory(&self) -> bool {
        self.mandatory
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// What `inner` takes, if one of its names is allowed.
#[derive(Debug)]
struct Named {
    inner: Verifier,
    allowed: Vec<San>,
}

/// A subject alternative name, compared to the letter.
#[derive(Debug)]
enum San {
    /// A DNS name or a URI.
    Name(String),
    Ip(IpAddr),
}

impl San {
    fn parse(text: &Text) -> Result<Self, Problem> {
        let name = &text.value;
        match name.parse() {
            Ok(ip) => Ok(Self::Ip(ip)),
            Err(_) if name.contains('@') && !name.contains(':') => {
                let problem = format!("client_allowed_sans: {name}: e-mail is not supported");
                Err(Problem::at(text, problem))
            }
            Err(_) => Ok(Self::Name(name.clone())),
        }
    }

    fn is_in(&self, cert: &EndEntityCert<'_>) -> bool {
        match self {
            Self::Name(name) => {
                cert.valid_dns_names().chain(cert.valid_uri_names()).any(|found| found == name)
            }
            Self::Ip(ip) => {
                let ip = ServerName::IpAddress((*ip).into());
                cert.verify_is_valid_for_subject_name(&ip).is_ok()
            }
        }
    }
}

impl ClientCertVerifier for Named {
    fn offer_client_auth(&self) -> bool {
        self.inner.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.inner.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.inner.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        cert: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let verified = self.inner.verify_client_cert(cert, intermediates, now)?;
        let cert = EndEntityCert::try_from(cert)
            .map_err(|_| Error::InvalidCertificate(CertificateError::BadEncoding))?;
        if self.allowed.iter().any(|name| name.is_in(&cert)) {
            Ok(verified)
        } else {
            let refused = CertificateError::ApplicationVerificationFailure;
            Err(Error::InvalidCertificate(refused))
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}
