//! The fingerprint of a cluster: the SHA-256 of the certificate of its CA, written as 64 hexadecimal digits.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use cohabit_types::hex::{from_hex, to_hex};

/// The fingerprint of a cluster's CA; public.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Fingerprint([u8; 32]);

/// A text that is no fingerprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a fingerprint is 64 hexadecimal digits")]
pub struct ParseFingerprintError;

impl Fingerprint {
    /// The fingerprint of a certificate in DER.
    #[must_use]
    pub fn of(certificate: &[u8]) -> Fingerprint {
        Fingerprint(sha256(certificate))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&to_hex(&self.0))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Fingerprint {
    type Err = ParseFingerprintError;
    fn from_str(text: &str) -> Result<Fingerprint, ParseFingerprintError> {
        from_hex(text).map(Fingerprint).ok_or(ParseFingerprintError)
    }
}

/// The SHA-256 of these bytes.
pub(crate) fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_reads_back_what_it_shows() {
        let fingerprint = Fingerprint::of(b"abc");
        let text = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(fingerprint.to_string(), text);
        assert_eq!(text.parse(), Ok(fingerprint));
    }

    #[test]
    fn an_invalid_fingerprint_is_refused() {
        let long = "a".repeat(65);
        for text in ["", "ab", &long, &"g".repeat(64), &"A".repeat(64), &"é".repeat(32)] {
            assert_eq!(text.parse::<Fingerprint>(), Err(ParseFingerprintError), "{text}");
        }
    }
}
