//! Fair share: whose job starts next, above every policy.
//!
//! The next GPU goes to the project that holds the smallest part of what it is entitled to, within the
//! project to the user for whom the same holds, and within the user to the job that the policy takes first.
//! What a project is entitled to follows from its weight, from what it used lately and from what it wants now
//! ([`entitlements`]). All numbers are integers, so that a replay on another processor gives the same bits.
//!
//! `amounts.rs` says what a job counts, `decay.rs` how use fades, `recent_use.rs` adds it up,
//! `entitlement.rs` divides the cluster, `parties.rs` applies that to projects and users, and `turns.rs`
//! hands out the turns of one plan, to lines (`line.rs`) of jobs of one user. `displacement.rs` says who may
//! be stopped for one whose turn it is.

mod amounts;
mod decay;
mod displacement;
mod entitlement;
mod line;
mod parties;
mod recent_use;
mod turns;

pub use amounts::{GPU, held_of_device, held_of_host, wanted};
pub use decay::Decay;
pub use displacement::Displacement;
pub use entitlement::{EntitlementClaim, entitlements, factor};
pub use line::Line;
pub use parties::{Division, FairShares, Party, Standing, Want};
pub use recent_use::{RecentUse, UseTerms};
pub use turns::Turns;
