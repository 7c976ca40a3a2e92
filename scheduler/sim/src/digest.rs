//! A 64-bit digest of all events, to compare two runs of a seed: FNV-1a, the same on every machine.

use std::fmt::{self, Debug, Write};

use cohabit_types::Time;

/// A running digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Digest(u64);

impl Default for Digest {
    fn default() -> Digest {
        Digest::new()
    }
}

impl Digest {
    /// The digest of nothing.
    #[must_use]
    pub const fn new() -> Digest {
        Digest(0xcbf2_9ce4_8422_2325)
    }

    /// Adds bytes.
    pub fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    /// Adds an event with its time.
    pub fn record_event(&mut self, now: Time, event: &impl Debug) {
        self.bytes(&now.as_micros().to_le_bytes());
        write!(self, "{event:?}").expect("a digest takes everything");
    }

    /// The present value.
    #[must_use]
    pub const fn value(&self) -> u64 {
        self.0
    }
}

impl Write for Digest {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.bytes(text.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_fnv_1a() {
        let of = |text: &str| {
            let mut digest = Digest::new();
            digest.bytes(text.as_bytes());
            digest.value()
        };
        assert_eq!(of(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(of("a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(of("foobar"), 0x8594_4171_f739_67e8);
    }
}
