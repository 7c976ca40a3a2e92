//! Files of certificates and keys, good and bad.

use std::fs::{self, Permissions};

use rcgen::{CertifiedKey, generate_simple_self_signed};

use super::*;

/// A directory with a certificate for these names and its key, each as the caller changes it.
struct Files {
    folder: tempfile::TempDir,
    files: TlsFiles,
}

impl Files {
    fn new() -> Files {
        let folder = tempfile::tempdir().unwrap();
        let files =
            TlsFiles { certificate: folder.path().join("wall.crt"), key: folder.path().join("wall.key") };
        let (certificate, key) = pair();
        let made = Files { folder, files };
        fs::write(&made.files.certificate, certificate).unwrap();
        made.write_key(&key, 0o600);
        made
    }

    fn write_key(&self, text: &str, mode: u32) {
        fs::write(&self.files.key, text).unwrap();
        fs::set_permissions(&self.files.key, Permissions::from_mode(mode)).unwrap();
    }

    fn refusal(&self) -> String {
        TlsIdentity::read(&self.files).unwrap_err().to_string()
    }
}

fn pair() -> (String, String) {
    let names = ["wall.example".to_owned(), "192.0.2.7".to_owned()];
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(names).unwrap();
    (cert.pem(), signing_key.serialize_pem())
}

#[test]
fn a_certificate_is_for_its_names_alone() {
    let identity = TlsIdentity::read(&Files::new().files).unwrap();
    assert!(identity.is_for("wall.example") && identity.is_for("192.0.2.7"));
    for other in ["evil.example", "127.0.0.1", "192.0.2.8", "", "wall.example.evil.example", "wall.example:1"]
    {
        assert!(!identity.is_for(other), "{other}");
    }
    assert_eq!(identity.public_host("192.0.2.7".parse().unwrap()), "192.0.2.7");
    assert_eq!(identity.public_host("::1".parse().unwrap()), "[::1]");
}

#[test]
fn each_bad_file_is_named_with_the_reason_and_the_flag() {
    let check = |change: &dyn Fn(&Files), words: [&str; 2]| {
        let files = Files::new();
        change(&files);
        let refusal = files.refusal();
        assert!(words.iter().all(|word| refusal.contains(word)), "{refusal}: {words:?}");
    };
    let (_, other_key) = pair();
    check(&|it| it.write_key(&other_key, 0o600), ["--tls-key", "not the key of the certificate"]);
    check(
        &|it| fs::set_permissions(&it.files.key, Permissions::from_mode(0o640)).unwrap(),
        ["others may read it, its mode is 640", "chmod 600"],
    );
    check(&|it| it.write_key("no key", 0o600), ["--tls-key", "has no private key"]);
    check(&|it| fs::remove_file(&it.files.key).unwrap(), ["--tls-key", "No such file"]);
    check(&|it| fs::remove_file(&it.files.certificate).unwrap(), ["--tls-cert", "No such file"]);
    check(&|it| fs::write(&it.files.certificate, "").unwrap(), ["--tls-cert", "has no certificate"]);
    check(&|it| fs::write(&it.files.certificate, vec![b'x'; 2 << 20]).unwrap(), ["--tls-cert", "1 MiB"]);
    let hollow = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    check(&|it| fs::write(&it.files.certificate, hollow).unwrap(), ["--tls-cert", "cannot be used"]);
    let folder = |it: &Files| {
        fs::remove_file(&it.files.key).unwrap();
        fs::create_dir(&it.files.key).unwrap();
        fs::set_permissions(&it.files.key, Permissions::from_mode(0o700)).unwrap();
        assert!(it.folder.path().exists());
    };
    check(&folder, ["--tls-key", "directory"]);
}
