//! Limits of cores, memory and processes through cgroup version 2, where a subtree is delegated to the
//! worker.
//!
//! ```text
//! …/                  delegated to the worker
//! …/daemon            the daemon and its executors
//! …/ranks/12#1        an attempt: limited to what its job claims
//! …/ranks/12#1/0      a rank: killed as a whole, so that nothing is left
//! ```
//!
//! The kernel allows processes in leaves only, so the daemon moves itself into one.

mod bpf;
mod claim;
mod device_filter;
#[cfg(test)]
mod fake_kernel;
mod limits;
mod rank;
mod share;
mod tree;

pub use claim::{Cgroups, check_delegation, process_limit};
pub use rank::RankCgroup;
pub use share::ChangedShare;
