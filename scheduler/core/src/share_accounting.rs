//! What attempts keep from others, and what a policy is told of the users of changed jobs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cohabit_fair_share::{RecentUse, UseTerms, held_of_device, held_of_host};
use cohabit_policy::{SharesChange, ViewChange};
use cohabit_types::{Bytes, Demand, HeldFor, HostShare, JobId, JobSpec, Placement, ShareTable};

use crate::head::Head;
use crate::job::AttemptRef;
use crate::node::Node;

impl Head {
    /// A release without fair share did not note what attempts hold. What they used before this is not known.
    pub(crate) fn seed_shares(&mut self) {
        let ids: Vec<JobId> = self.jobs.keys().copied().collect();
        for id in ids {
            let demand = self.demand(id);
            let held = |it: AttemptRef<'_>| self.held_by(&demand, &it.attempt.placement);
            let holds: Vec<u64> = self.jobs[&id].attempts().map(held).collect();
            if holds.is_empty() {
                continue;
            }
            let submission = &self.submissions[&id.number];
            let (user, terms) = (submission.user.clone(), UseTerms::of(&submission.spec));
            let Some(job) = self.job_mut(id) else { continue };
            job.attempts_mut().zip(holds).for_each(|(attempt, holds)| attempt.holds = holds);
            if let Some((since, holds)) = job.live_attempt().map(|live| (live.started_at, live.holds)) {
                self.shares.take(&user, holds, terms, since);
            }
        }
    }

    /// On what terms users hold what they hold follows from their jobs: an early snapshot does not say it.
    pub(crate) fn count_terms(&mut self) {
        let mut held: BTreeMap<&str, RecentUse> = BTreeMap::new();
        for id in &self.active {
            if let (Some(job), Some(submission)) = (self.jobs.get(id), self.submissions.get(&id.number))
                && let Some(attempt) = job.live_attempt()
            {
                held.entry(&submission.user).or_default().take(attempt.holds, UseTerms::of(&submission.spec));
            }
        }
        self.shares.set_terms(&held);
    }

    /// What a job keeps from others at this placement, in thousandths of a GPU.
    pub(crate) fn held_by(&self, demand: &Demand, placement: &Placement) -> u64 {
        let parts = placement.parts.iter().filter_map(|part| Some((part, self.nodes.get(&part.node)?)));
        let held = parts.map(|(part, node)| {
            let devices = node.devices.iter().filter(|it| part.devices.contains(&it.device.id));
            let of_devices: u64 = devices
                .map(|it| {
                    let held = held_of_device(demand, part.share, it.device.memory);
                    held * u64::from(self.shares.table().price(&it.device.model)) / 1_000
                })
                .sum();
            of_devices.max(host_part(node, demand, part.host_share(demand)))
        });
        held.sum()
    }

    /// For how long a job keeps what it takes, where that decides what it gets.
    pub(crate) fn held_for(&self, spec: &JobSpec) -> HeldFor {
        match self.config.fair_share && self.shares.table().asks_what_is_given_back() {
            false => HeldFor::Unasked,
            true if spec.can_be_given_back() => HeldFor::GivenBack,
            true => HeldFor::Unlimited,
        }
    }

    /// What became known of the users of these jobs, for a policy that knows `table`.
    pub(crate) fn share_changes(
        &self,
        table: &mut Option<Arc<ShareTable>>,
        jobs: impl Iterator<Item = JobId>,
    ) -> Vec<ViewChange> {
        if !self.config.fair_share {
            return Vec::new();
        }
        let used = |user: &str, used: &RecentUse| SharesChange::Used(user.to_owned(), *used);
        let changes: Vec<SharesChange> = if table.as_ref() == Some(self.shares.table()) {
            let mut last = None;
            let numbers = jobs.map(|job| job.number).filter(|number| last.replace(*number) != Some(*number));
            let submissions = numbers.filter_map(|number| self.submissions.get(&number));
            let users: BTreeSet<&str> = submissions.map(|it| it.user.as_str()).collect();
            let known = users.into_iter().filter_map(|user| Some((user, self.shares.used().get(user)?)));
            known.map(|(user, it)| used(user, it)).collect()
        } else {
            // Under another table, what everybody used fades in another way.
            *table = Some(Arc::clone(self.shares.table()));
            let all = self.shares.used().iter().map(|(user, it)| used(user, it));
            std::iter::once(SharesChange::Table(Arc::clone(self.shares.table()))).chain(all).collect()
        };
        changes.into_iter().map(ViewChange::Shares).collect()
    }
}

/// What cores and host memory keep of a node.
fn host_part(node: &Node, demand: &Demand, share: HostShare) -> u64 {
    if demand.claims_host() {
        let memory = [share.memory, Bytes(node.memory.0)];
        held_of_host([share.cpus, node.cpus], memory, node.devices.len())
    } else {
        0
    }
}
