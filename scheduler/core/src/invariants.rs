//! The invariants of the head's state: what must hold between any two events, beyond what the types ensure.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use cohabit_fair_share::{RecentUse, UseTerms};
use cohabit_types::{Bytes, HostShare, JobId, JobState, NodeId, Share};

use crate::head::Head;
use crate::job::Job;
use crate::node::{DeviceUse, Node};
use crate::reason::listed;
use crate::restored_backup::RestoredBackup;
use crate::submission::SubmissionState;
use crate::user_usage::Usage;

/// An invariant that does not hold: a fault of the head itself, or of what it was restored from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokenInvariant(String);

impl fmt::Display for BrokenInvariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BrokenInvariant {}

/// Nothing, or the sentence that says which invariant is broken.
type Checked = Result<(), BrokenInvariant>;

/// Fails with the sentence unless the condition holds.
fn ensure(holds: bool, sentence: impl FnOnce() -> String) -> Checked {
    if holds { Ok(()) } else { Err(BrokenInvariant(sentence())) }
}

impl Head {
    /// Checks the invariants; passes once over the state, in the order of the jobs, and sorts the queue.
    ///
    /// # Errors
    /// The first invariant that does not hold: which job or node, what was expected, and what was found.
    pub fn check(&self) -> Result<(), BrokenInvariant> {
        for (id, job) in &self.jobs {
            check_attempts(*id, job, self.restored_backup.as_ref())?;
        }
        self.check_sets()?;
        self.check_submissions()?;
        self.check_archive()?;
        let usage = Usage::of(&self.submissions, &self.jobs, &self.archive);
        ensure(usage == self.volatile.usage, || {
            format!("users have {usage:?} in memory, but {:?} is counted", self.volatile.usage)
        })?;
        let applications = self.live_applications();
        ensure(applications == self.volatile.applications, || {
            let found = &self.volatile.applications;
            format!("the live applications are {applications:?}, but {found:?} are known")
        })?;
        let is_missed = |id: &NodeId, node: &Node| node.is_lost() && !self.volatile.lost_nodes.contains(id);
        let missed = self.nodes.iter().find(|(id, node)| is_missed(id, node));
        ensure(missed.is_none(), || format!("a lost node is not counted among the lost: {missed:?}"))?;
        let fungible = self.live_fungible();
        ensure(fungible == self.volatile.fungible, || {
            let (expected, found) = (names(&fungible), names(&self.volatile.fungible));
            format!("the jobs whose cores may change are {expected}, but {found} are known")
        })?;
        self.check_prefetched()?;
        self.check_children()?;
        self.check_running_limit()?;
        self.check_held_shares()?;
        self.check_nodes()
    }

    /// What was ordered in advance follows something that runs, or that was itself ordered in advance, and
    /// waits for nothing else.
    fn check_prefetched(&self) -> Checked {
        let expected = self.all_followers();
        ensure(self.volatile.followers == expected, || {
            format!("{expected:?} were ordered in advance, but {:?} are known", self.volatile.followers)
        })?;
        for (after, id) in &self.volatile.followers {
            let before = self.jobs.get(&after.job);
            let runs = before.and_then(|job| job.live_attempt()).is_some_and(|it| it.number == after.attempt);
            let waits = self.prefetched(after.job).is_some_and(|it| it.attempt.number == after.attempt);
            ensure(runs || waits, || format!("job {id} is to follow {after}, which has ended"))?;
            ensure(!self.eligible.contains(id), || format!("job {id} is to follow {after}, and is queued"))?;
        }
        Ok(())
    }

