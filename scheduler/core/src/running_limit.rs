//! The limits on what one user, or a project, runs at once.
//!
//! Of the eligible jobs of a limited user a policy sees only as many as may still start, the first ones in
//! the queue. So jobs beyond the limit hold no turn and no reservation that other users would wait for.

use std::collections::BTreeSet;

use cohabit_fair_share::wanted;
use cohabit_types::{Demand, JobId, Principal, Refusal, RefusalCode, Role, counted};

use crate::head::Head;
use crate::share_table::{counted_gpus, gpus};
use crate::user_queues::UserQueues;
use crate::view_tracker::ClusterCapacity;

/// One limit on what somebody runs at once.
struct Limit {
    /// Whose jobs count.
    subject: String,
    amount: LimitedAmount,
    /// The setting that says it.
    setting: &'static str,
    most: u64,
    now: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LimitedAmount {
    Jobs,
    /// In thousandths of a GPU.
    Gpus,
}

impl Limit {
    const fn left(&self) -> u64 {
        self.most.saturating_sub(self.now)
    }

    /// What is counted, for people.
    fn shown(&self) -> String {
        match self.amount {
            LimitedAmount::Jobs => format!("{} runs {}", self.subject, counted(self.now, "job", "jobs")),
            LimitedAmount::Gpus => format!("{} holds {}", self.subject, counted_gpus(self.now)),
        }
    }

    fn most_shown(&self) -> String {
        match self.amount {
            LimitedAmount::Jobs => self.most.to_string(),
            LimitedAmount::Gpus => gpus(self.most),
        }
    }
}

impl Head {
    /// The limits on what a user runs at once: their own, and those of all users of their project together.
    fn running_limits(&self, user: &str) -> impl Iterator<Item = Limit> {
        let table = self.shares.table();
        let usage = self.usage(user);
        let held = |user: &str| self.shares.used().get(user).map_or(0, |used| used.held);
        let own = |amount, setting, most: Option<u64>, now| {
            most.map(|most| Limit { subject: "its user".to_owned(), amount, setting, most, now })
        };
        let mut limits = vec![
            own(LimitedAmount::Jobs, "max-running-jobs", self.config.max_running_jobs, usage.placed),
            own(LimitedAmount::Jobs, "running-jobs", table.user.running.jobs, usage.placed),
            own(LimitedAmount::Gpus, "running-gpus", table.user.running.gpus, held(user)),
        ];
        let project = self.shares.project_of(user).filter(|(_, it)| !it.running.is_unlimited());
        if let Some((name, project)) = project {
            let subject = || format!("project {name}");
            let of_all = |most: Option<u64>, amount, setting, of: &dyn Fn(&str) -> u64| {
                let now = || project.users.iter().map(|user| of(user)).sum();
                most.map(|most| Limit { subject: subject(), amount, setting, most, now: now() })
            };
            let placed = |user: &str| self.usage(user).placed;
            limits.push(of_all(project.running.jobs, LimitedAmount::Jobs, "running-jobs", &placed));
            limits.push(of_all(project.running.gpus, LimitedAmount::Gpus, "running-gpus", &held));
        }
        limits.into_iter().flatten()
    }

    /// Whether anything limits what this user runs at once.
    fn is_limited(&self, user: &str) -> bool {
        self.config.max_running_jobs.is_some()
            || !self.shares.table().user.running.is_unlimited()
            || self.shares.project_of(user).is_some_and(|(_, project)| !project.running.is_unlimited())
    }

    /// The user of a submission, if what the user runs at once is limited. Stores do not count: what runs
    /// already waits for them.
    pub(crate) fn limited_user(&self, number: u64) -> Option<&str> {
        let submission = self.submissions.get(&number);
        let submission = submission.filter(|it| it.role != Role::Admin && !it.is_store())?;
        Some(submission.user.as_str()).filter(|user| self.is_limited(user))
    }

    /// The limited users of these jobs, also of those that have left memory since they changed, and those
    /// who are limited together with them.
    pub(crate) fn limited_users_of(&self, jobs: &BTreeSet<JobId>) -> BTreeSet<&str> {
        if self.config.max_running_jobs.is_none() && !self.shares.limits_somebody() {
            return BTreeSet::new();
        }
        let numbers: BTreeSet<u64> = jobs.iter().map(|job| job.number).collect();
        let archived = |number| self.archive.get(number).map(|summary| summary.user.as_str());
        let own: BTreeSet<&str> = numbers
            .into_iter()
            .filter_map(|number| self.limited_user(number).or_else(|| archived(number)))
            .collect();
        let limited = |user: &&str| {
            let (_, project) = self.shares.project_of(user)?;
            (!project.running.is_unlimited()).then_some(&project.users)
        };
        let together: Vec<&str> = own.iter().filter_map(limited).flatten().map(String::as_str).collect();
        own.into_iter().chain(together).collect()
    }

