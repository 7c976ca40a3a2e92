//! Tables of how much cores and host memory speed jobs up, which an operator has measured.
//!
//! They are read once, at the start, and given to each new policy. Reading them needs the feature `learned`.

use std::path::Path;
use std::sync::Arc;

use cohabit_policy::SensitivityProfiles;

use crate::HeadError;
use crate::planner::PolicyFactory;

/// Reads the tables of `--sensitivity`; there are none without it.
///
/// # Errors
/// Where the file cannot be read, or is wrong.
pub(crate) fn read_profiles(path: Option<&Path>) -> Result<SensitivityProfiles, HeadError> {
    path.map_or_else(|| Ok(SensitivityProfiles::default()), read)
}

#[cfg(feature = "learned")]
fn read(path: &Path) -> Result<SensitivityProfiles, HeadError> {
    let read = cohabit_predict::sensitivity::read_sensitivity(path);
    let (tables, left_out) = read.map_err(|error| HeadError::Sensitivity(error.into()))?;
    for sentence in left_out {
        tracing::warn!("{sentence}");
    }
    let mut profiles = SensitivityProfiles::default();
    tables.into_iter().for_each(|(name, table)| profiles.insert(name, table));
    tracing::info!(tables = %path.display(), profiles = profiles.iter().count(), "sensitivity was read");
    Ok(profiles)
}

#[cfg(not(feature = "learned"))]
fn read(path: &Path) -> Result<SensitivityProfiles, HeadError> {
    Err(HeadError::NoSensitivity(path.to_owned()))
}

/// Policies that know these tables.
pub(crate) fn knowing(policy: PolicyFactory, profiles: SensitivityProfiles) -> PolicyFactory {
    let profiles = Arc::new(profiles);
    Arc::new(move || {
        let mut policy = policy();
        policy.set_sensitivity(&profiles);
        policy
    })
}

/// Says that a policy which tunes no shares makes no use of tables.
pub(crate) fn warn_without_use(policy: &str) {
    tracing::warn!(
        "--sensitivity has no effect under the policy '{policy}', which tunes no shares: add tune=on, as in \
         hybrid:tune=on"
    );
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use cohabit_policy::{
        PendingJob, PendingReason, Plan, Policy, Proposal, SensitivityTable, Shortage, View, ViewChange,
    };
    use cohabit_types::Bytes;

    use super::*;

    /// Notes the profiles that it is told.
    struct NotingPolicy(Arc<Mutex<Vec<String>>>);

    impl Policy for NotingPolicy {
        fn learn(&mut self, _: &View, _: &[ViewChange]) {}

        fn explain_pending(&mut self, _: &View) -> Vec<PendingReason> {
            Vec::new()
        }

        fn plan(&mut self, _: &View) -> Plan {
            Plan::default()
        }

        fn dry_run(&mut self, _: &View, _: &PendingJob) -> Result<Proposal, Shortage> {
            unreachable!("no test asks for it")
        }

        fn set_sensitivity(&mut self, profiles: &Arc<SensitivityProfiles>) {
            self.0.lock().unwrap().extend(profiles.iter().map(|(name, _)| name.to_owned()));
        }
    }

    #[test]
    fn each_new_policy_knows_the_tables() {
        let told = Arc::<Mutex<Vec<String>>>::default();
        let noting = {
            let told = Arc::clone(&told);
            move || Box::new(NotingPolicy(Arc::clone(&told))) as Box<dyn Policy>
        };
        let table = SensitivityTable::new(vec![1.0], &[Bytes::ZERO], &[vec![1.0]]).unwrap();
        let mut profiles = SensitivityProfiles::default();
        profiles.insert("image", Arc::new(table));
        let new_policy = knowing(Arc::new(noting), profiles);
        drop((new_policy(), new_policy()));
        assert_eq!(*told.lock().unwrap(), ["image", "image"]);
    }

    #[test]
    fn without_the_flag_there_are_no_tables() {
        assert!(read_profiles(None).unwrap().is_empty());
    }
}
