//! The certificate that a head presents, and its renewal while the head listens.
//!
//! A new connection gets the certificate of that moment. Links that are open go on: TLS asks for a
//! certificate only at the start of a connection.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::SystemTime;

use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::identity::HeadIdentity;
use crate::{Fingerprint, StateError, tls};

/// The certificate and key that new connections get.
pub(crate) struct PresentedCertificate(RwLock<Arc<CertifiedKey>>);

impl PresentedCertificate {
    pub(crate) fn new(certificate: CertifiedKey) -> PresentedCertificate {
        PresentedCertificate(RwLock::new(Arc::new(certificate)))
    }

    fn current(&self) -> Arc<CertifiedKey> {
        // The value is replaced as a whole, so a panic elsewhere leaves a usable one.
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn replace(&self, certificate: CertifiedKey) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(certificate);
    }
}

impl ResolvesServerCert for PresentedCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current())
    }
}

/// Shows nothing of the key.
impl fmt::Debug for PresentedCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PresentedCertificate").finish_non_exhaustive()
    }
}

/// Renews the certificate of a listening head.
#[derive(Debug, Clone)]
pub struct CertificateRenewal {
    folder: PathBuf,
    fingerprint: Fingerprint,
    presented: Arc<PresentedCertificate>,
}

impl CertificateRenewal {
    pub(crate) fn new(identity: &HeadIdentity, presented: Arc<PresentedCertificate>) -> CertificateRenewal {
        let (folder, fingerprint) = (identity.folder().to_owned(), identity.fingerprint());
        CertificateRenewal { folder, fingerprint, presented }
    }

    /// Presents a new certificate if the stored one is missing, unusable, not valid at this time, or about to
    /// expire. Blocks on the disk.
    ///
    /// # Errors
    /// When a file cannot be read or written, or the CA is missing or another one. The present certificate
    /// then stays.
    pub fn check(&self, now: SystemTime) -> Result<(), StateError> {
        let identity = HeadIdentity::open(&self.folder, self.fingerprint, now)?;
        if self.presented.current().cert == identity.chain() {
            return Ok(());
        }
        let certificate = tls::certified_key(identity.chain(), identity.key())
            .map_err(|error| StateError::invalid(&self.folder, error))?;
        self.presented.replace(certificate);
        Ok(())
    }
}
