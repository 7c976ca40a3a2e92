//! The identity of a head: the cluster's CA, made on the first start, and the head's certificate, signed by
//! it.
//!
//! Clients know the CA by its fingerprint, so it is never replaced: every token would become invalid. The
//! head's certificate is made anew at a start if it is missing or unusable. It does not expire: trust is the
//! fingerprint in the token, the key of the CA lies beside it, and a clock that is wrong, on the head or on a
//! worker, must break no link. All four files are private.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};

use crate::{Fingerprint, StateError, private_file, tls};

/// The years in which a head's certificate is valid: all that clocks show.
const VALID: (i32, i32) = (1970, 4096);

/// Times since 1970 at which a certificate must be valid: the first that a clock shows, and one in 4086.
const CHECKED: [Duration; 2] = [Duration::ZERO, Duration::from_secs(2_116 * 365 * 86_400 + 500 * 86_400)];

/// The cluster's CA and the head's certificate.
pub struct HeadIdentity {
    fingerprint: Fingerprint,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl HeadIdentity {
    /// Reads the identity in this directory, or makes one. Blocks on the disk.
    ///
    /// # Errors
    /// When a file cannot be read or written, others may read it, or the CA's files do not fit together.
    pub fn open_or_create(folder: &Path) -> Result<HeadIdentity, StateError> {
        private_file::create_folder(folder)?;
        let authority = Authority::open_or_create(folder)?;
        match authority.kept_certificate(folder) {
            Some(identity) => Ok(identity),
            None => authority.new_certificate(folder),
        }
    }

    /// The fingerprint by which clients know the cluster.
    #[must_use]
    pub const fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// The head's certificate, then the CA's.
    pub(crate) fn chain(&self) -> Vec<CertificateDer<'static>> {
        self.chain.clone()
    }

    pub(crate) fn key(&self) -> PrivateKeyDer<'static> {
        self.key.clone_key()
    }

    /// Whether clients that pinned this CA accept the certificate, whatever their clocks show.
    fn is_good(&self) -> bool {
        let is_valid = |since_epoch: &Duration| {
            let at = UnixTime::since_unix_epoch(*since_epoch);
            tls::verify_chain(self.fingerprint, &self.chain[0], &self.chain[1..], at).is_ok()
        };
        CHECKED.iter().all(is_valid) && tls::server_config(self.chain(), self.key()).is_ok()
    }
}

/// Shows the fingerprint only.
impl std::fmt::Debug for HeadIdentity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Identity({})", self.fingerprint)
    }
}

/// The CA, able to sign.
struct Authority {
    certificate: CertificateDer<'static>,
    key: KeyPair,
}

impl Authority {
    fn open_or_create(folder: &Path) -> Result<Authority, StateError> {
        match Authority::open(folder)? {
            Some(authority) => Ok(authority),
            None => Authority::create(&folder.join("ca.pem"), &folder.join("ca.key")),
        }
    }

    /// None if there is no CA yet.
    fn open(folder: &Path) -> Result<Option<Authority>, StateError> {
        let (certificate_path, key_path) = (folder.join("ca.pem"), folder.join("ca.key"));
        let Some(certificate) = private_file::read(&certificate_path)? else { return Ok(None) };
        let advice = "restore it from a backup, or also remove ca.pem to start a new cluster with new tokens";
        let key = private_file::read(&key_path)?
            .ok_or_else(|| StateError::invalid(&key_path, format!("it is missing; {advice}")))?;
        let broken = |path: &Path| StateError::invalid(path, format!("it contains no valid PEM; {advice}"));
        let certificate =
            CertificateDer::from_pem_slice(&certificate).map_err(|_| broken(&certificate_path))?;
        let key = str::from_utf8(&key).ok().and_then(|key| KeyPair::from_pem(key).ok());
        Ok(Some(Authority { certificate, key: key.ok_or_else(|| broken(&key_path))? }))
    }

