//! The hybrid, the default policy: A-SRPT decides which job starts when and where whole devices go, the
//! multi-stage estimates of ISACPP decide which GPU is shared, and no job is slowed down by neighbors beyond
//! its limit.
//!
//! Start with `policy.rs`. `least_cost.rs` chooses a device, `sharing_filter.rs` and `admission.rs` say
//! which ones may be shared. Three files remember what would be found again: `resident_groups.rs` which
//! devices are alike, `verdicts.rs` whether a newcomer may join them, and `standings.rs` how their jobs go
//! on without it. `slowdown_guard.rs` separates jobs whose measured slowdown is too large. The
//! README in this directory lists the properties that are wanted, which parts are the papers' and which are
//! inferred, and where each is tested.

mod admission;
mod least_cost;
mod options;
mod policy;
mod resident_groups;
mod sharing_filter;
mod slowdown_guard;
mod standings;
#[cfg(test)]
mod tests;
mod verdicts;

pub(crate) use options::HybridOptions;
pub(crate) use policy::Hybrid;
