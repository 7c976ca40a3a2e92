//! Users get what is due to them: jobs are stopped for those who hold less than their part.
//!
//! `reclaiming.rs` is a policy around another one, which decides everything else. `longest_waiting.rs`
//! knows which jobs of each user wait, `looks.rs` when it is looked what is due, and `claims.rs` for which
//! jobs room is kept until what was stopped has ended. `reclaim_draft.rs` makes one plan. See decision 059.

mod claims;
mod longest_waiting;
mod looks;
mod reclaim_draft;
mod reclaiming;
#[cfg(test)]
mod tests;

pub(crate) use reclaiming::Reclaiming;