    /// No child of an application waits, or runs on, without the attempt of its root, or where it may not.
    fn check_children(&self) -> Checked {
        for id in &self.active {
            let parent = self.submissions.get(&id.number).and_then(|it| it.spec.entrypoint.parent());
            let (Some(parent), Some(job)) = (parent, self.jobs.get(id)) else { continue };
            if job.stop_requested().is_some() {
                continue;
            }
            let root = self.jobs.get(&parent.job).and_then(|root| root.live_attempt());
            let root = root.filter(|attempt| attempt.number == parent.attempt);
            ensure(root.is_some(), || {
                format!("job {id} goes on, but its application {parent} does not run")
            })?;
            let checked = job.live_attempt().map_or(Ok(()), |it| self.check_node_of_child(*id, it));
            checked.map_err(BrokenInvariant)?;
        }
        Ok(())
    }

    /// No user runs more jobs than allowed, unless the limit was lowered after they had started.
    fn check_running_limit(&self) -> Checked {
        let expected = self.limited_queues();
        ensure(self.volatile.user_queues == expected, || {
            let found = &self.volatile.user_queues;
            format!("the queues of limited users are {found:?} instead of {expected:?}")
        })?;
        let Some(limit) = self.config.max_running_jobs else { return Ok(()) };
        for id in &self.active {
            let Some(attempt) = self.jobs.get(id).and_then(|job| job.live_attempt()) else { continue };
            let Some(user) = self.limited_user(id.number) else { continue };
            let running = self.usage(user).placed;
            let ordered_at = attempt.ordered_at.unwrap_or(attempt.started_at);
            ensure(running <= limit || ordered_at <= self.started_at, || {
                format!("user {user} runs {running} jobs, job {id} among them, but only {limit} may run")
            })?;
        }
        Ok(())
    }

    /// The queue is the eligible jobs in their order.
    fn check_queue(&self) -> Checked {
        let of = |id: &JobId| (Reverse(self.priority(*id)), *id);
        let mut expected: Vec<(Reverse<i32>, JobId)> = self.eligible.iter().map(of).collect();
        expected.sort_unstable();
        let mut found = self.volatile.queue.iter();
        for (place, (Reverse(priority), id)) in (1..).zip(expected) {
            let there = found.next();
            ensure(there == Some((priority, id)), || {
                let there = there.map_or("nothing".to_owned(), |(priority, id)| titled(priority, id));
                format!("place {place} of the queue has {there} instead of {}", titled(priority, id))
            })?;
        }
        let surplus = found.next();
        ensure(surplus.is_none(), || {
            let surplus = surplus.map(|(priority, id)| titled(priority, id)).unwrap_or_default();
            format!("the queue has {surplus}, which is not eligible")
        })
    }

    fn check_sets(&self) -> Checked {
        self.check_queue()?;
        for id in &self.eligible {
            let waiting = self.jobs.get(id).and_then(|job| job.waiting());
            let is_free = waiting.is_some_and(|it| !it.held && !it.has_dependencies);
            ensure(is_free, || {
                let state = self.jobs.get(id).map_or("unknown", |job| job.state().word());
                format!("job {id} is queued as eligible, but it is {state}, or waits for other jobs")
            })?;
        }
        let mut active = self.active.iter();
        for (id, job) in &self.jobs {
            let waits = job.waiting().is_some_and(|waiting| waiting.has_dependencies);
            ensure(!waits || self.dependencies.count(id.number) > 0, || {
                format!("job {id} waits for the end of others, but all of them have ended")
            })?;
            let (state, is_listed) = (job.state(), |listed| if listed { "is" } else { "is not" });
            match job.ended() {
                None => ensure(active.next() == Some(id), || {
                    format!(
                        "job {id} is {state}, and it {} in the set of active jobs",
                        is_listed(self.active.contains(id))
                    )
                })?,
                Some(end) => ensure(self.ended.contains(&(end.at, *id)), || {
                    format!("job {id} is {state}, but the set of ended jobs does not have it")
                })?,
            }
        }
        ensure(self.ended.len() + self.active.len() == self.jobs.len(), || {
            let (active, ended, jobs) = (self.active.len(), self.ended.len(), self.jobs.len());
            format!("there are {jobs} jobs, but {active} active and {ended} ended ones")
        })
    }

