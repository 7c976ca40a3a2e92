//! The policy: of each priority, first the jobs for several nodes, then the best pairs of a job and a node
//! until nothing fits. A running job is never stopped.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use cohabit_fair_share::Line;
use cohabit_types::{Demand, JobId, NodeId, ReasonCode, Spread};

use super::alignment::{alignment, rest_of};
use super::candidates::{BestStart, Candidate, ShortestKey, best_start};
use crate::placement::find_shortage;
use crate::queue::fit_tracker::fits;
use crate::queue::{ClassId, PendingQueue, QueuedJob};
use crate::{
    Action, ClassKey, ClusterChange, FreeNodes, MappedPlacer, PendingJob, PendingReason, Placer, Plan,
    Policy, Profile, Proposal, ResourceAmounts, Shortage, View, ViewChange,
};

/// Why a job waits that fits.
const OTHERS_ARE_BETTER: &str = "Jobs that fit the free resources better, or are shorter, go first";

/// The policy.
#[derive(Debug)]
pub(crate) struct Tetris {
    placer: MappedPlacer,
    /// The waiting jobs of each priority.
    queues: BTreeMap<Reverse<i32>, PendingQueue<ShortestKey>>,
    waiting: BTreeMap<JobId, (Reverse<i32>, Profile)>,
}

/// A plan while it is made.
struct PackingDraft<'v> {
    view: &'v View,
    /// All that the cluster has.
    whole: ResourceAmounts,
    free: FreeNodes<'v>,
    actions: Vec<Action>,
}

impl Tetris {
    pub(crate) fn new(placer: MappedPlacer) -> Tetris {
        Tetris { placer, queues: BTreeMap::new(), waiting: BTreeMap::new() }
    }

    fn enqueue(&mut self, job: &PendingJob) {
        self.forget(job.id);
        let profile = self.placer.profile(&job.demand, &job.traits);
        let (priority, key) = (Reverse(job.priority), (rest_of(job, &profile), job.submitted_at));
        let queue = self.queues.entry(priority).or_default();
        let queued = QueuedJob { id: job.id, line: Line::default(), demand: job.demand };
        queue.insert(&queued, ClassKey::Resources(job.demand), key);
        self.waiting.insert(job.id, (priority, profile));
    }

    fn forget(&mut self, job: JobId) {
        let Some((priority, _)) = self.waiting.remove(&job) else { return };
        if let Some(queue) = self.queues.get_mut(&priority) {
            queue.remove(job);
            if queue.is_empty() {
                self.queues.remove(&priority);
            }
        }
    }

    /// Starts jobs of one priority until none fits any more.
    fn fill<'v>(&mut self, draft: &mut PackingDraft<'v>, queue: &PendingQueue<ShortestKey>) {
        let fronts = queue.fronts().filter_map(|entry| Candidate::new(entry, draft.view, draft.whole));
        let (gangs, others): (Vec<Candidate<'v>>, Vec<Candidate<'v>>) =
            fronts.partition(|it| it.job.demand.nodes > 1);
        self.place_by_work(draft, queue, gangs);
        let left = self.pack(draft, queue, others);
        // On any one node these do not fit.
        let spread = left.into_iter().filter(|it| it.job.demand.spread == Spread::Free).collect();
        self.place_by_work(draft, queue, spread);
    }

    /// Jobs that no single node holds: the least work first, where the mapper puts them.
    fn place_by_work<'v>(
        &mut self,
        draft: &mut PackingDraft<'v>,
        queue: &PendingQueue<ShortestKey>,
        mut candidates: Vec<Candidate<'v>>,
    ) {
        candidates.retain(|it| fits(&it.job.demand, &draft.free));
        candidates.sort_by(|one, other| other.compare_work(one));
        while let Some(candidate) = candidates.pop() {
            let (job, profile) = (candidate.job, &self.waiting[&candidate.job.id].1);
            if !fits(&job.demand, &draft.free) {
                continue;
            }
            if let Ok(proposal) = self.placer.place(job, profile, &draft.free) {
                draft.start(job, profile, proposal);
                if let Some(next) = candidate.next(queue, draft.view, draft.whole) {
                    let place = candidates.partition_point(|it| it.compare_work(&next).is_gt());
                    candidates.insert(place, next);
                }
            }
        }
    }

    /// Jobs on one node each: the best pair of a job and a node, again and again. Returns the first jobs of
    /// the classes that are left.
    fn pack<'v>(
        &mut self,
        draft: &mut PackingDraft<'v>,
        queue: &PendingQueue<ShortestKey>,
        mut candidates: Vec<Candidate<'v>>,
    ) -> Vec<Candidate<'v>> {
        candidates.iter_mut().for_each(|it| it.look_at_all(&draft.free));
        let mut left = Vec::new();
        loop {
            left.extend(candidates.extract_if(.., |it| !it.fits()));
            let Some(BestStart { candidate, node, alignment }) = best_start(&candidates) else { return left };
            let started = candidates.swap_remove(candidate);
            let (job, profile) = (started.job, &self.waiting[&started.job.id].1);
            let host = draft.free.node(node);
            let why = format!("fits what is free on {} best (alignment {alignment:.2})", host.name);
            let Ok(proposal) = place_on(&mut self.placer, host.id, job, profile, &draft.free) else {
                continue;
            };
            draft.start(job, profile, explained(proposal, why));
            candidates.extend(started.next(queue, draft.view, draft.whole));
            candidates.iter_mut().for_each(|it| it.look_at(node, &draft.free));
        }
    }

    /// Where a job goes when it is its turn: on the node with the largest alignment, if one node holds it.
    fn place(
        &mut self,
        job: &PendingJob,
        profile: &Profile,
        free: &FreeNodes<'_>,
    ) -> Result<Proposal, Shortage> {
        let mut best: Option<(f64, NodeId)> = None;
        for node in free.nodes().filter(|_| job.demand.nodes == 1) {
            let aligned = alignment(&job.demand, node);
            best = match (best, aligned) {
                (Some(best), Some(aligned)) if best.0 >= aligned => Some(best),
                (_, Some(aligned)) => Some((aligned, node.id)),
                (best, None) => best,
            };
        }
        match best {
            Some((_, node)) => place_on(&mut self.placer, node, job, profile, free),
            None => self.placer.place(job, profile, free),
        }
    }
}

