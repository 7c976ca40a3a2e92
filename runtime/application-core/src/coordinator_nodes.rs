//! Nodes come and go: processes that connect from further ones, their stores, and what follows from a lost
//! one.

use cohabit_types::{JobId, RankId, Rendezvous};

use crate::coordinator::Coordinator;
use crate::coordinator_effect::CoordinatorEffect;
use crate::fetches::NextStore;
use crate::held::HeldId;
use crate::holders::Unheld;
use crate::ids::NodeNumber;
use crate::nodes::StoreChange;

impl Coordinator {
    /// A member has connected, for the first time or again; `node` is the name of its node at the head. On a
    /// further node it begins when the store there listens.
    pub fn connected(&mut self, member: RankId, node: &str, effects: &mut Vec<CoordinatorEffect>) {
        let from = effects.len();
        if self.admits(member) {
            let node = if self.members.insert(member) {
                self.nodes.place(member, node, effects)
            } else {
                self.nodes.of(member)
            };
            self.nodes.provide_store(node, effects);
            if self.nodes.given_up(node).is_some() {
                self.abandon(node, &[member], effects);
            }
            self.construct(member.job(), effects);
        } else {
            effects.push(CoordinatorEffect::Close { member });
        }
        self.nodes.introduce(from, effects);
    }

    /// The head has answered the submission of a store: with the job, or with the text of its refusal.
    pub fn store_submitted(
        &mut self,
        node: NodeNumber,
        result: Result<JobId, String>,
        effects: &mut Vec<CoordinatorEffect>,
    ) {
        let from = effects.len();
        let job = result.as_ref().ok().copied();
        let change = self.nodes.submitted(node, result);
        if let Some(job) = job {
            self.claim(job, effects);
            self.construct(job, effects);
        }
        let mut unneeded = Vec::new();
        let unheld = self.store_changed(change, &mut unneeded, effects);
        self.task_runners.balance_all(&mut self.ceiling, effects);
        self.settle(unneeded, unheld, effects);
        self.seek_missed(effects);
        self.nodes.introduce(from, effects);
    }

    /// Nothing was heard of a member for some time, nor could it be reached. If it is the store of a further
    /// node, that is lost: its processes that run tasks are treated as ended, and let in no more. Actors
    /// there end when the head says so.
    pub fn member_silent(&mut self, member: RankId, effects: &mut Vec<CoordinatorEffect>) {
        let from = effects.len();
        let Some(node) = self.nodes.of_store(member) else { return };
        self.nodes.silence(node);
        let mut unheld = self.expel(member, effects).0;
        effects.push(CoordinatorEffect::CancelRunner { job: member.job() });
        let name = self.nodes.name(node);
        let why = format!("nothing is heard of node {name}, on which it runs");
        for other in self.members_on(node) {
            // None of them makes a lost object again.
            self.lineages.member_gone(other);
            self.answer_for(other);
            if self.task_runners.expel(other, &why, effects) {
                unheld.extend(self.expel(other, effects).0);
            }
        }
        self.lose_objects(node, NextStore::None, effects);
        unheld.extend(self.unasked());
        self.task_runners.balance_all(&mut self.ceiling, effects);
        self.settle(Vec::new(), Unheld(unheld), effects);
        self.seek_missed(effects);
        self.nodes.introduce(from, effects);
    }

    /// The store of a further node listens: its processes begin.
    pub(crate) fn store_listens(
        &mut self,
        member: RankId,
        at: Rendezvous,
        effects: &mut Vec<CoordinatorEffect>,
    ) {
        if let Some(node) = self.nodes.listens(member, at, &self.members, effects) {
            self.find_objects(node, effects);
            for job in self
                .members_on(node)
                .into_iter()
                .map(|member| member.job())
                .filter(|job| *job != member.job())
            {
                self.construct(job, effects);
            }
        }
    }

    /// The store of a node that was to follow another one has had time to listen. Its node may have been lost
    /// as well, so nobody waits for it any more.
    pub fn store_overdue(&mut self, node: NodeNumber, restarts: u32, effects: &mut Vec<CoordinatorEffect>) {
        let from = effects.len();
        if self.nodes.is_overdue(node, restarts) {
            self.fetches.expect_no_more(node);
            self.seek_missed(effects);
        }
        self.nodes.introduce(from, effects);
    }

    /// What follows from a change of a store. Adds what the coordinator need not hold any more.
    pub(crate) fn store_changed(
        &mut self,
        change: StoreChange,
        unneeded: &mut Vec<HeldId>,
        effects: &mut Vec<CoordinatorEffect>,
    ) -> Unheld {
        match change {
            StoreChange::None => Unheld::default(),
            StoreChange::Restarts(node, restarts) => {
                self.lose_objects(node, NextStore::Follows, effects);
                effects.push(CoordinatorEffect::AwaitStore { node, restarts });
                Unheld::default()
            }
            StoreChange::Left(node) => {
                // They have come since: the application goes on.
                if !self.members_on(node).is_empty() {
                    self.nodes.provide_store(node, effects);
                }
                Unheld::default()
            }
            StoreChange::Failed(node, why) => {
                self.lose_objects(node, NextStore::None, effects);
                let members = self.members_on(node);
                self.unreachable(node, &why, &members, unneeded, effects)
            }
        }
    }

    /// The node is given up: its processes that have connected end.
    fn abandon(&mut self, node: NodeNumber, members: &[RankId], effects: &mut Vec<CoordinatorEffect>) {
        let why = self.nodes.given_up(node).unwrap_or_default().to_owned();
        let mut unneeded = Vec::new();
        let unheld = self.unreachable(node, &why, members, &mut unneeded, effects);
        self.task_runners.balance_all(&mut self.ceiling, effects);
        self.settle(unneeded, unheld, effects);
        self.seek_missed(effects);
    }

    /// Processes of a node cannot be reached by those of others: they end.
    fn unreachable(
        &mut self,
        node: NodeNumber,
        why: &str,
        members: &[RankId],
        unneeded: &mut Vec<HeldId>,
        effects: &mut Vec<CoordinatorEffect>,
    ) -> Unheld {
        let name = self.nodes.name(node);
        let why = format!(
            "its process runs on node {name}, where processes of other nodes cannot reach it: the store of the \
             application there has failed: {why}"
        );
        let mut unheld = Vec::new();
        for member in members.iter().copied() {
            if self.task_runners.expel(member, &why, effects) {
                unheld.extend(self.expel(member, effects).0);
            } else {
                let (ceiling, job) = (&mut self.ceiling, member.job());
                unneeded.extend(self.actors.give_up(job, why.clone(), ceiling, effects));
            }
        }
        unheld.extend(self.unasked());
        Unheld(unheld)
    }

    /// A process is treated as ended, though it may run.
    fn expel(&mut self, member: RankId, effects: &mut Vec<CoordinatorEffect>) -> Unheld {
        self.expelled.insert(member, self.nodes.of(member));
        self.end_member(member, effects)
    }

    fn members_on(&self, node: NodeNumber) -> Vec<RankId> {
        self.members.iter().copied().filter(|member| self.nodes.of(*member) == node).collect()
    }
}
