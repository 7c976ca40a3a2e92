//! The nodes on which processes of the application run, and their stores, as the coordinator knows them.
//!
//! The store of the coordinator's own node is in its process. A further node gets one when the first process
//! there connects; until it listens, nobody reaches the processes of that node.

use std::collections::BTreeMap;

use cohabit_types::{JobId, RankId, Rendezvous};

use crate::actor_spec::ActorState;
use crate::coordinator_effect::CoordinatorEffect;
use crate::descriptions::NodeDescription;
use crate::fetches::StoredAt;
use crate::frames::FromCoordinator;
use crate::ids::NodeNumber;
use crate::node_frames::{FromStore, ToStore};
use crate::runner_report::{RunnerReport, RunnerState};

/// So many stores of a node in a row may fail before it is given up.
const MAX_STORE_FAILURES: u32 = 3;

/// Most frames of a process that is not known to be a store yet.
const MAX_EARLY_FRAMES: usize = 1_000;

/// The node of the coordinator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CoordinatorNode {
    /// Its name at the head.
    pub name: String,
    /// Where its processes are reached by those of other nodes; none if they are not.
    pub at: Option<Rendezvous>,
}

/// All nodes on which a process has run.
#[derive(Debug)]
pub(crate) struct Nodes {
    /// By number.
    all: Vec<Node>,
    names: BTreeMap<String, NodeNumber>,
    /// The processes of further nodes, until everything is known that anybody got from them.
    members: BTreeMap<RankId, NodeNumber>,
    /// The jobs of stores, until they have ended.
    jobs: BTreeMap<JobId, NodeNumber>,
    /// What processes have said as stores of which the head has not yet told that they are.
    early: BTreeMap<RankId, Vec<FromStore>>,
}

#[derive(Debug)]
struct Node {
    name: String,
    at: Option<Rendezvous>,
    store: StorePhase,
    /// How many stores have failed since one listened.
    failures: u32,
    /// How often a store has ended that is started again.
    restarts: u32,
}

/// How far the store of a node is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum StorePhase {
    /// It is in the coordinator's process.
    Own,
    /// The next process that connects needs one.
    Missing,
    /// The head was asked for a job and has not answered.
    Submitting,
    /// It has a job, of which no process listens.
    Waiting(JobId),
    /// This process is the store.
    Listens(RankId),
    /// This process was the store, and was told to end.
    Leaving(RankId),
    /// It has failed too often: why the last time.
    GivenUp(String),
}

/// What became of a store by a report of the head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StoreChange {
    None,
    /// Its process has ended, another one follows; so often that was so.
    Restarts(NodeNumber, u32),
    /// It has ended as it was told to.
    Left(NodeNumber),
    /// It has ended for good.
    Failed(NodeNumber, String),
}

impl Nodes {
    pub(crate) fn new(own: CoordinatorNode) -> Nodes {
        let names = BTreeMap::from([(own.name.clone(), NodeNumber::COORDINATOR)]);
        let own = Node { name: own.name, at: own.at, store: StorePhase::Own, failures: 0, restarts: 0 };
        let (members, jobs, early) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Nodes { all: vec![own], names, members, jobs, early }
    }

    /// A process has connected for the first time: its node. It is told what it needs to reach others.
    pub(crate) fn place(
        &mut self,
        member: RankId,
        name: &str,
        effects: &mut Vec<CoordinatorEffect>,
    ) -> NodeNumber {
        let node = self.names.get(name).copied().unwrap_or_else(|| {
            let node = NodeNumber(self.all.len() as u32);
            self.names.insert(name.to_owned(), node);
            self.all.push(Node::further(name));
            node
        });
        if node != NodeNumber::COORDINATOR {
            self.members.insert(member, node);
            let frame = FromCoordinator::Welcome { node };
            effects.push(CoordinatorEffect::Send { to: member, frame });
        }
        for (other, at) in self.reachable().filter(|(other, _)| *other != node) {
            let frame = FromCoordinator::NodeAt { node: other, at: at.clone() };
            effects.push(CoordinatorEffect::Send { to: member, frame });
        }
        node
    }

    /// Submits the store of a node on which a process has connected, if there is none.
    pub(crate) fn provide_store(&mut self, node: NodeNumber, effects: &mut Vec<CoordinatorEffect>) {
        let Some(it) = self.get_mut(node).filter(|it| it.store == StorePhase::Missing) else { return };
        it.store = StorePhase::Submitting;
        effects.push(CoordinatorEffect::SubmitStore { node, name: it.name.clone() });
    }

    /// The head has answered the submission of a store. With an error it has failed.
    pub(crate) fn submitted(&mut self, node: NodeNumber, result: Result<JobId, String>) -> StoreChange {
        let Some(it) = self.get_mut(node).filter(|it| it.store == StorePhase::Submitting) else {
            return StoreChange::None;
        };
        match result {
            Ok(job) => {
                it.store = StorePhase::Waiting(job);
                self.jobs.insert(job, node);
                StoreChange::None
            }
            Err(text) => {
                it.fail(&text);
                StoreChange::Failed(node, text)
            }
        }
    }

