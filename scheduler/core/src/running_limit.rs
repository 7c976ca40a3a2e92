//! The limit on the jobs that one user runs at once.
//!
//! Of the eligible jobs of a limited user a policy sees only as many as may still start, the first ones in
//! the queue. So jobs beyond the limit hold no turn and no reservation that other users would wait for.

use std::collections::BTreeSet;

use cohabit_types::{JobId, Role, counted};

use crate::head::Head;
use crate::user_queues::UserQueues;
use crate::view_tracker::ClusterCapacity;

impl Head {
    /// The user of a submission, if the number of jobs that the user runs at once is limited. Stores do not
    /// count: what runs already waits for them.
    pub(crate) fn limited_user(&self, number: u64) -> Option<&str> {
        self.config.max_running_jobs?;
        let submission = self.submissions.get(&number);
        let submission = submission.filter(|it| it.role != Role::Admin && !it.is_store())?;
        Some(&submission.user)
    }

    /// The limited users of these jobs, also of those that have left memory since they changed.
    pub(crate) fn limited_users_of(&self, jobs: &BTreeSet<JobId>) -> BTreeSet<&str> {
        if self.config.max_running_jobs.is_none() {
            return BTreeSet::new();
        }
        let numbers: BTreeSet<u64> = jobs.iter().map(|job| job.number).collect();
        let archived = |number| self.archive.get(number).map(|summary| summary.user.as_str());
        numbers
            .into_iter()
            .filter_map(|number| self.limited_user(number).or_else(|| archived(number)))
            .collect()
    }

    /// How many more jobs of the user of this submission may start.
    pub(crate) fn user_slots_left(&self, number: u64) -> u64 {
        self.limited_user(number).map_or(u64::MAX, |user| self.slots_left(user))
    }

    fn slots_left(&self, user: &str) -> u64 {
        let limit = self.config.max_running_jobs.unwrap_or(u64::MAX);
        limit.saturating_sub(self.usage(user).placed)
    }

    /// The eligible jobs of a limited user that a policy sees: as many as may start, in the order of the
    /// queue.
    pub(crate) fn user_window(&self, user: &str, capacity: ClusterCapacity) -> BTreeSet<JobId> {
        let slots_left = usize::try_from(self.slots_left(user)).unwrap_or(usize::MAX);
        let submissions = self.volatile.user_queues.of_user(user);
        submissions.flat_map(|number| self.window(number, capacity)).take(slots_left).collect()
    }

    /// Those of all limited users.
    pub(crate) fn user_windows(&self) -> BTreeSet<JobId> {
        let capacity = self.capacity();
        self.volatile.user_queues.users().flat_map(|user| self.user_window(user, capacity)).collect()
    }

    /// Why the limit keeps a job of this user waiting, if it does. A job that is not in the queue comes last.
    pub(crate) fn running_limit_reason(&self, user: &str, job: JobId) -> Option<String> {
        let limit = self.config.max_running_jobs?;
        let running = self.usage(user).placed;
        let runs = format!("its user runs {}", counted(running, "job", "jobs"));
        if running > limit {
            return Some(format!("{runs}, more than max-running-jobs allows ({limit})"));
        }
        if running == limit {
            return Some(format!("{runs}, as many as max-running-jobs allows"));
        }
        let next = self.user_window(user, self.capacity());
        let is_beyond = !next.contains(&job) && next.len() as u64 == limit - running;
        is_beyond
            .then(|| format!("{runs}, and those of its user ahead of it reach max-running-jobs ({limit})"))
    }

    /// The queues of limited users, as they follow from the eligible jobs.
    pub(crate) fn limited_queues(&self) -> UserQueues {
        let mut queues = UserQueues::default();
        // Members of an array follow each other.
        let mut numbers: Vec<u64> = self.eligible.iter().map(|job| job.number).collect();
        numbers.dedup();
        for number in numbers {
            if let Some(user) = self.limited_user(number) {
                queues.insert(user, self.priority(JobId::new(number)), number);
            }
        }
        queues
    }

    /// Enters a submission into the queue of its user, or takes it out, after its eligible jobs have changed.
    pub(crate) fn update_user_queue(&mut self, number: u64) {
        let Some(user) = self.limited_user(number).map(str::to_owned) else { return };
        let priority = self.priority(JobId::new(number));
        let jobs = JobId::new(number)..=JobId::member(number, u32::MAX);
        match self.eligible.range(jobs).next() {
            Some(_) => self.volatile.user_queues.insert(&user, priority, number),
            None => self.volatile.user_queues.remove(&user, priority, number),
        }
    }
}
