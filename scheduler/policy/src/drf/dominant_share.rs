//! The dominant share of a user: the largest of its shares of GPUs, cores and host memory.

use std::fmt;

use crate::ResourceAmounts;

/// A resource of the whole cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SharedResource {
    Gpus,
    Cpus,
    Memory,
}

/// The largest share of a user, and of which resource it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct DominantShare {
    /// A fraction; above 1 where nodes of its jobs do not accept others any more.
    pub(super) share: f64,
    /// The first one, where several shares are equal.
    pub(super) resource: SharedResource,
}

impl DominantShare {
    /// The dominant share of who holds so much of all there is.
    pub(super) fn of(held: ResourceAmounts, whole: ResourceAmounts) -> DominantShare {
        let [gpus, cpus, memory] = held.fractions_of(whole);
        let shares =
            [(gpus, SharedResource::Gpus), (cpus, SharedResource::Cpus), (memory, SharedResource::Memory)];
        let larger = |known: DominantShare, (share, resource)| match share > known.share {
            true => DominantShare { share, resource },
            false => known,
        };
        shares.into_iter().fold(DominantShare { share: 0.0, resource: SharedResource::Gpus }, larger)
    }

    /// A number that is larger for a larger share, and equal for an equal one.
    pub(super) const fn rank(&self) -> u64 {
        // No share is negative, and then floating-point numbers are ordered like their bits.
        self.share.to_bits()
    }
}

/// A verb phrase about the user: "holds 25% of the GPUs".
impl fmt::Display for DominantShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let resource = match self.resource {
            _ if self.share == 0.0 => return f.write_str("holds nothing"),
            SharedResource::Gpus => "GPUs",
            SharedResource::Cpus => "CPU cores",
            SharedResource::Memory => "host memory",
        };
        let percent = self.share * 100.0;
        let digits = if percent < 10.0 { 1 } else { 0 };
        write!(f, "holds {percent:.digits$}% of the {resource}")
    }
}
