//! Who one is and whom one trusts: parameters by the names of Tarantool's Enterprise edition, and the files that they name.
//!
//! | Parameter | Meaning |
//! |---|---|
//! | `transport` | `ssl`, or `plain` |
//! | `ssl_cert_file`, `ssl_key_file` | own certificate (and those between it and its authority) and its key, in PEM; a server needs them |
//! | `ssl_password`, `ssl_password_file` | what the key is encrypted with; of the file each line is tried |
//! | `ssl_ca_file` | authorities whose certificates are trusted; without it any is. With it a server asks clients for one |
//! | `ssl_ciphers` | names with colons between, OpenSSL's or the standard's; without it all that are safe |
//!
//! As there, names of hosts are not compared with those in certificates: an authority of one's own says who belongs to the cluster.

use crate::file::{self, FileKind};
use pkcs8::EncryptedPrivateKeyInfoRef;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{
    ClientConfig, DigitallySignedStruct, InconsistentKeys, RootCertStore, ServerConfig, SignatureScheme,
    SupportedCipherSuite,
};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Bytes of a file of keys or certificates: more is none.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Certificates that one file may have.
const CERTIFICATES_MAX: usize = 1000;
/// Passwords of one file that are tried: each costs as much as the key's maker wanted.
const PASSWORDS_MAX: usize = 100;

/// What `transport=ssl` was said with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parameters {
    key_file: Option<String>,
    cert_file: Option<String>,
    ca_file: Option<String>,
    ciphers: Option<String>,
    password: Option<String>,
    password_file: Option<String>,
    web: Option<Web>,
}

/// What a client of the web asks of servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Web {
    verifies_host: bool,
    verifies_peer: bool,
}

/// Where systems keep the authorities of the web.
const WEB_AUTHORITIES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// Takes connections; cheap to clone.
#[derive(Clone)]
pub struct Acceptor(pub(super) Arc<ServerConfig>);

/// Makes connections; cheap to clone.
#[derive(Clone)]
pub struct Connector(pub(super) Arc<ClientConfig>);

impl Acceptor {
    /// The same, for one protocol inside: a client that offers others by ALPN and not this one is refused.
    pub fn naming(&self, protocol: &str) -> Self {
        let mut config = ServerConfig::clone(&self.0);
        config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        Acceptor(Arc::new(config))
    }
}

fn wrong(words: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, words.into())
}

/// What is wrong with a file.
fn in_file(path: &str, words: impl std::fmt::Display) -> io::Error {
    wrong(format!("{path}: {words}"))
}