    /// Every job has its submission, and the counts of a submission are those of its jobs.
    fn check_submissions(&self) -> Checked {
        let mut jobs = self.jobs.iter().peekable();
        for (number, submission) in &self.submissions {
            let mut counts: BTreeMap<JobState, u64> = BTreeMap::new();
            while let Some((_, job)) = jobs.next_if(|(id, _)| id.number == *number) {
                *counts.entry(job.state()).or_default() += 1;
            }
            check_submission(*number, submission, &counts)?;
        }
        ensure(jobs.peek().is_none(), || {
            let without = jobs.peek().map(|(id, _)| id.to_string()).unwrap_or_default();
            format!("job {without} has no submission")
        })
    }

    /// What has ended is in memory or in the archive, and known to the clock that moves it.
    fn check_archive(&self) -> Checked {
        let expected = self.all_ended_submissions();
        ensure(self.ended_submissions == expected, || {
            let found = &self.ended_submissions;
            format!("the submissions that have ended are {expected:?}, but the head lists {found:?}")
        })?;
        ensure(self.archive.is_consistent(), || {
            "the archive does not list its submissions by their ends".to_owned()
        })?;
        let doubled = self.archive.iter().find(|(number, _)| self.submissions.contains_key(number));
        ensure(doubled.is_none(), || {
            let number = doubled.map(|(number, _)| number).unwrap_or_default();
            format!("submission {number} is in memory and in the archive")
        })
    }

    /// What a node's ledger says is the sum of what live attempts hold.
    fn check_nodes(&self) -> Checked {
        let mut holders: BTreeMap<NodeId, (HostShare, Vec<JobId>)> = BTreeMap::new();
        for id in &self.active {
            let (Some(job), Some(submission)) = (self.jobs.get(id), self.submissions.get(&id.number)) else {
                continue;
            };
            let Some(attempt) = job.live_attempt() else { continue };
            for part in &attempt.placement.parts {
                ensure(self.nodes.contains_key(&part.node), || {
                    format!("job {id} is placed on node {}, which is unknown", part.node)
                })?;
                let (held, jobs) = holders.entry(part.node).or_default();
                *held = held.plus(part.host_share(&submission.spec.demand));
                jobs.push(*id);
            }
        }
        for (id, node) in &self.nodes {
            let (held, jobs) = holders.remove(id).unwrap_or_default();
            self.check_node(node, held, &jobs)?;
        }
        Ok(())
    }

    /// What users hold is the sum of what their live attempts hold.
    fn check_held_shares(&self) -> Checked {
        let mut held: BTreeMap<&str, RecentUse> = BTreeMap::new();
        for id in &self.active {
            let (Some(job), Some(submission)) = (self.jobs.get(id), self.submissions.get(&id.number)) else {
                continue;
            };
            if let Some(attempt) = job.live_attempt() {
                held.entry(&submission.user).or_default().take(attempt.holds, UseTerms::of(&submission.spec));
            }
        }
        for (user, used) in self.shares.used() {
            let amounts = |it: &RecentUse| [it.held, it.low, it.high, it.fixed];
            let expected = amounts(&held.remove(user.as_str()).unwrap_or_default());
            ensure(amounts(used) == expected, || {
                let booked = amounts(used);
                format!(
                    "the jobs of {user} hold {expected:?} thousandths of a GPU, but {booked:?} are booked"
                )
            })?;
        }
        held.retain(|_, it| it.held > 0);
        ensure(held.is_empty(), || format!("nothing is booked for {held:?}"))
    }

    fn check_node(&self, node: &Node, held: HostShare, jobs: &[JobId]) -> Checked {
        let name = &node.name;
        let booked = HostShare { cpus: node.cpus_used, memory: node.memory_used };
        ensure(booked == held, || {
            format!("the jobs on node {name} hold {held}, but its ledger says {booked}")
        })?;
        ensure(node.jobs.iter().eq(jobs), || {
            let (expected, found) = (names(jobs), names(&node.jobs));
            format!("the jobs on node {name} are {expected}, but its ledger says {found}")
        })?;
        node.devices.iter().try_for_each(|device| self.check_device(name, device))
    }