    /// Writes the key first: a crash in between leaves a key that nobody trusts yet.
    fn create(certificate_path: &Path, key_path: &Path) -> Result<Authority, StateError> {
        let key = KeyPair::generate().map_err(|error| StateError::invalid(key_path, error))?;
        let certificate =
            ca_params().self_signed(&key).map_err(|error| StateError::invalid(certificate_path, error))?;
        private_file::replace(key_path, key.serialize_pem().as_bytes())?;
        private_file::replace(certificate_path, certificate.pem().as_bytes())?;
        Ok(Authority { certificate: certificate.der().clone(), key })
    }

    fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.certificate)
    }

    /// The certificate of an earlier start, if it can be used; any error means none. Those of release 0.1
    /// expire, and cannot be used.
    fn kept_certificate(&self, folder: &Path) -> Option<HeadIdentity> {
        let certificate = private_file::read(&head_certificate(folder)).ok()??;
        let key = private_file::read(&head_key(folder)).ok()??;
        let identity = self.identity(
            CertificateDer::from_pem_slice(&certificate).ok()?,
            PrivateKeyDer::from_pem_slice(&key).ok()?,
        );
        identity.is_good().then_some(identity)
    }

    fn new_certificate(&self, folder: &Path) -> Result<HeadIdentity, StateError> {
        let (certificate_path, key_path) = (head_certificate(folder), head_key(folder));
        let broken = |error: rcgen::Error| StateError::invalid(&certificate_path, error);
        let key = KeyPair::generate().map_err(broken)?;
        let issuer = Issuer::new(ca_params(), &self.key);
        let certificate = head_params().and_then(|params| params.signed_by(&key, &issuer)).map_err(broken)?;
        let key_der = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes())
            .map_err(|error| StateError::invalid(&key_path, error))?;
        let identity = self.identity(certificate.der().clone(), key_der);
        if !identity.is_good() {
            let reason = "it does not belong to ca.pem; restore both from the same backup";
            return Err(StateError::invalid(&folder.join("ca.key"), reason));
        }
        private_file::replace(&key_path, key.serialize_pem().as_bytes())?;
        private_file::replace(&certificate_path, certificate.pem().as_bytes())?;
        tracing::info!(cluster = %identity.fingerprint, "created a certificate for this head");
        Ok(identity)
    }

    fn identity(&self, certificate: CertificateDer<'static>, key: PrivateKeyDer<'static>) -> HeadIdentity {
        HeadIdentity {
            fingerprint: self.fingerprint(),
            chain: vec![certificate, self.certificate.clone()],
            key,
        }
    }
}

fn head_certificate(folder: &Path) -> PathBuf {
    folder.join("head.pem")
}

fn head_key(folder: &Path) -> PathBuf {
    folder.join("head.key")
}

/// The subject of the CA is the same in every cluster: clients know it by its fingerprint, never by its name.
fn ca_params() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "Cohabit cluster CA");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params
}

