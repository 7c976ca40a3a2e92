//! The secret of a token, as the hello carries it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::fingerprint::sha256;
use cohabit_types::hex::{from_hex, to_hex};

/// 256 random bits that only the owner of a token knows. `Debug` hides them.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct Secret([u8; Secret::LENGTH]);

impl Secret {
    /// Bytes of it, in memory and on the wire.
    pub const LENGTH: usize = 32;

    /// The secret with these bytes.
    #[must_use]
    pub const fn new(bytes: [u8; Secret::LENGTH]) -> Secret {
        Secret(bytes)
    }

    /// The secret that these 64 lower-case hexadecimal digits mean.
    #[must_use]
    pub fn from_hex(digits: &str) -> Option<Secret> {
        from_hex(digits).map(Secret)
    }

    /// Its digits, for the one who may see them.
    #[must_use]
    pub fn expose_hex(&self) -> String {
        to_hex(&self.0)
    }

    /// The SHA-256 of it, which a head keeps.
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        sha256(&self.0)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("secret")
    }
}