impl Parameters {
    /// Of parameters of an address, those about TLS; none if it is not asked for. Others are passed over. Errors: one that is not known, or without
    /// `transport=ssl`, which would be taken for safe.
    pub fn of<'a>(given: impl Iterator<Item = (&'a str, &'a str)>) -> io::Result<Option<Self>> {
        let mut parameters = Parameters::default();
        let (mut is_wanted, mut other) = (false, None);
        for (name, value) in given {
            let place = match name {
                "transport" => {
                    is_wanted = match value {
                        "ssl" => true,
                        "plain" | "" => false,
                        _ => return Err(wrong(format!("transport '{value}' is neither plain nor ssl"))),
                    };
                    continue;
                }
                "ssl_key_file" => &mut parameters.key_file,
                "ssl_cert_file" => &mut parameters.cert_file,
                "ssl_ca_file" => &mut parameters.ca_file,
                "ssl_ciphers" => &mut parameters.ciphers,
                "ssl_password" => &mut parameters.password,
                "ssl_password_file" => &mut parameters.password_file,
                _ if name.starts_with("ssl_") => return Err(wrong(format!("there is no parameter {name}"))),
                _ => continue,
            };
            other = other.or(Some(name));
            // Whoever means none gets none, rather than all.
            if name == "ssl_ciphers" && value.is_empty() {
                return Err(wrong("ssl_ciphers is empty: name ciphers, or leave it out for all"));
            }
            *place = (!value.is_empty()).then(|| value.to_string());
        }
        match (is_wanted, other) {
            (true, _) => Ok(Some(parameters)),
            (false, Some(name)) => Err(wrong(format!("{name} is given without transport=ssl"))),
            (false, None) => Ok(None),
        }
    }

    /// True if whoever answers these has to show a certificate of an authority that they name.
    pub fn has_authorities(&self) -> bool {
        self.ca_file.is_some()
    }

    /// A client of the web: it trusts the authorities of a file, or those that the system knows, and servers must have the names that they are asked by.
    pub fn for_web(
        ca_file: Option<String>,
        own: Option<(String, String)>,
        verifies_host: bool,
        verifies_peer: bool,
    ) -> Self {
        let (cert_file, key_file) = own.unzip();
        let web = Some(Web { verifies_host, verifies_peer });
        Parameters { ca_file, cert_file, key_file, web, ..Parameters::default() }
    }

    /// The side of a server. Errors: a parameter is missing, a file is not what it should be.
    pub fn acceptor(&self) -> io::Result<Acceptor> {
        let provider = self.provider()?;
        let Some(own) = self.own_key(&provider)? else {
            let missing = if self.cert_file.is_none() { "ssl_cert_file" } else { "ssl_key_file" };
            return Err(wrong(format!("{missing} is missing: a server needs a certificate and its key")));
        };
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| wrong(error.to_string()))?;
        let builder = match self.trusted()? {
            None => builder.with_no_client_auth(),
            Some((path, roots)) => {
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
                builder.with_client_cert_verifier(verifier.map_err(|error| in_file(path, error))?)
            }
        };
        let mut config = builder.with_cert_resolver(Arc::new(rustls::sign::SingleCertAndKey::from(own)));
        // A client that comes again shows its certificate again.
        config.send_tls13_tickets = 0;
        Ok(Acceptor(Arc::new(config)))
    }

    /// The side of a client. Errors: as those of [`Parameters::acceptor`].
    pub fn connector(&self) -> io::Result<Connector> {
        let provider = self.provider()?;
        let roots = match self.web {
            None => self.trusted()?.map(|(_, roots)| roots),
            Some(web) if web.verifies_peer => Some(self.trusted_in_web()?),
            Some(_) => None,
        };
        let verifies_host = self.web.is_some_and(|web| web.verifies_peer && web.verifies_host);
        let verifier = Verifier { roots, verifies_host, provider: Arc::clone(&provider) };
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| wrong(error.to_string()))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let config = match self.own_key(&provider)? {
            None => builder.with_no_client_auth(),
            Some(own) => builder.with_client_cert_resolver(Arc::new(rustls::sign::SingleCertAndKey::from(own))),
        };
        Ok(Connector(Arc::new(config)))
    }

    fn provider(&self) -> io::Result<Arc<CryptoProvider>> {
        let mut provider = ring::default_provider();
        if let Some(names) = &self.ciphers {
            let named: Vec<&str> = names.split([':', ',', ' ']).filter(|name| !name.is_empty()).collect();
            provider.cipher_suites.retain(|suite| named.iter().any(|name| is_called(suite, name)));
            if provider.cipher_suites.is_empty() {
                let known: Vec<String> = ring::ALL_CIPHER_SUITES.iter().map(openssl_name).collect();
                return Err(wrong(format!("ssl_ciphers '{names}' has none of {}", known.join(":"))));
            }
        }
        Ok(Arc::new(provider))
    }

    /// Own certificate and key, if both are given.
    fn own_key(&self, provider: &CryptoProvider) -> io::Result<Option<CertifiedKey>> {
        let (cert_file, key_file) = match (&self.cert_file, &self.key_file) {
            (Some(cert_file), Some(key_file)) => (cert_file, key_file),
            (Some(_), None) => return Err(wrong("ssl_cert_file is given without ssl_key_file")),
            (None, Some(_)) => return Err(wrong("ssl_key_file is given without ssl_cert_file")),
            (None, None) => return Ok(None),
        };
        let chain = certificates(cert_file)?;
        let key = self.private_key(key_file)?;
        let key = provider.key_provider.load_private_key(key).map_err(|error| in_file(key_file, error))?;
        let own = CertifiedKey::new(chain, key);
        match own.keys_match() {
            Ok(()) | Err(rustls::Error::InconsistentKeys(InconsistentKeys::Unknown)) => Ok(Some(own)),
            Err(rustls::Error::InconsistentKeys(_)) => {
                Err(in_file(key_file, format_args!("is not the key of the certificate in {cert_file}")))
            }
            Err(error) => Err(in_file(cert_file, error)),
        }
    }

    fn private_key(&self, path: &str) -> io::Result<PrivateKeyDer<'static>> {
        let pem = read(path)?;
        if let Some(encrypted) = section(&pem, "ENCRYPTED PRIVATE KEY") {
            return self.decrypted(path, encrypted);
        }
        if pem.windows(ENCRYPTED_HEADER.len()).any(|bytes| bytes == ENCRYPTED_HEADER) {
            let words = "is encrypted in an old way; `openssl pkcs8 -topk8` makes a key of it that is encrypted in the present one";
            return Err(in_file(path, words));
        }
        PrivateKeyDer::from_pem_slice(&pem).map_err(|error| in_file(path, format_args!("has no private key: {error}")))
    }

    fn decrypted(&self, path: &str, encrypted: &str) -> io::Result<PrivateKeyDer<'static>> {
        let (_, document) = pkcs8::SecretDocument::from_pem(encrypted)
            .map_err(|error| in_file(path, format_args!("has no private key: {error}")))?;
        let info = EncryptedPrivateKeyInfoRef::try_from(document.as_bytes()).map_err(|error| in_file(path, error))?;
        let listed = match &self.password_file {
            None => String::new(),
            Some(file) => String::from_utf8(read(file)?).map_err(|_| in_file(file, "is not UTF-8"))?,
        };
        let passwords: Vec<&str> =
            self.password.as_deref().into_iter().chain(listed.lines()).take(PASSWORDS_MAX).collect();
        if passwords.is_empty() {
            return Err(in_file(path, "is encrypted: give ssl_password or ssl_password_file"));
        }
        for password in &passwords {
            if let Ok(plain) = info.decrypt(password) {
                return Ok(PrivatePkcs8KeyDer::from(plain.as_bytes().to_vec()).into());
            }
        }
        Err(in_file(path, format_args!("cannot be decrypted with {} password(s)", passwords.len())))
    }

    /// The authorities of the web. What a system knows may have some that nobody can read any more.
    fn trusted_in_web(&self) -> io::Result<RootCertStore> {
        let known = || WEB_AUTHORITIES.iter().find(|path| file::describe(Path::new(path), true).is_ok());
        let path = match (&self.ca_file, known()) {
            (Some(path), _) => path.as_str(),
            (None, Some(path)) => path,
            (None, None) => return Err(wrong("the system has no certificates of authorities: give ca_file")),
        };
        let pem = read(path)?;
        let mut roots = RootCertStore::empty();
        let (added, _) = roots.add_parsable_certificates(CertificateDer::pem_slice_iter(&pem).filter_map(Result::ok));
        if added == 0 { Err(in_file(path, "has no certificate in PEM form")) } else { Ok(roots) }
    }

    /// The authorities, and the file that they are from.
    fn trusted(&self) -> io::Result<Option<(&str, RootCertStore)>> {
        let Some(path) = &self.ca_file else { return Ok(None) };
        let mut roots = RootCertStore::empty();
        for certificate in certificates(path)? {
            roots.add(certificate).map_err(|error| in_file(path, error))?;
        }
        Ok(Some((path, roots)))
    }
}

