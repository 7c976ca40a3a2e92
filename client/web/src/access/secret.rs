//! Secrets of 256 random bits, of which only the digest is kept.

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// The SHA-256 of a secret.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SecretDigest([u8; 32]);

/// A new secret as text, and its digest.
pub(crate) fn new_secret() -> (String, SecretDigest) {
    let bits: [u8; 32] = rand::random();
    let text: String = bits.iter().map(|byte| format!("{byte:02x}")).collect();
    let digest = SecretDigest::of(&text);
    (text, digest)
}

impl SecretDigest {
    fn of(text: &str) -> SecretDigest {
        SecretDigest(Sha256::digest(text).into())
    }

    /// Whether it is the digest of this text; takes as long for every text.
    pub(crate) fn is_of(&self, text: &str) -> bool {
        self.0.ct_eq(&SecretDigest::of(text).0).into()
    }
}