    fn check_device(&self, node: &str, device: &DeviceUse) -> Checked {
        let (id, used, memory_used) = (&device.device.id, device.used, device.memory_used);
        ensure(used <= Share::WHOLE, || {
            format!("device {id} of node {node} is used at {used}, more than the whole")
        })?;
        ensure((used == Share(0)) == device.jobs.is_empty(), || {
            format!("device {id} of node {node} is used at {used}, but its jobs are {}", names(&device.jobs))
        })?;
        let memory = device.device.memory;
        ensure(memory.is_none_or(|memory| memory_used <= memory), || {
            format!(
                "device {id} of node {node} has {memory_used} of memory in use, but only {}",
                memory.unwrap_or_default()
            )
        })?;
        let is_known =
            |job: &JobId| self.jobs.contains_key(job) && self.submissions.contains_key(&job.number);
        ensure(device.jobs.iter().all(is_known), || {
            format!(
                "device {id} of node {node} is held by a job that is unknown, one of {}",
                names(&device.jobs)
            )
        })?;
        let claimed: Bytes = device.jobs.iter().filter_map(|job| self.demand(*job).gpu_memory).sum();
        ensure(memory_used == claimed, || {
            format!(
                "the jobs on device {id} of node {node} claim {claimed}, but its ledger says {memory_used}"
            )
        })
    }
}

/// A job in the queue.
fn titled(priority: i32, id: JobId) -> String {
    format!("job {id} of priority {priority}")
}

/// Job ids, or 'none'.
fn names<'j>(jobs: impl IntoIterator<Item = &'j JobId>) -> String {
    Some(listed(jobs)).filter(|names| !names.is_empty()).unwrap_or_else(|| "none".to_owned())
}

/// Numbers of attempts follow one another, except where a backup was restored in between.
fn check_attempts(id: JobId, job: &Arc<Job>, restored: Option<&RestoredBackup>) -> Checked {
    let mut expected = job.attempts().next().map_or(1, |it| it.attempt.number);
    for it in job.attempts() {
        let (number, is_live) = (it.attempt.number, it.is_live());
        ensure(number == expected || (restored.is_some() && number > expected), || {
            format!("attempt {expected} of job {id} has the number {number}")
        })?;
        expected = number.saturating_add(1);
        let has_live_ranks = it.attempt.ranks.iter().any(|rank| rank.is_live());
        ensure(has_live_ranks == is_live, || {
            let (attempt, ranks) = (
                if is_live { "is live" } else { "ended" },
                if has_live_ranks { "a rank" } else { "no rank" },
            );
            format!("attempt {number} of job {id} {attempt}, but {ranks} of it is live")
        })?;
    }
    Ok(())
}

fn check_submission(number: u64, submission: &SubmissionState, counts: &BTreeMap<JobState, u64>) -> Checked {
    let members = submission.spec.array.as_ref().map_or(1, |array| array.len());
    // Members that ended long ago are forgotten one by one, and still count.
    if counts.values().sum::<u64>() == members {
        ensure(submission.state_counts == *counts, || {
            let (expected, found) = (state_names(counts), state_names(&submission.state_counts));
            format!("the jobs of submission {number} are {expected}, but it counts {found}")
        })?;
    }
    let limit = submission.spec.array.as_ref().and_then(|array| array.at_once);
    let placed = submission.placed();
    ensure(limit.is_none_or(|limit| placed <= u64::from(limit)), || {
        format!("array {number} runs {placed} members at once, but only {} may", limit.unwrap_or_default())
    })
}

/// How many jobs are in each state, or 'none'.
fn state_names(counts: &BTreeMap<JobState, u64>) -> String {
    let names: Vec<String> = counts.iter().map(|(state, count)| format!("{count} {state}")).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
