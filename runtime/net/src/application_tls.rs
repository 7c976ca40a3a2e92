//! TLS between the processes of one application: version 1.3 only, with one key that all of them have.
//!
//! They share a secret that nobody else knows, so each derives the same key from it, and both ends of a
//! connection prove that they have it. They present it as a raw public key (RFC 7250): there are no
//! certificates, names or validities.

use std::fmt;
use std::io;
use std::sync::Arc;

use cohabit_types::ApplicationSecret;
use ring::hmac;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{AlwaysResolvesClientRawPublicKeys, Resumption};
use rustls::crypto::{CryptoProvider, ring as ring_provider, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{AlwaysResolvesServerRawPublicKeys, NoServerSessionStorage};
use rustls::sign::CertifiedKey;
use rustls::version::TLS13;
use rustls::{
    CertificateError, CipherSuite, ClientConfig, DigitallySignedStruct, DistinguishedName, Error,
    PeerIncompatible, ServerConfig, SignatureScheme,
};
use subtle::ConstantTimeEq;
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};

use crate::socket;

/// Derives the seed of the key, and nothing else.
const LABEL: &[u8] = b"cohabit application transport key 1";

/// An Ed25519 key as PKCS #8, version 1, without its last part: the 32 bytes of the seed.
const PKCS8_HEAD: [u8; 16] =
    [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];

/// A name for the handshake, which is neither sent nor checked.
const NAME: &str = "application.cohabit.internal";

/// A connection between two processes of an application on different nodes.
pub type ApplicationStream = TlsStream<TcpStream>;

/// What a process of an application presents to others over the network, and accepts of them. `Debug` shows
/// nothing of it.
#[derive(Clone)]
pub struct ApplicationTls {
    acceptor: TlsAcceptor,
    connector: TlsConnector,
}

impl ApplicationTls {
    /// For the processes that know this secret.
    #[must_use]
    pub fn new(secret: &ApplicationSecret) -> ApplicationTls {
        let key = application_key(secret);
        let only = Arc::new(OnlyKey::new(&key));
        ApplicationTls {
            acceptor: TlsAcceptor::from(Arc::new(server_config(Arc::clone(&key), Arc::clone(&only)))),
            connector: TlsConnector::from(Arc::new(client_config(key, only))),
        }
    }

    /// Lets in a process of the application that has dialed. It may take for ever: callers limit the time.
    ///
    /// # Errors
    /// If the other end has another key or none, or speaks something else, or the connection breaks.
    pub async fn accept(&self, stream: TcpStream) -> io::Result<ApplicationStream> {
        socket::set_up_application(&stream)?;
        Ok(self.acceptor.accept(stream).await?.into())
    }

    /// Makes sure that a process of the application is at the other end. It may take for ever: callers limit
    /// the time.
    ///
    /// # Errors
    /// As of `accept`. That the other end refuses this one shows when something is read.
    pub async fn connect(&self, stream: TcpStream) -> io::Result<ApplicationStream> {
        socket::set_up_application(&stream)?;
        let name = ServerName::try_from(NAME).expect("the constant is a DNS name");
        Ok(self.connector.connect(name, stream).await?.into())
    }
}

impl fmt::Debug for ApplicationTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApplicationTls").finish_non_exhaustive()
    }
}

/// The key of all processes of the application.
fn application_key(secret: &ApplicationSecret) -> Arc<CertifiedKey> {
    let seed = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &secret.0), LABEL);
    let document = [&PKCS8_HEAD, seed.as_ref()].concat();
    let key = ring_provider::sign::any_eddsa_type(&PrivatePkcs8KeyDer::from(document))
        .expect("32 bytes are the seed of an Ed25519 key, and the head is constant");
    let public = key.public_key().expect("Ed25519 keys know their public part");
    let presented = CertificateDer::from(public.as_ref().to_vec());
    Arc::new(CertifiedKey::new(vec![presented], key))
}

