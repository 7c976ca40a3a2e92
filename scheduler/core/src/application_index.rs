//! Which applications have not ended, and which children they have.

use std::collections::{BTreeMap, BTreeSet};

use cohabit_types::{Entrypoint, JobId, RunnerRole, RunnerWork};

use crate::submission::SubmissionState;

/// The applications that have not ended; follows from the submissions and the live jobs.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct ApplicationIndex {
    /// The root job of each user and name.
    roots: BTreeMap<(String, String), u64>,
    /// The children of each root job.
    children: BTreeMap<u64, BTreeSet<JobId>>,
    /// The children that are stores.
    stores: BTreeSet<JobId>,
    /// The mains of the live attempt of each root job that are in memory, also those that have ended.
    mains: BTreeMap<u64, BTreeSet<JobId>>,
}

impl ApplicationIndex {
    /// Those of these live jobs.
    pub(crate) fn of<'s>(live: impl Iterator<Item = (JobId, &'s SubmissionState)>) -> ApplicationIndex {
        let mut index = ApplicationIndex::default();
        live.for_each(|(id, submission)| index.insert(id, submission));
        index
    }

    /// A job of this submission has not ended, or no longer.
    pub(crate) fn insert(&mut self, id: JobId, submission: &SubmissionState) {
        match &submission.spec.entrypoint {
            Entrypoint::Command(_) => {}
            Entrypoint::Application(_) => {
                self.roots.insert((submission.user.clone(), submission.spec.name.clone()), id.number);
            }
            Entrypoint::Runner(work) => {
                self.children.entry(work.application.job.number).or_default().insert(id);
                if work.role == RunnerRole::Store {
                    self.stores.insert(id);
                }
            }
        }
    }

    /// A job of this submission has ended.
    pub(crate) fn remove(&mut self, id: JobId, submission: &SubmissionState) {
        match &submission.spec.entrypoint {
            Entrypoint::Command(_) => {}
            Entrypoint::Application(_) => {
                let name = (submission.user.clone(), submission.spec.name.clone());
                if self.roots.get(&name) == Some(&id.number) {
                    self.roots.remove(&name);
                }
            }
            Entrypoint::Runner(work) => {
                let root = work.application.job.number;
                self.stores.remove(&id);
                if let Some(children) = self.children.get_mut(&root) {
                    children.remove(&id);
                }
                self.children.retain(|number, children| *number != root || !children.is_empty());
            }
        }
    }

    /// A job of this submission belongs to the live attempt of its root. If it runs `main`, that is
    /// remembered until the attempt ends.
    pub(crate) fn insert_main(&mut self, id: JobId, submission: &SubmissionState) {
        if let Some(root) = root_of_main(submission) {
            self.mains.entry(root).or_default().insert(id);
        }
    }

    /// A job of this submission is no longer in memory.
    pub(crate) fn forget_main(&mut self, id: JobId, submission: &SubmissionState) {
        let Some(root) = root_of_main(submission) else { return };
        if let Some(mains) = self.mains.get_mut(&root) {
            mains.remove(&id);
            if mains.is_empty() {
                self.mains.remove(&root);
            }
        }
    }

    /// The live attempt of a root job has ended.
    pub(crate) fn forget_mains(&mut self, root: JobId) {
        self.mains.remove(&root.number);
    }

    /// The mains of the live attempt of a root job.
    pub(crate) fn mains(&self, root: JobId) -> impl Iterator<Item = JobId> + '_ {
        self.mains.get(&root.number).into_iter().flatten().copied()
    }

    /// The root job of the application of this user with this name.
    pub(crate) fn root(&self, user: &str, name: &str) -> Option<JobId> {
        self.roots.get(&(user.to_owned(), name.to_owned())).map(|number| JobId::new(*number))
    }

    /// The children of a root job.
    pub(crate) fn children(&self, root: JobId) -> impl Iterator<Item = JobId> + '_ {
        self.children.get(&root.number).into_iter().flatten().copied()
    }

    /// The stores of all applications.
    pub(crate) fn stores(&self) -> impl Iterator<Item = JobId> + '_ {
        self.stores.iter().copied()
    }

    /// The root jobs of all users.
    pub(crate) fn roots(&self) -> impl Iterator<Item = JobId> + '_ {
        self.roots.values().map(|number| JobId::new(*number))
    }

    /// The root jobs of this user, in the order of their names.
    pub(crate) fn roots_of(&self, user: &str) -> impl Iterator<Item = JobId> {
        let of_user = self.roots.range((user.to_owned(), String::new())..);
        of_user.take_while(move |((owner, _), _)| owner == user).map(|(_, number)| JobId::new(*number))
    }
}

/// The root job of a main.
fn root_of_main(submission: &SubmissionState) -> Option<u64> {
    match &submission.spec.entrypoint {
        Entrypoint::Runner(RunnerWork { application, role: RunnerRole::Main, .. }) => {
            Some(application.job.number)
        }
        Entrypoint::Command(_) | Entrypoint::Application(_) | Entrypoint::Runner(_) => None,
    }
}
