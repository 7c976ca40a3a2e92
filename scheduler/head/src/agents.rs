//! Trained agents that decide for the policy `maifs`.
//!
//! They are loaded once, at the start, and given to each new policy. Loading them needs the feature
//! `learned`.

use std::path::Path;
use std::sync::Arc;

use cohabit_policy::maifs::Agents;

use crate::HeadError;
use crate::planner::PolicyFactory;

/// Makes copies of the agents, one for each policy.
pub(crate) type AgentsFactory = Arc<dyn Fn() -> Box<dyn Agents> + Send + Sync>;

/// Loads the agents of `--agents`; there are none without it.
///
/// # Errors
/// Where the directory cannot be read, or holds no usable agents.
pub(crate) fn load_agents(folder: Option<&Path>) -> Result<Option<AgentsFactory>, HeadError> {
    folder.map(load).transpose()
}

#[cfg(feature = "learned")]
fn load(folder: &Path) -> Result<AgentsFactory, HeadError> {
    use cohabit_predict::maifs::StoredAgents;

    let refused = |error: Box<dyn std::error::Error + Send + Sync>| HeadError::Agents(error);
    let stored = StoredAgents::load(folder).map_err(|error| refused(error.into()))?;
    let agents = stored.agents().map_err(|error| refused(error.into()))?;
    tracing::info!(agents = %folder.display(), digest = %stored.card.digest, "agents were loaded");
    Ok(Arc::new(move || Box::new(agents.clone())))
}

#[cfg(not(feature = "learned"))]
fn load(folder: &Path) -> Result<AgentsFactory, HeadError> {
    Err(HeadError::NoAgents(folder.to_owned()))
}

/// Policies that these agents decide for.
pub(crate) fn decided_by(policy: PolicyFactory, agents: Option<AgentsFactory>) -> PolicyFactory {
    let Some(agents) = agents else { return policy };
    Arc::new(move || {
        let mut policy = policy();
        policy.set_agents(agents());
        policy
    })
}

/// That a policy without agents makes no use of trained ones.
pub(crate) fn without_use(policy: &str) -> String {
    format!(
        "--agents has no effect under the policy '{policy}', for which no agents decide: choose --policy maifs, or \
         leave the flag out"
    )
}
