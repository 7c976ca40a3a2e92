//! The hybrid: A-SRPT says who starts when and where whole devices go, the stages of ISACPP say which GPU is
//! shared, and nobody is slowed by neighbours more than it may be.
//!
//! The README beside this file says which properties are wanted, what of this is the papers' and what is
//! inferred, and where each is tested.

mod admission;
mod least_cost;
mod options;
mod policy;
mod sharing_filter;
mod slowdown_guard;
#[cfg(test)]
mod tests;

pub(crate) use options::HybridOptions;
pub(crate) use policy::Hybrid;
