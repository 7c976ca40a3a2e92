//! One copy in memory of what is equal: many jobs of a user differ in nothing but their number, and a
//! specification takes more than a kilobyte.
//!
//! Only the latest of each user is compared: that finds the jobs that one loop submits, at the cost of one
//! comparison for each submission.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use cohabit_policy::JobTraits;
use cohabit_types::JobSpec;

use crate::submission::SubmissionState;

/// The latest specification of each user, and the latest traits, as long as a job has them.
#[derive(Debug, Default, Clone)]
pub(crate) struct SpecPool {
    specs: BTreeMap<String, Weak<JobSpec>>,
    traits: BTreeMap<String, Weak<JobTraits>>,
}

impl SpecPool {
    /// Lets a submission share the specification of the latest one of its user, if they are equal.
    pub(crate) fn share(&mut self, submission: &mut SubmissionState) {
        share(&mut self.specs, &submission.user, &mut submission.spec);
    }

    /// The same for submissions that may be shared with others, which stay as they are.
    pub(crate) fn share_all<'s>(&mut self, of: impl IntoIterator<Item = &'s mut Arc<SubmissionState>>) {
        of.into_iter().filter_map(Arc::get_mut).for_each(|submission| self.share(submission));
    }

    /// These traits of a job of this user, shared with those of the latest job of the user if they are equal.
    pub(crate) fn shared_traits(&mut self, traits: JobTraits) -> Arc<JobTraits> {
        let mut traits = Arc::new(traits);
        let user = traits.user.clone();
        share(&mut self.traits, &user, &mut traits);
        traits
    }
}

fn share<T: PartialEq>(latest: &mut BTreeMap<String, Weak<T>>, user: &str, new: &mut Arc<T>) {
    let Some(known) = latest.get_mut(user) else {
        latest.insert(user.to_owned(), Arc::downgrade(new));
        return;
    };
    match known.upgrade().filter(|latest| **latest == **new) {
        Some(latest) => *new = latest,
        None => *known = Arc::downgrade(new),
    }
}

#[cfg(test)]
mod tests {
    use cohabit_types::{Principal, Role, Submit, Time};

    use super::*;

    fn submission(user: &str, program: &str) -> SubmissionState {
        let by = Principal { user: user.to_owned(), account: None, role: Role::User };
        let spec = JobSpec::command(vec![program.to_owned()], "/tmp".to_owned());
        SubmissionState::new(&by, Submit { spec, idempotency_key: None, estimate: None }, Time::EPOCH)
    }

    #[test]
    fn a_specification_is_shared_with_an_equal_one_before_it() {
        let mut pool = SpecPool::default();
        let mut submissions =
            [submission("ada", "a"), submission("ben", "a"), submission("ada", "a"), submission("ada", "b")];
        submissions.iter_mut().for_each(|it| pool.share(it));
        let [ada, ben, again, other] = &submissions;
        assert!(Arc::ptr_eq(&ada.spec, &again.spec));
        assert!(!Arc::ptr_eq(&ada.spec, &ben.spec) && !Arc::ptr_eq(&ada.spec, &other.spec));
    }

    #[test]
    fn a_submission_that_others_have_too_stays_as_it_is() {
        let mut pool = SpecPool::default();
        let mut submissions = [submission("ada", "a"), submission("ada", "a")].map(Arc::new);
        let elsewhere = Arc::clone(&submissions[1]);
        pool.share_all(&mut submissions);
        assert!(!Arc::ptr_eq(&submissions[0].spec, &elsewhere.spec));
    }
}
