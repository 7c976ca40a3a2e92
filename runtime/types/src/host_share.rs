//! Cores and host memory of a job on one node.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Bytes, counted};

/// Cores and host memory of a job on one node.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct HostShare {
    /// Cores.
    pub cpus: u32,
    /// Host memory.
    pub memory: Bytes,
}

impl HostShare {
    /// The smaller of both amounts, each for itself.
    #[must_use]
    pub fn at_most(self, other: HostShare) -> HostShare {
        HostShare { cpus: self.cpus.min(other.cpus), memory: self.memory.min(other.memory) }
    }

    /// The larger of both amounts, each for itself.
    #[must_use]
    pub fn at_least(self, other: HostShare) -> HostShare {
        HostShare { cpus: self.cpus.max(other.cpus), memory: self.memory.max(other.memory) }
    }

    /// Whether neither amount is larger than that of the other share.
    #[must_use]
    pub fn is_within(self, other: HostShare) -> bool {
        self.cpus <= other.cpus && self.memory <= other.memory
    }

    /// What is left after taking `other`; nothing of an amount that is smaller.
    #[must_use]
    pub const fn saturating_sub(self, other: HostShare) -> HostShare {
        HostShare {
            cpus: self.cpus.saturating_sub(other.cpus),
            memory: self.memory.saturating_sub(other.memory),
        }
    }

    /// Both amounts together.
    #[must_use]
    pub fn plus(self, other: HostShare) -> HostShare {
        HostShare { cpus: self.cpus.saturating_add(other.cpus), memory: self.memory + other.memory }
    }

    /// The end of a range that begins with this share: these amounts, and its own where none is given.
    /// Nothing if no amount differs.
    #[must_use]
    pub fn up_to(self, cpus: Option<u32>, memory: Option<Bytes>) -> Option<HostShare> {
        let most = HostShare { cpus: cpus.unwrap_or(self.cpus), memory: memory.unwrap_or(self.memory) };
        (most != self).then_some(most)
    }

    /// Whether it is nothing.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self == HostShare::default()
    }
}

/// As people read it: `6 cores and 20 GiB`.
impl fmt::Display for HostShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cores = counted(self.cpus, "core", "cores");
        match (self.cpus, self.memory) {
            (_, Bytes::ZERO) => f.write_str(&cores),
            (0, memory) => write!(f, "{memory} of host memory"),
            (_, memory) => write!(f, "{cores} and {memory}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn share(cpus: u32, memory: u64) -> HostShare {
        HostShare { cpus, memory: Bytes(memory << 30) }
    }

    #[test]
    fn amounts_are_compared_each_for_itself() {
        assert_eq!(share(2, 9).at_most(share(4, 3)), share(2, 3));
        assert_eq!(share(2, 9).at_least(share(4, 3)), share(4, 9));
        assert!(share(2, 3).is_within(share(2, 3)));
        assert!(!share(3, 1).is_within(share(2, 3)));
        assert_eq!(share(4, 1).saturating_sub(share(1, 2)), share(3, 0));
    }

    #[test]
    fn only_what_is_claimed_is_shown() {
        let shown = [share(6, 20), share(1, 0), share(0, 2)].map(|share| share.to_string());
        assert_eq!(shown, ["6 cores and 20 GiB", "1 core", "2 GiB of host memory"]);
    }
}