/// What a key that is encrypted in OpenSSL's old way says of itself.
const ENCRYPTED_HEADER: &[u8] = b"Proc-Type: 4,ENCRYPTED";

/// A whole file. Errors: it cannot be read, is no regular file or too large to be what it should be.
fn read(path: &str) -> io::Result<Vec<u8>> {
    /// The bits of a mode that say what a file is.
    const KIND: u32 = 0o170_000;
    /// Those of a regular one.
    const REGULAR: u32 = 0o100_000;
    let read = || {
        let found = file::describe(Path::new(path), true)?;
        if found.kind != FileKind::Other || found.mode & KIND != REGULAR {
            return Err(io::Error::other("is no file"));
        }
        if found.bytes > FILE_BYTES_MAX {
            return Err(io::Error::other(format!("has {} bytes, more than a key or certificates have", found.bytes)));
        }
        file::read_file(Path::new(path))
    };
    read().map_err(|error| in_file(path, error))
}

/// The certificates of a file. Errors: there is none, or one is cut.
fn certificates(path: &str) -> io::Result<Vec<CertificateDer<'static>>> {
    let pem = read(path)?;
    let mut found = Vec::new();
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        let certificate =
            certificate.map_err(|error| in_file(path, format_args!("has a damaged certificate: {error}")))?;
        // What cannot be taken apart is not shown to anybody.
        ParsedCertificate::try_from(&certificate)
            .map_err(|error| in_file(path, format_args!("has a damaged certificate: {error}")))?;
        found.push(certificate);
        if found.len() > CERTIFICATES_MAX {
            return Err(in_file(path, format_args!("has more than {CERTIFICATES_MAX} certificates")));
        }
    }
    if found.is_empty() {
        return Err(in_file(path, "has no certificate in PEM form"));
    }
    Ok(found)
}

/// The part of a PEM file between the lines that name something.
fn section<'a>(pem: &'a [u8], label: &str) -> Option<&'a str> {
    let text = std::str::from_utf8(pem).ok()?;
    let (begin, end) = (format!("-----BEGIN {label}-----"), format!("-----END {label}-----"));
    let from = text.find(&begin)?;
    let length = text[from..].find(&end)? + end.len();
    Some(&text[from..from + length])
}

/// What OpenSSL calls an algorithm: `ECDHE-RSA-AES256-GCM-SHA384` for `TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384`.
fn openssl_name(suite: &SupportedCipherSuite) -> String {
    let name = format!("{:?}", suite.suite());
    match name.strip_prefix("TLS13_") {
        Some(rest) => format!("TLS_{rest}"),
        None => {
            let name = name.trim_start_matches("TLS_").replace("_WITH_", "_").replace("AES_", "AES").replace('_', "-");
            name.strip_suffix("POLY1305-SHA256").map(|rest| format!("{rest}POLY1305")).unwrap_or(name)
        }
    }
}

fn is_called(suite: &SupportedCipherSuite, name: &str) -> bool {
    openssl_name(suite).eq_ignore_ascii_case(name) || format!("{:?}", suite.suite()).eq_ignore_ascii_case(name)
}

/// Looks at a server's certificate: it must be of one of the authorities, if any are given. Its owner must have the key, always.
#[derive(Debug)]
struct Verifier {
    roots: Option<RootCertStore>,
    /// It must be of the name that was asked for, too.
    verifies_host: bool,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if let Some(roots) = &self.roots {
            let parsed = ParsedCertificate::try_from(certificate)?;
            let algorithms = self.provider.signature_verification_algorithms.all;
            verify_server_cert_signed_by_trust_anchor(&parsed, roots, between, now, algorithms)?;
            if self.verifies_host {
                verify_server_name(&parsed, name)?;
            }
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
