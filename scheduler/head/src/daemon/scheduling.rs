//! Starts the threads that scheduling needs: the policy's, and the trainer's, which tells the policy what
//! it learned about interference.

use std::path::PathBuf;

use cohabit_policy::interference::ColocationHistory;

use crate::interference::{BasePredictor, TrainerHandle, TrainerOptions, read_base_predictor};
use crate::interference_source::InterferenceSource;
use crate::planner::{Planner, PolicyFactory};
use crate::{HeadError, HeadOptions};

/// What the two threads start with.
pub(super) struct Scheduling {
    pub(super) policy: PolicyFactory,
    /// Whether plans depend on predictions of interference.
    pub(super) uses_interference: bool,
    pub(super) base: BasePredictor,
    /// The directory of the trained models.
    pub(super) versions: PathBuf,
}

impl Scheduling {
    /// Starts both threads; blocks while models are read. The policy has the trainer's knowledge before its
    /// first plan.
    pub(super) fn start(
        self,
        options: &HeadOptions,
        experience: ColocationHistory,
    ) -> Result<(Planner, TrainerHandle), HeadError> {
        let trainer = TrainerOptions {
            base: self.base,
            experience,
            max_slowdown: options.max_slowdown,
            refit_after: options.refit_after,
            folder: self.versions,
        };
        let (trainer, knowledge) = TrainerHandle::start(trainer).map_err(HeadError::failed)?;
        let planner = Planner::start(self.policy, options.plan_limit).map_err(HeadError::failed)?;
        planner.set_interference(knowledge);
        Ok((planner, trainer))
    }
}

/// The predictor that the operator chose. A policy that uses no predictions gets the analytic one, so that
/// no model is loaded into memory.
pub(super) fn base_predictor(
    source: &InterferenceSource,
    uses_interference: bool,
) -> Result<BasePredictor, HeadError> {
    if uses_interference { read_base_predictor(source) } else { Ok(BasePredictor::analytic()) }
}

#[cfg(test)]
mod tests {
    use cohabit_policy::{POLICY_NAMES, parse_policy};

    #[test]
    fn policies_that_share_gpus_use_interference_and_others_do_not() {
        let uses = |name: &&str| parse_policy(name).unwrap().uses_interference();
        let (using, others): (Vec<&str>, Vec<&str>) = POLICY_NAMES.into_iter().partition(uses);
        assert!(using.contains(&"isacpp") && using.contains(&"horus"), "{using:?}");
        assert!(others.contains(&"fifo") && others.contains(&"a-srpt"), "{others:?}");
    }

    /// The flag is stated by hand, so it is compared with what a policy really keeps of the knowledge.
    #[test]
    fn a_policy_with_predictors_reports_that_it_uses_them() {
        use cohabit_policy::interference::InterferenceContext;
        use cohabit_policy::parse_policy_with;
        for name in POLICY_NAMES {
            let knowledge = InterferenceContext::default();
            let policy = parse_policy_with(name, &knowledge).unwrap();
            let keeps = [
                std::sync::Arc::strong_count(&knowledge.interference),
                std::sync::Arc::strong_count(&knowledge.solos),
            ];
            assert_eq!(policy.uses_interference(), keeps.iter().any(|count| *count > 1), "{name}");
        }
    }
}
