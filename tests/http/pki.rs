//! Certificates, web configuration files, and a client that speaks TLS.

use std::fs;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::Arc;

use nvml_exporter::http::{Limits, WebConfig};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tempfile::TempDir;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned, SupportedProtocolVersion, crypto,
    version,
};

use crate::support::{Answer, Recorder, Server, app, page, request};

/// An authority.
pub(crate) struct Ca(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key as PEM.
pub(crate) struct Pair {
    pub(crate) cert: String,
    pub(crate) key: String,
}

impl Ca {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    /// For these names, addresses and nothing else.
    pub(crate) fn issue(&self, names: &[&str]) -> Pair {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let key = KeyPair::generate().unwrap();
        let cert = CertificateParams::new(names).unwrap().signed_by(&key, &self.0).unwrap();
        Pair { cert: cert.pem(), key: key.serialize_pem() }
    }
}

/// A directory with a web configuration in it.
pub(crate) struct Web {
    dir: TempDir,
}

impl Web {
    pub(crate) fn new(yaml: &str) -> Self {
        let web = Self { dir: TempDir::new().unwrap() };
        web.write("web.yml", yaml);
        web
    }

    /// With `server.crt` and `server.key` for `localhost` beside it.
    pub(crate) fn with_tls(ca: &Ca, yaml: &str) -> Self {
        let tls = "tls_server_config:\n  cert_file: server.crt\n  key_file: server.key\n";
        let web = Self::new(&format!("{tls}{yaml}"));
        let pair = ca.issue(&["localhost"]);
        web.write("server.crt", &pair.cert);
        web.write("server.key", &pair.key);
        web
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.dir.path().join("web.yml")
    }

    /// In one step, as whoever rotates certificates should.
    pub(crate) fn write(&self, name: &str, text: &str) {
        let new = self.dir.path().join(format!("{name}.new"));
        fs::write(&new, text).unwrap();
        fs::rename(new, self.dir.path().join(name)).unwrap();
    }

    pub(crate) fn load(&self) -> Arc<WebConfig> {
        Arc::new(WebConfig::load(&self.path()).unwrap())
    }

    /// What is wrong with it, without the directory's name.
    pub(crate) fn error(&self) -> String {
        let error = WebConfig::load(&self.path()).unwrap_err().to_string();
        error.replace(&format!("{}/", self.dir.path().display()), "")
    }

    pub(crate) fn serve(&self, limits: Limits) -> (Server, Arc<WebConfig>, Arc<Recorder>) {
        let recorder = Arc::new(Recorder::default());
        let mut app = app(page("a 1\n"), limits);
        app.observer = recorder.clone();
        app.web = self.load();
        let web = app.web.clone();
        (Server::start(app), web, recorder)
    }
}

pub(crate) type Stream = StreamOwned<ClientConnection, TcpStream>;

/// A TLS client.
pub(crate) struct Client {
    roots: RootCertStore,
    pair: Option<Pair>,
    versions: Vec<&'static SupportedProtocolVersion>,
    pub(crate) alpn: Vec<Vec<u8>>,
}

impl Client {
    pub(crate) fn trusting(ca: &Ca) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(ca.pem().as_bytes()).unwrap()).unwrap();
        let versions = vec![&version::TLS13, &version::TLS12];
        Self { roots, pair: None, versions, alpn: vec![] }
    }

    pub(crate) fn with(mut self, pair: Pair) -> Self {
        self.pair = Some(pair);
        self
    }

    pub(crate) fn only(mut self, version: &'static SupportedProtocolVersion) -> Self {
        self.versions = vec![version];
        self
    }

    pub(crate) fn config(&self) -> Arc<ClientConfig> {
        let provider = Arc::new(crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&self.versions)
            .unwrap()
            .with_root_certificates(self.roots.clone());
        let mut config = match &self.pair {
            None => builder.with_no_client_auth(),
            Some(pair) => {
                let cert = CertificateDer::from_pem_slice(pair.cert.as_bytes()).unwrap();
                let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap();
                builder.with_client_auth_cert(vec![cert], key).unwrap()
            }
        };
        config.alpn_protocols.clone_from(&self.alpn);
        Arc::new(config)
    }

    pub(crate) fn connect(&self, server: &Server) -> io::Result<Stream> {
        let name = ServerName::try_from("localhost").unwrap();
        let mut connection = ClientConnection::new(self.config(), name).unwrap();
        let mut tcp = server.connect();
        while connection.is_handshaking() {
            connection.complete_io(&mut tcp)?;
        }
        Ok(StreamOwned::new(connection, tcp))
    }

    pub(crate) fn get(&self, server: &Server, path: &str, headers: &[&str]) -> io::Result<Answer> {
        let mut stream = self.connect(server)?;
        stream.write_all(request("GET", path, headers).as_bytes())?;
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes)?;
        Ok(Answer::parse(&bytes))
    }
}
