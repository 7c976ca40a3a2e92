//! What jobs are scheduled by: the policy on its thread, and the learner that tells it what sharing costs.

use std::path::PathBuf;
use std::sync::Arc;

use cohabit_policy::interference::{ColocationHistory, InterferenceContext};
use cohabit_policy::parse_policy_with;

use crate::driver::InterferenceAwareness;
use crate::interference::{Base, InterferenceSource, TrainerHandle, TrainerOptions};
use crate::planner::{Planner, PolicyFactory};
use crate::{HeadError, HeadOptions};

/// What is known of it before anything runs.
pub(super) struct Scheduling {
    pub(super) policy: PolicyFactory,
    pub(super) awareness: InterferenceAwareness,
    pub(super) base: Base,
    /// Where models are kept that were learned.
    pub(super) versions: PathBuf,
}

impl Scheduling {
    /// Starts both threads. The policy knows what the learner does before it plans for the first time.
    pub(super) fn start(
        self,
        options: &HeadOptions,
        experience: ColocationHistory,
    ) -> Result<(Planner, TrainerHandle), HeadError> {
        let curriculum = TrainerOptions {
            base: self.base,
            experience,
            max_slowdown: options.max_slowdown,
            refit_after: options.refit_after,
            folder: self.versions,
        };
        let (learner, knowledge) = TrainerHandle::start(curriculum).map_err(HeadError::failed)?;
        let planner = Planner::start(self.policy, options.plan_limit).map_err(HeadError::failed)?;
        planner.set_interference(knowledge);
        Ok((planner, learner))
    }
}

/// Whether a policy of this name goes by interference: one that does keeps what it is given of that.
pub(super) fn awareness(policy: &str) -> Result<InterferenceAwareness, HeadError> {
    let knowledge = InterferenceContext::default();
    let _policy = parse_policy_with(policy, &knowledge)?;
    let kept = [Arc::strong_count(&knowledge.interference), Arc::strong_count(&knowledge.solos)];
    Ok(if kept.iter().any(|count| *count > 1) {
        InterferenceAwareness::Aware
    } else {
        InterferenceAwareness::Unaware
    })
}

/// What the head is to go by. A policy that does not look needs no model in memory.
pub(super) fn base(basis: &InterferenceSource, awareness: InterferenceAwareness) -> Result<Base, HeadError> {
    match awareness {
        InterferenceAwareness::Aware => Base::read(basis),
        InterferenceAwareness::Unaware => Ok(Base::law()),
    }
}

#[cfg(test)]
mod tests {
    use cohabit_policy::POLICY_NAMES;

    use super::*;

    #[test]
    fn policies_that_share_by_interference_look_and_others_do_not() {
        let looking = |name: &&str| awareness(name).unwrap() == InterferenceAwareness::Aware;
        let (looking, others): (Vec<&str>, Vec<&str>) = POLICY_NAMES.into_iter().partition(looking);
        assert!(looking.contains(&"isacpp") && looking.contains(&"horus"), "{looking:?}");
        assert!(others.contains(&"fifo") && others.contains(&"a-srpt"), "{others:?}");
    }
}
