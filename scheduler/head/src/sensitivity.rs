//! Tables of how much cores and host memory speed jobs up, which an operator has measured.
//!
//! They are read once, at the start, and given to each new policy. Reading them needs the feature `learned`.

use std::path::Path;
use std::sync::Arc;

use cohabit_policy::SensitivityProfiles;
use cohabit_types::{Bytes, JobSpec, Refusal, RefusalCode};

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
pub(crate) fn knowing(policy: PolicyFactory, profiles: Arc<SensitivityProfiles>) -> PolicyFactory {
    Arc::new(move || {
        let mut policy = policy();
        policy.set_sensitivity(&profiles);
        policy
    })
}

/// That a policy which tunes no shares makes no use of tables.
pub(crate) fn without_use(policy: &str) -> String {
    format!(
        "--sensitivity has no effect under the policy '{policy}', which tunes no shares: add tune=on, as in \
         hybrid:tune=on"
    )
}

/// Refuses a job whose cores or memory may change, but that may be left with less memory than jobs like it
/// train with.
///
/// # Errors
/// The least memory that its table has speeds for.
pub(crate) fn check_range(profiles: &SensitivityProfiles, spec: &JobSpec) -> Result<(), Refusal> {
    let demand = &spec.demand;
    let is_limited = demand.is_fungible() && demand.memory > Bytes::ZERO;
    let Some((name, table)) = is_limited.then(|| profiles.find_for(spec)).flatten() else { return Ok(()) };
    let floor = table.memory().first().copied().unwrap_or_default();
    let least = Bytes((floor * f64::from(demand.devices().max(1))).ceil() as u64);
    if demand.memory >= least {
        return Ok(());
    }
    // Rounded up, for a rounded amount could be too little again.
    let unit = if least.0 >= 1 << 30 { 1 << 30 } else { 1 << 20 };
    let ask = Bytes(least.0.div_ceil(unit) * unit);
    Err(Refusal::new(
        RefusalCode::Invalid,
        format!(
            "its host memory begins at {}, and jobs known as '{name}' do not train with less than {least}, the \
             first amount of their table (--sensitivity of the head): begin the range with {ask}",
            demand.memory
        ),
    ))
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

        fn dry_run_on(
            &mut self,
            _: &View,
            _: &PendingJob,
            _: &cohabit_policy::FreeNodes<'_>,
        ) -> Result<Proposal, Shortage> {
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
        let new_policy = knowing(Arc::new(noting), Arc::new(profiles));
        drop((new_policy(), new_policy()));
        assert_eq!(*told.lock().unwrap(), ["image", "image"]);
    }

    #[test]
    fn without_the_flag_there_are_no_tables() {
        assert!(read_profiles(None).unwrap().is_empty());
    }
}
