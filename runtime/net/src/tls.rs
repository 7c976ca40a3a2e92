//! TLS of links: version 1.3 only, with trust by the fingerprint in the token, never by names or public CAs.
//!
//! A client looks for the certificate with that fingerprint in the head's chain, and then has rustls verify
//! the head's own certificate against exactly this CA, for one fixed name.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::NoServerSessionStorage;
use rustls::version::TLS13;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, OtherError, PeerIncompatible,
    RootCertStore, ServerConfig, SignatureScheme,
};

use crate::Fingerprint;

/// The name in every head's certificate: heads are distinguished by their CA.
pub(crate) const HEAD_NAME: &str = "head.cohabit.internal";

/// The head's chain lacks the pinned certificate.
#[derive(Debug, thiserror::Error)]
#[error("no certificate with the fingerprint of the token was presented")]
pub(crate) struct PinMismatch;

/// The configuration of a head with this chain and key.
pub(crate) fn server_config(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<ServerConfig, Error> {
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    // No client resumes a session, so tickets would be wasted.
    config.send_tls13_tickets = 0;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    Ok(config)
}

/// The configuration of a client of the cluster with this fingerprint.
pub(crate) fn client_config(pin: Fingerprint) -> Result<ClientConfig, Error> {
    let config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(PinnedAuthority { pin, provider: provider() }))
        .with_no_client_auth();
    Ok(config)
}

/// The name that a client asks for.
pub(crate) fn head_name() -> ServerName<'static> {
    ServerName::try_from(HEAD_NAME).expect("the constant is a DNS name")
}

/// Verifies what a head presents against the one CA with this fingerprint.
pub(crate) fn verify_chain(
    pin: Fingerprint,
    certificate: &CertificateDer<'_>,
    others: &[CertificateDer<'_>],
    now: UnixTime,
) -> Result<ServerCertVerified, Error> {
    let authority = others.iter().find(|other| Fingerprint::of(other) == pin).ok_or_else(|| {
        Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(PinMismatch))))
    })?;
    let mut roots = RootCertStore::empty();
    roots.add(authority.clone().into_owned())?;
    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider())
        .build()
        .map_err(|error| Error::General(error.to_string()))?
        .verify_server_cert(certificate, &[], &head_name(), &[], now)
}

/// Whether a handshake failed because the head belongs to another cluster.
pub(crate) fn is_pin_mismatch(error: &Error) -> bool {
    matches!(error, Error::InvalidCertificate(CertificateError::Other(other)) if other.0.is::<PinMismatch>())
}

/// Whether a handshake failed because of the certificate.
pub(crate) const fn is_bad_certificate(error: &Error) -> bool {
    matches!(error, Error::InvalidCertificate(_))
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// Trusts one CA, known by its fingerprint.
#[derive(Debug)]
struct PinnedAuthority {
    pin: Fingerprint,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for PinnedAuthority {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        verify_chain(self.pin, certificate, others, now)
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::PeerIncompatible(PeerIncompatible::Tls13RequiredForQuic))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