fn server_config(key: Arc<CertifiedKey>, only: Arc<OnlyKey>) -> ServerConfig {
    let mut config = ServerConfig::builder_with_provider(Arc::clone(&only.provider))
        .with_protocol_versions(&[&TLS13])
        .expect("ring speaks TLS 1.3")
        .with_client_cert_verifier(only)
        .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(key)));
    // Each connection proves the key anew.
    config.send_tls13_tickets = 0;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config
}

fn client_config(key: Arc<CertifiedKey>, only: Arc<OnlyKey>) -> ClientConfig {
    let mut config = ClientConfig::builder_with_provider(Arc::clone(&only.provider))
        .with_protocol_versions(&[&TLS13])
        .expect("ring speaks TLS 1.3")
        .dangerous()
        .with_custom_certificate_verifier(only)
        .with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(key)));
    config.resumption = Resumption::disabled();
    config.enable_sni = false;
    config
}

/// Accepts one public key, at either end.
#[derive(Debug)]
struct OnlyKey {
    public: CertificateDer<'static>,
    provider: Arc<CryptoProvider>,
}

impl OnlyKey {
    fn new(key: &CertifiedKey) -> OnlyKey {
        let mut provider = ring_provider::default_provider();
        // Gigabytes pass: the fastest one first.
        let fastest = CipherSuite::TLS13_AES_128_GCM_SHA256;
        provider.cipher_suites.sort_by_key(|it| it.suite() != fastest);
        let provider = Arc::new(provider);
        OnlyKey { public: key.cert[0].clone(), provider }
    }

    fn check(&self, presented: &CertificateDer<'_>) -> Result<(), Error> {
        match bool::from(presented.as_ref().ct_eq(self.public.as_ref())) {
            true => Ok(()),
            false => Err(CertificateError::ApplicationVerificationFailure.into()),
        }
    }

    fn verify(
        &self,
        message: &[u8],
        presented: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let key = SubjectPublicKeyInfoDer::from(presented.as_ref());
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature_with_raw_key(message, &key, signature, algorithms)
    }
}

const fn no_tls12() -> Result<HandshakeSignatureValid, Error> {
    Err(Error::PeerIncompatible(PeerIncompatible::Tls12NotOffered))
}

