//! What jobs are scheduled by: the policy on its thread, and the learner that tells it what sharing costs.

use std::path::PathBuf;
use std::sync::Arc;

use cohabit_policy::interference::{Experience, Knowledge};
use cohabit_policy::policy_that_knows;

use crate::driver::Looks;
use crate::interference::{Base, Basis, Curriculum, Learner};
use crate::planner::{Planner, PolicyFactory};
use crate::{HeadError, HeadOptions};

/// What is known of it before anything runs.
pub(super) struct Scheduling {
    pub(super) policy: PolicyFactory,
    pub(super) looks: Looks,
    pub(super) base: Base,
    /// Where models are kept that were learned.
    pub(super) versions: PathBuf,
}

impl Scheduling {
    /// Starts both threads. The policy knows what the learner does before it plans for the first time.
    pub(super) fn start(
        self,
        options: &HeadOptions,
        experience: Experience,
    ) -> Result<(Planner, Learner), HeadError> {
        let curriculum = Curriculum {
            base: self.base,
            experience,
            max_slowdown: options.max_slowdown,
            refit_after: options.refit_after,
            folder: self.versions,
        };
        let (learner, knowledge) = Learner::start(curriculum).map_err(HeadError::failed)?;
        let planner = Planner::start(self.policy, options.plan_limit).map_err(HeadError::failed)?;
        planner.know(knowledge);
        Ok((planner, learner))
    }
}

/// Whether a policy of this name goes by interference: one that does keeps what it is given of that.
pub(super) fn looks(policy: &str) -> Result<Looks, HeadError> {
    let knowledge = Knowledge::default();
    let _policy = policy_that_knows(policy, &knowledge)?;
    let kept = [Arc::strong_count(&knowledge.interference), Arc::strong_count(&knowledge.solos)];
    Ok(if kept.iter().any(|count| *count > 1) { Looks::AtInterference } else { Looks::Elsewhere })
}

/// What the head is to go by. A policy that does not look needs no model in memory.
pub(super) fn base(basis: &Basis, looks: Looks) -> Result<Base, HeadError> {
    match looks {
        Looks::AtInterference => Base::read(basis),
        Looks::Elsewhere => Ok(Base::law()),
    }
}

#[cfg(test)]
mod tests {
    use cohabit_policy::POLICY_NAMES;

    use super::*;

    #[test]
    fn policies_that_share_by_interference_look_and_others_do_not() {
        let looking = |name: &&str| looks(name).unwrap() == Looks::AtInterference;
        let (looking, others): (Vec<&str>, Vec<&str>) = POLICY_NAMES.into_iter().partition(looking);
        assert!(looking.contains(&"isacpp") && looking.contains(&"horus"), "{looking:?}");
        assert!(others.contains(&"fifo") && others.contains(&"a-srpt"), "{others:?}");
    }
}