fn head_params() -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new([tls::HEAD_NAME.to_owned()])?;
    params.distinguished_name.push(DnType::CommonName, "Cohabit head");
    params.use_authority_key_identifier_extension = true;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.not_before = date_time_ymd(VALID.0, 1, 1);
    params.not_after = date_time_ymd(VALID.1, 1, 1);
    Ok(params)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    use super::*;

    const FILES: [&str; 4] = ["ca.pem", "ca.key", "head.pem", "head.key"];

    #[test]
    fn the_first_start_makes_private_files_and_the_second_keeps_them() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("tls");
        let first = HeadIdentity::open_or_create(&state).unwrap();
        let kept = FILES.map(|file| fs::read(state.join(file)).unwrap());
        assert_eq!(HeadIdentity::open_or_create(&state).unwrap().fingerprint(), first.fingerprint());
        assert_eq!(FILES.map(|file| fs::read(state.join(file)).unwrap()), kept);
        assert_eq!(fs::metadata(&state).unwrap().mode() & 0o777, 0o700);
        for file in FILES {
            assert_eq!(fs::metadata(state.join(file)).unwrap().mode() & 0o777, 0o600, "{file}");
        }
    }

    #[test]
    fn a_broken_or_foreign_head_certificate_is_made_anew_and_the_cluster_stays() {
        let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let fingerprint = HeadIdentity::open_or_create(folder.path()).unwrap().fingerprint();
        HeadIdentity::open_or_create(other.path()).unwrap();
        let good = fs::read(folder.path().join("head.pem")).unwrap();
        for replacement in [b"nonsense".to_vec(), fs::read(other.path().join("head.pem")).unwrap()] {
            fs::write(folder.path().join("head.pem"), replacement).unwrap();
            let identity = HeadIdentity::open_or_create(folder.path()).unwrap();
            assert_eq!(identity.fingerprint(), fingerprint);
            assert!(identity.is_good());
            assert_ne!(fs::read(folder.path().join("head.pem")).unwrap(), good);
        }
    }

    /// Whether a client whose clock shows this time accepts the certificate.
    fn is_accepted(identity: &HeadIdentity, since_epoch: Duration) -> bool {
        let at = UnixTime::since_unix_epoch(since_epoch);
        tls::verify_chain(identity.fingerprint, &identity.chain[0], &identity.chain[1..], at).is_ok()
    }

    #[test]
    fn every_clock_accepts_the_certificate() {
        let folder = tempfile::tempdir().unwrap();
        let identity = HeadIdentity::open_or_create(folder.path()).unwrap();
        for years in [0, 1, 56, 100, 1_000, 2_100] {
            assert!(is_accepted(&identity, Duration::from_secs(years * 365 * 86_400)), "{years} years");
        }
    }

    /// Release 0.1 dated certificates by the clock of their first start, which may have been wrong.
    #[test]
    fn a_certificate_that_expires_is_made_anew_and_the_cluster_stays() {
        let folder = tempfile::tempdir().unwrap();
        let first = HeadIdentity::open_or_create(folder.path()).unwrap();
        let authority = Authority::open_or_create(folder.path()).unwrap();
        let key = KeyPair::generate().unwrap();
        let mut params = head_params().unwrap();
        (params.not_before, params.not_after) = (date_time_ymd(2027, 1, 1), date_time_ymd(2032, 1, 1));
        let dated = params.signed_by(&key, &Issuer::new(ca_params(), &authority.key)).unwrap();
        fs::write(folder.path().join("head.pem"), dated.pem()).unwrap();
        fs::write(folder.path().join("head.key"), key.serialize_pem()).unwrap();
        let renewed = HeadIdentity::open_or_create(folder.path()).unwrap();
        assert!(renewed.is_good() && renewed.chain[0] != *dated.der());
        assert_eq!(renewed.fingerprint(), first.fingerprint());
    }

    #[test]
    fn a_missing_or_foreign_ca_key_is_refused_and_nothing_is_overwritten() {
        let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        HeadIdentity::open_or_create(folder.path()).unwrap();
        HeadIdentity::open_or_create(other.path()).unwrap();
        let ca = fs::read(folder.path().join("ca.pem")).unwrap();
        fs::remove_file(folder.path().join("head.pem")).unwrap();

        fs::copy(other.path().join("ca.key"), folder.path().join("ca.key")).unwrap();
        let foreign = HeadIdentity::open_or_create(folder.path()).unwrap_err().to_string();
        assert!(foreign.contains("does not belong to ca.pem"), "{foreign}");
        fs::remove_file(folder.path().join("ca.key")).unwrap();
        let missing = HeadIdentity::open_or_create(folder.path()).unwrap_err().to_string();
        assert!(missing.contains("ca.key") && missing.contains("backup"), "{missing}");
        assert_eq!(fs::read(folder.path().join("ca.pem")).unwrap(), ca);
    }
}
