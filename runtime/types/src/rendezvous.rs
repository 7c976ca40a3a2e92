//! Where processes on several nodes meet.

use serde::{Deserialize, Serialize};

/// Where the ranks of an attempt meet: rank 0 will listen there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rendezvous {
    /// The address of its node.
    pub address: String,
    /// No other attempt that runs meets there.
    pub port: u16,
}