impl<'v> PackingDraft<'v> {
    fn new(view: &'v View) -> PackingDraft<'v> {
        let whole = ResourceAmounts::of_nodes(&view.nodes);
        PackingDraft { view, whole, free: FreeNodes::new(&view.nodes), actions: Vec::new() }
    }

    fn start(&mut self, job: &PendingJob, profile: &Profile, proposal: Proposal) {
        self.free.take_as_resident(job.id, &job.demand, &proposal.placement);
        let rest = Profile { runtime: rest_of(job, profile), ..profile.clone() };
        self.actions.push(proposal.start(job.id, &rest));
    }
}

/// Where the mapper puts a job that has to be on this node: a share on the fullest device that it fits.
fn place_on(
    placer: &mut MappedPlacer,
    node: NodeId,
    job: &PendingJob,
    profile: &Profile,
    free: &FreeNodes<'_>,
) -> Result<Proposal, Shortage> {
    let pinned = PendingJob { demand: Demand { node: Some(node), ..job.demand }, ..job.clone() };
    placer.place(&pinned, profile, free)
}

fn explained(proposal: Proposal, why: String) -> Proposal {
    let why = if proposal.why.is_empty() { why } else { format!("{why}; {}", proposal.why) };
    Proposal { why, ..proposal }
}

impl Policy for Tetris {
    fn learn(&mut self, view: &View, changes: &[ViewChange]) {
        self.placer.learn(view, changes);
        if self.placer.prepare(view) == ClusterChange::Changed {
            view.pending.values().for_each(|job| self.enqueue(job));
        }
        for change in changes {
            match change {
                ViewChange::Pending(job) => self.enqueue(job),
                ViewChange::Running(job) => self.forget(job.id),
                ViewChange::Gone(job) => self.forget(*job),
                ViewChange::Node(_) | ViewChange::NodeGone(_) | ViewChange::Shares(_) => {}
            }
        }
    }

    fn plan(&mut self, view: &View) -> Plan {
        let mut draft = PackingDraft::new(view);
        let queues = std::mem::take(&mut self.queues);
        queues.values().for_each(|queue| self.fill(&mut draft, queue));
        self.queues = queues;
        Plan { actions: draft.actions, wake: None }
    }

    /// The shortest of each priority first: which of those that fit is packed next is not known before.
    fn explain_pending(&mut self, view: &View) -> Vec<PendingReason> {
        let free = FreeNodes::new(&view.nodes);
        let mut reasons = Vec::new();
        for queue in self.queues.values() {
            let mut classes: BTreeMap<ClassId, (ReasonCode, String)> = BTreeMap::new();
            for turn in queue.walk(None) {
                let Some(job) = view.pending.get(&turn.job) else { continue };
                let class = classes.entry(turn.class);
                let (code, why) = class.or_insert_with(|| explain(&job.demand, &free)).clone();
                let runtime = self.waiting[&job.id].1.expected_at(1.0);
                reasons.push(PendingReason { job: job.id, code, why, not_before: None, runtime });
            }
        }
        reasons
    }

    fn dry_run_on(&mut self, _: &View, job: &PendingJob, free: &FreeNodes<'_>) -> Result<Proposal, Shortage> {
        let profile = self.placer.profile(&job.demand, &job.traits);
        self.place(job, &profile, free)
    }
}

fn explain(demand: &Demand, free: &FreeNodes<'_>) -> (ReasonCode, String) {
    if fits(demand, free) {
        return (ReasonCode::WaitingForTurn, OTHERS_ARE_BETTER.to_owned());
    }
    let shortage = find_shortage(demand, free.nodes());
    (shortage.code(), shortage.to_string())
}