    /// Whether it is the job of a store.
    pub(crate) fn is_store(&self, job: JobId) -> bool {
        self.jobs.contains_key(&job)
    }

    /// The head has reported about a job.
    pub(crate) fn report(&mut self, job: JobId, report: &RunnerReport) -> StoreChange {
        let Some(node) = self.jobs.get(&job).copied() else { return StoreChange::None };
        let ended = match &report.state {
            RunnerState::Ended { text, .. } => Some(text.clone()),
            RunnerState::Waiting { .. } | RunnerState::Live => None,
        };
        if ended.is_some() {
            self.jobs.remove(&job);
        }
        let Some(it) = self.get_mut(node).filter(|it| it.store.job() == Some(job)) else {
            return StoreChange::None;
        };
        match ended {
            Some(_) if matches!(it.store, StorePhase::Leaving(_)) => {
                it.store = StorePhase::Missing;
                StoreChange::Left(node)
            }
            Some(text) => {
                it.fail(&text);
                StoreChange::Failed(node, text)
            }
            None => match it.store {
                StorePhase::Listens(member) | StorePhase::Leaving(member)
                    if member.attempt.attempt <= report.ended_attempts =>
                {
                    it.store = StorePhase::Waiting(job);
                    it.at = None;
                    it.restarts += 1;
                    StoreChange::Restarts(node, it.restarts)
                }
                StorePhase::Listens(_)
                | StorePhase::Leaving(_)
                | StorePhase::Waiting(_)
                | StorePhase::Own
                | StorePhase::Missing
                | StorePhase::Submitting
                | StorePhase::GivenUp(_) => StoreChange::None,
            },
        }
    }