    /// Why the limits of its user keep a job from starting now.
    pub(crate) fn beyond_running_limit(&self, id: JobId) -> Option<String> {
        let user = self.limited_user(id.number)?;
        let wants = wanted(&self.demand(id));
        let is_beyond = |limit: &Limit| match limit.amount {
            LimitedAmount::Jobs => limit.left() == 0,
            LimitedAmount::Gpus => limit.left() < wants,
        };
        let limit = self.running_limits(user).find(is_beyond)?;
        Some(format!("{}, and {} allows {}", limit.shown(), limit.setting, limit.most_shown()))
    }

    /// Refuses a job that alone is beyond a limit of its user.
    pub(crate) fn check_running_limits(&self, by: &Principal, demand: &Demand) -> Result<(), Refusal> {
        if by.role == Role::Admin {
            return Ok(());
        }
        let wants = wanted(demand);
        let is_beyond = |it: &Limit| it.amount == LimitedAmount::Gpus && it.most < wants;
        match self.running_limits(&by.user).find(is_beyond) {
            None => Ok(()),
            Some(limit) => Err(Refusal::new(
                RefusalCode::Limit,
                format!(
                    "the job needs {}, and {} may hold {} at once ({}): ask for fewer, or ask an admin",
                    counted_gpus(wants),
                    limit.subject.replace("its user", &by.user),
                    limit.most_shown(),
                    limit.setting
                ),
            )),
        }
    }

    /// The eligible jobs of a limited user that a policy sees: as many as may start, in the order of the
    /// queue. One that alone is beyond the limits does not keep the others waiting.
    pub(crate) fn user_window(&self, user: &str, capacity: ClusterCapacity) -> BTreeSet<JobId> {
        let (mut jobs, mut gpus_left, mut most) = (u64::MAX, u64::MAX, u64::MAX);
        for limit in self.running_limits(user) {
            match limit.amount {
                LimitedAmount::Jobs => jobs = jobs.min(limit.left()),
                LimitedAmount::Gpus => {
                    gpus_left = gpus_left.min(limit.left());
                    most = most.min(limit.most);
                }
            }
        }
        let submissions = self.volatile.user_queues.of_user(user);
        let first = submissions.flat_map(|number| self.window(number, capacity));
        let sized = first.map(|job| (job, wanted(&self.demand(job)))).filter(|(_, wants)| *wants <= most);
        let fits = |left: &mut u64, (job, wants): (JobId, u64)| {
            *left = left.checked_sub(wants)?;
            Some(job)
        };
        sized.scan(gpus_left, fits).take(usize::try_from(jobs).unwrap_or(usize::MAX)).collect()
    }

    /// Those of all limited users.
    pub(crate) fn user_windows(&self) -> BTreeSet<JobId> {
        let capacity = self.capacity();
        self.volatile.user_queues.users().flat_map(|user| self.user_window(user, capacity)).collect()
    }

    /// Why the limits keep a job of this user waiting, if they do. A job that is not in the queue comes last.
    pub(crate) fn running_limit_reason(&self, user: &str, job: JobId) -> Option<String> {
        if !self.is_limited(user) {
            return None;
        }
        for limit in self.running_limits(user) {
            let (shown, setting, most) = (limit.shown(), limit.setting, limit.most_shown());
            if limit.now > limit.most {
                return Some(format!("{shown}, more than {setting} allows ({most})"));
            }
            if limit.now == limit.most {
                return Some(format!("{shown}, as many as {setting} allows"));
            }
        }
        if self.user_window(user, self.capacity()).contains(&job) {
            return None;
        }
        let limit = self.beyond_with_those_ahead(user, job)?;
        let (shown, setting, most) = (limit.shown(), limit.setting, limit.most_shown());
        Some(format!("{shown}, and those of its user ahead of it reach {setting} ({most})"))
    }

    /// The limit that the jobs of the user in the window reach together with this one.
    fn beyond_with_those_ahead(&self, user: &str, job: JobId) -> Option<Limit> {
        let window = self.user_window(user, self.capacity());
        let jobs = window.len() as u64;
        let sizes = window.iter().chain(std::iter::once(&job));
        let wants: u64 = sizes
            .filter(|job| self.submissions.contains_key(&job.number))
            .map(|job| wanted(&self.demand(*job)))
            .sum();
        self.running_limits(user).find(|limit| match limit.amount {
            LimitedAmount::Jobs => jobs >= limit.left(),
            LimitedAmount::Gpus => wants > limit.left(),
        })
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