impl ServerCertVerifier for OnlyKey {
    fn verify_server_cert(
        &self,
        presented: &CertificateDer<'_>,
        _others: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.check(presented).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _presented: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        no_tls12()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        presented: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verify(message, presented, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

impl ClientCertVerifier for OnlyKey {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        presented: &CertificateDer<'_>,
        _others: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.check(presented).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _presented: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        no_tls12()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        presented: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verify(message, presented, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    const OURS: ApplicationSecret = ApplicationSecret([7; 32]);
    const ALMOST: ApplicationSecret = {
        let mut almost = [7; 32];
        almost[31] ^= 1;
        ApplicationSecret(almost)
    };

    /// Two connected sockets.
    async fn sockets() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let dialed = TcpStream::connect(listener.local_addr().unwrap());
        let (dialed, accepted) = tokio::join!(dialed, listener.accept());
        (dialed.unwrap(), accepted.unwrap().0)
    }

    /// What the dialing end gets after its handshake, and what the other end says of its own.
    async fn shake(
        connector: &ApplicationTls,
        acceptor: &ApplicationTls,
    ) -> (io::Result<[u8; 5]>, io::Result<()>) {
        let (dialed, accepted) = sockets().await;
        let dial = async {
            let mut stream = connector.connect(dialed).await?;
            let mut read = [0; 5];
            stream.read_exact(&mut read).await.map(|_| read)
        };
        let accept = async {
            let mut stream = acceptor.accept(accepted).await?;
            stream.write_all(b"hello").await?;
            stream.flush().await
        };
        tokio::join!(dial, accept)
    }

    fn refused(error: &io::Error) -> &Error {
        error.get_ref().and_then(|inner| inner.downcast_ref()).expect("a failure of TLS")
    }

    const WRONG_KEY: Error = Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure);

    #[tokio::test]
    async fn processes_with_one_secret_let_each_other_in() {
        let (read, accepted) = shake(&ApplicationTls::new(&OURS), &ApplicationTls::new(&OURS)).await;
        assert_eq!(read.unwrap(), *b"hello");
        accepted.unwrap();
    }

    #[tokio::test]
    async fn a_process_with_another_secret_is_refused_by_both_ends() {
        let (ours, almost) = (ApplicationTls::new(&OURS), ApplicationTls::new(&ALMOST));
        let (dialed, accepted) = shake(&ours, &almost).await;
        assert_eq!(*refused(&dialed.unwrap_err()), WRONG_KEY, "the dialing end sees the wrong key first");
        accepted.unwrap_err();
        // One that accepts our key and presents its own one.
        let key = application_key(&OURS);
        let config = client_config(application_key(&ALMOST), Arc::new(OnlyKey::new(&key)));
        let impostor = ApplicationTls { connector: TlsConnector::from(Arc::new(config)), ..ours.clone() };
        let (dialed, accepted) = shake(&impostor, &ours).await;
        assert_eq!(*refused(&accepted.unwrap_err()), WRONG_KEY);
        dialed.unwrap_err();
    }

    #[tokio::test]
    async fn a_process_that_has_only_the_public_key_is_refused() {
        // It presents our key, and signs with its own one.
        let (ours, other) = (application_key(&OURS), application_key(&ALMOST));
        let stolen = Arc::new(CertifiedKey::new(ours.cert.clone(), Arc::clone(&other.key)));
        let only = Arc::new(OnlyKey::new(&ours));
        let thief = ApplicationTls {
            acceptor: TlsAcceptor::from(Arc::new(server_config(Arc::clone(&stolen), Arc::clone(&only)))),
            connector: TlsConnector::from(Arc::new(client_config(stolen, only))),
        };
        let honest = ApplicationTls::new(&OURS);
        let (dialed, _) = shake(&honest, &thief).await;
        assert!(matches!(
            refused(&dialed.unwrap_err()),
            Error::InvalidCertificate(CertificateError::BadSignature)
        ));
        let (_, accepted) = shake(&thief, &honest).await;
        assert!(matches!(
            refused(&accepted.unwrap_err()),
            Error::InvalidCertificate(CertificateError::BadSignature)
        ));
    }

    #[tokio::test]
    async fn a_client_without_a_key_is_refused() {
        let ours = ApplicationTls::new(&OURS);
        let only = Arc::new(OnlyKey::new(&application_key(&OURS)));
        let config = ClientConfig::builder_with_provider(Arc::clone(&only.provider))
            .with_protocol_versions(&[&TLS13])
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(only)
            .with_no_client_auth();
        let keyless = ApplicationTls { connector: TlsConnector::from(Arc::new(config)), ..ours.clone() };
        let (dialed, accepted) = shake(&keyless, &ours).await;
        assert!(matches!(
            refused(&accepted.unwrap_err()),
            Error::NoCertificatesPresented | Error::PeerIncompatible(_)
        ));
        dialed.unwrap_err();
    }

    #[tokio::test]
    async fn what_is_no_tls_is_refused() {
        let ours = ApplicationTls::new(&OURS);
        let (mut dialed, accepted) = sockets().await;
        dialed.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
        ours.accept(accepted).await.unwrap_err();
        let (dialed, mut accepted) = sockets().await;
        accepted.write_all(b"220 ready\r\n").await.unwrap();
        ours.connect(dialed).await.unwrap_err();
    }

    #[test]
    fn nothing_of_the_key_is_shown() {
        assert_eq!(format!("{:?}", ApplicationTls::new(&OURS)), "ApplicationTls { .. }");
    }

    #[tokio::test]
    async fn a_silent_machine_is_noticed_within_seconds() {
        let (dialed, accepted) = sockets().await;
        for stream in [dialed, accepted] {
            socket::set_up_application(&stream).unwrap();
            let socket = socket2::SockRef::from(&stream);
            assert!(stream.nodelay().unwrap() && socket.keepalive().unwrap());
            assert_eq!(socket.tcp_user_timeout().unwrap(), Some(std::time::Duration::from_secs(4)));
        }
    }
}