    /// A process of a job whose store does not listen says that it does: the node whose processes are reached
    /// from now on. `members` are told.
    pub(crate) fn listens<'a>(
        &mut self,
        member: RankId,
        at: Rendezvous,
        members: impl IntoIterator<Item = &'a RankId>,
        effects: &mut Vec<CoordinatorEffect>,
    ) -> Option<NodeNumber> {
        let node = *self.jobs.get(&member.job())?;
        let it = self.get_mut(node).filter(|it| it.store == StorePhase::Waiting(member.job()))?;
        it.store = StorePhase::Listens(member);
        it.failures = 0;
        it.at = Some(at.clone());
        for to in members.into_iter().copied().filter(|to| self.of(*to) != node) {
            let frame = FromCoordinator::NodeAt { node, at: at.clone() };
            effects.push(CoordinatorEffect::Send { to, frame });
        }
        Some(node)
    }

    /// The node whose live store this process is.
    pub(crate) fn of_store(&self, member: RankId) -> Option<NodeNumber> {
        let node = *self.jobs.get(&member.job())?;
        (self.get(node)?.store == StorePhase::Listens(member)).then_some(node)
    }

    /// The store of a node is told to end.
    pub(crate) fn leave(&mut self, node: NodeNumber) {
        if let Some(it) = self.get_mut(node)
            && let StorePhase::Listens(member) = it.store
        {
            it.store = StorePhase::Leaving(member);
            it.at = None;
        }
    }

    /// Nothing is heard of a store any more: there will be another one if processes of its node come back.
    pub(crate) fn silence(&mut self, node: NodeNumber) {
        if let Some(it) = self.get_mut(node) {
            it.store = StorePhase::Missing;
            it.at = None;
        }
    }

    /// Keeps what a process says as a store until it is known that it is the next one.
    pub(crate) fn keep_early(&mut self, member: RankId, frame: FromStore) {
        let frames = self.early.entry(member).or_default();
        // Nobody uses a store that has not said that it listens, which is its first word.
        if frames.len() < MAX_EARLY_FRAMES {
            frames.push(frame);
        }
    }

    /// What a process has said that is the next store now.
    pub(crate) fn take_early(&mut self, member: RankId) -> Vec<FromStore> {
        let is_next = self.jobs.contains_key(&member.job());
        if is_next { self.early.remove(&member).unwrap_or_default() } else { Vec::new() }
    }

    /// A process has ended.
    pub(crate) fn member_ended(&mut self, member: RankId) {
        self.early.remove(&member);
    }

    /// Everything is known that anybody got from a process that has ended.
    pub(crate) fn forget(&mut self, member: RankId) {
        self.members.remove(&member);
    }

    /// The node of a process.
    pub(crate) fn of(&self, member: RankId) -> NodeNumber {
        self.members.get(&member).copied().unwrap_or(NodeNumber::COORDINATOR)
    }

    /// Whether processes of other nodes reach those of this one, and its store lives.
    pub(crate) fn is_served(&self, node: NodeNumber) -> bool {
        self.get(node).is_some_and(|it| matches!(it.store, StorePhase::Own | StorePhase::Listens(_)))
    }

    /// Whether the store still does not listen that was to follow when one had ended so often.
    pub(crate) fn is_overdue(&self, node: NodeNumber, restarts: u32) -> bool {
        self.get(node).is_some_and(|it| it.restarts == restarts) && !self.is_served(node)
    }

    /// Where an object is that a process of a node has stored.
    pub(crate) fn stored_at(&self, node: NodeNumber) -> StoredAt {
        match self.get(node).map(|it| &it.store) {
            Some(StorePhase::Own | StorePhase::Listens(_)) => StoredAt::Place(node),
            Some(StorePhase::Submitting | StorePhase::Waiting(_)) => StoredAt::Expected(node),
            Some(StorePhase::Missing | StorePhase::Leaving(_) | StorePhase::GivenUp(_)) | None => {
                StoredAt::Nowhere
            }
        }
    }

    /// Why a node was given up.
    pub(crate) fn given_up(&self, node: NodeNumber) -> Option<&str> {
        match &self.get(node)?.store {
            StorePhase::GivenUp(why) => Some(why),
            StorePhase::Own
            | StorePhase::Missing
            | StorePhase::Submitting
            | StorePhase::Waiting(_)
            | StorePhase::Listens(_)
            | StorePhase::Leaving(_) => None,
        }
    }

    /// Its name at the head.
    pub(crate) fn name(&self, node: NodeNumber) -> &str {
        self.get(node).map_or("", |it| &it.name)
    }

    /// Sends a frame to the store of a node, if one lives.
    pub(crate) fn tell_store(&self, node: NodeNumber, frame: ToStore, effects: &mut Vec<CoordinatorEffect>) {
        match self.get(node).map(|it| &it.store) {
            Some(StorePhase::Own) => effects.push(CoordinatorEffect::OwnStore(frame)),
            Some(StorePhase::Listens(to)) => {
                let (to, frame) = (*to, FromCoordinator::Store(frame));
                effects.push(CoordinatorEffect::Send { to, frame });
            }
            Some(
                StorePhase::Missing
                | StorePhase::Submitting
                | StorePhase::Waiting(_)
                | StorePhase::Leaving(_)
                | StorePhase::GivenUp(_),
            )
            | None => {}
        }
    }

    /// All nodes with a store that lives.
    pub(crate) fn served(&self) -> impl Iterator<Item = NodeNumber> {
        let all = (0..self.all.len() as u32).map(NodeNumber);
        all.filter(|node| self.is_served(*node))
    }

    /// Says before each frame that names a process of another node where that is. `from` is the first effect
    /// that may be such a frame.
    pub(crate) fn introduce(&self, from: usize, effects: &mut Vec<CoordinatorEffect>) {
        if self.members.is_empty() {
            return;
        }
        let mut rest = effects.split_off(from.min(effects.len())).into_iter();
        for effect in rest.by_ref() {
            if let CoordinatorEffect::Send { to, frame } = &effect
                && let Some(member) = named(frame)
                && self.of(member) != self.of(*to)
            {
                let frame = FromCoordinator::MemberAt { member, node: self.of(member) };
                effects.push(CoordinatorEffect::Send { to: *to, frame });
            }
            effects.push(effect);
        }
    }

    /// All of them, by number.
    pub(crate) fn describe(&self) -> Vec<NodeDescription> {
        let describe = |(number, node): (usize, &Node)| NodeDescription {
            node: NodeNumber(number as u32),
            name: node.name.clone(),
            at: node.at.clone(),
            store: node.store.job(),
            is_served: self.is_served(NodeNumber(number as u32)),
        };
        self.all.iter().enumerate().map(describe).collect()
    }

    fn reachable(&self) -> impl Iterator<Item = (NodeNumber, &Rendezvous)> {
        let all = self.all.iter().zip(0..);
        all.filter_map(|(node, number)| Some((NodeNumber(number), node.at.as_ref()?)))
            .filter(|(node, _)| self.all.len() > 1 && self.is_served(*node))
    }

    fn get(&self, node: NodeNumber) -> Option<&Node> {
        self.all.get(node.0 as usize)
    }

    fn get_mut(&mut self, node: NodeNumber) -> Option<&mut Node> {
        self.all.get_mut(node.0 as usize)
    }
}

impl Node {
    fn further(name: &str) -> Node {
        Node { name: name.to_owned(), at: None, store: StorePhase::Missing, failures: 0, restarts: 0 }
    }

    fn fail(&mut self, why: &str) {
        self.failures += 1;
        self.at = None;
        self.store = match self.failures {
            MAX_STORE_FAILURES.. => StorePhase::GivenUp(why.to_owned()),
            _ => StorePhase::Missing,
        };
    }
}

impl StorePhase {
    const fn job(&self) -> Option<JobId> {
        match self {
            StorePhase::Waiting(job) => Some(*job),
            StorePhase::Listens(member) | StorePhase::Leaving(member) => Some(member.job()),
            StorePhase::Own | StorePhase::Missing | StorePhase::Submitting | StorePhase::GivenUp(_) => None,
        }
    }
}

/// The process that a frame names and that its receiver may call.
fn named(frame: &FromCoordinator) -> Option<RankId> {
    if let FromCoordinator::RunnerJoined { runner, .. } = frame {
        Some(*runner)
    } else if let FromCoordinator::State { state: ActorState::Ready { member, .. }, .. } = frame {
        Some(*member)
    } else {
        None
    }
}
