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
