//! Starts the threads that scheduling needs: the policy's, and the trainer's, which tells the policy what
//! it learned about interference.

use std::path::PathBuf;
use std::sync::Arc;

use cohabit_policy::interference::ColocationHistory;
use cohabit_policy::{SensitivityProfiles, parse_policy, uses_agents, uses_interference, uses_sensitivity};

use crate::agents::{self, decided_by, load_agents};
use crate::interference::{BasePredictor, TrainerHandle, TrainerOptions, read_base_predictor};
use crate::interference_source::InterferenceSource;
use crate::planner::{Planner, PolicyFactory};
use crate::sensitivity::{self, knowing, read_profiles};
use crate::{HeadError, HeadOptions};

/// The policy of a head, with what it needs of files.
pub(crate) struct ChosenPolicy {
    pub(crate) factory: PolicyFactory,
    /// Whether plans depend on predictions of interference.
    pub(crate) uses_interference: bool,
    /// The tables that it tunes shares by; none where it tunes no shares.
    pub(crate) sensitivity: Arc<SensitivityProfiles>,
}

impl ChosenPolicy {
    /// The policy that these options name. Blocks while files are read.
    ///
    /// # Errors
    /// An unknown name, and files that cannot be read or are wrong.
    pub(super) fn read(options: &HeadOptions) -> Result<ChosenPolicy, HeadError> {
        let name = options.policy.clone();
        parse_policy(&name)?;
        let mut profiles = Arc::new(read_profiles(options.sensitivity.as_deref())?);
        let agents = load_agents(options.agents.as_deref())?;
        for sentence in flags_without_use(options)? {
            tracing::warn!("{sentence}");
        }
        if !uses_sensitivity(&name)? {
            profiles = Arc::default();
        }
        let uses_interference = uses_interference(&name)?;
        let policy = move || parse_policy(&name).expect("the name was checked at the start");
        let factory = decided_by(knowing(Arc::new(policy), Arc::clone(&profiles)), agents);
        Ok(ChosenPolicy { factory, uses_interference, sensitivity: profiles })
    }

    /// The same with another factory.
    pub(super) fn with(self, change: impl FnOnce(PolicyFactory) -> PolicyFactory) -> ChosenPolicy {
        ChosenPolicy { factory: change(self.factory), ..self }
    }
}

/// A sentence for each flag that has no effect under the policy of these options.
fn flags_without_use(options: &HeadOptions) -> Result<Vec<String>, HeadError> {
    let mut sentences = Vec::new();
    if options.sensitivity.is_some() && !uses_sensitivity(&options.policy)? {
        sentences.push(sensitivity::without_use(&options.policy));
    }
    if options.agents.is_some() && !uses_agents(&options.policy)? {
        sentences.push(agents::without_use(&options.policy));
    }
    Ok(sentences)
}

/// What the two threads start with.
pub(super) struct Scheduling {
    pub(super) policy: ChosenPolicy,
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
        let planner = Planner::start(self.policy.factory, options.plan_limit).map_err(HeadError::failed)?;
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
    use super::*;

    #[test]
    fn flags_without_use_are_named_with_what_would_use_them() {
        let said = |policy: &str, sensitivity: bool, agents: bool| {
            let mut options = HeadOptions::new("state");
            options.policy = policy.into();
            options.sensitivity = sensitivity.then(|| "tables.csv".into());
            options.agents = agents.then(|| "agents".into());
            flags_without_use(&options).unwrap().join("; ")
        };
        assert_eq!(said("fifo", false, false), "");
        assert_eq!(said("maifs", true, true), "");
        assert_eq!(said("hybrid:tune=on", true, false), "");
        let both = said("fifo", true, true);
        assert!(both.contains("--sensitivity has no effect under the policy 'fifo'"), "{both}");
        assert!(both.contains("add tune=on") && both.contains("choose --policy maifs"), "{both}");
        assert!(said("hybrid:tune=on", true, true).starts_with("--agents has no effect"));
    }
}
