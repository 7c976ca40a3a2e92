//! Workers join, report and disconnect.
//!
//! A link is fenced by its key: messages of older links are dropped. A joining worker lists every rank that
//! it holds, so that head and worker agree again after whatever happened in between.

use std::collections::BTreeSet;

use cohabit_types::{
    AttemptId, AttemptProgress, Cause, CheckpointResult, CheckpointSource, Condition, DeviceId,
    DeviceTelemetry, Enforcement, FeedKind, HeldRank, HeldRankPhase, Inventory, JobEventKind, JobId, NodeId,
    Order, Outcome, Progress, RankId, Report, Signal, Span, StartFailure, StopReason, Time, WorkerKey,
};

use crate::alarm::Alarm;
use crate::head::Head;
use crate::interface::Effect;
use crate::job::{Attempt, RankPhase, device_fault};
use crate::node::{Node, NodeLink};
use crate::transition::Transition;

impl Transition<'_> {
    pub(crate) fn joined(&mut self, key: WorkerKey, inventory: Inventory) {
        let known = self.head.nodes.get(&key.node);
        if known.is_some_and(|node| node.last_key().incarnation >= key.incarnation) {
            self.effect(Effect::Close(key, "the worker has a newer link".into()));
            return;
        }
        let was_gone = known.is_some_and(|node| node.key().is_none());
        let was_lost = known.is_some_and(Node::is_lost);
        let fenced = known.map(Node::fenced).unwrap_or_default();
        let had_ports = known.is_some_and(Node::has_application_ports);
        if let Some(older) = known.and_then(Node::key) {
            self.effect(Effect::Close(older, "the worker opened a newer link".into()));
        }
        let may_hold_less = self.head.may_hold_less(key.node, &inventory);
        self.link_up(key, &inventory);
        self.forget_idleness(key.node);
        if was_lost {
            self.tell_of_node(key.node, FeedKind::NodeBack, "its worker is connected again".to_owned());
        }
        self.tell_fenced(key.node, &fenced);
        self.update_children(key.node, had_ports);
        self.cause = Cause::Node(self.head.nodes[&key.node].name.clone());
        let held: BTreeSet<RankId> = inventory.held_ranks.iter().map(|held| held.rank).collect();
        self.settle_prefetched(key.node, |rank| held.contains(&rank));
        self.settle_missing(key.node, &held, was_gone);
        for rank in inventory.held_ranks {
            self.settle_held(key, rank);
        }
        self.repeat_allotments(key);
        if may_hold_less {
            self.drop_predictions_too_large();
        }
        self.reconsider();
    }

    fn link_up(&mut self, key: WorkerKey, inventory: &Inventory) {
        let (now, name) = (self.now, self.head.free_name(key.node, &inventory.name));
        if let Some(node) = self.node_mut(key.node) {
            node.name = name;
            node.link = NodeLink::Up(key);
            node.link_changed_at = now;
            // An operator may have solved it.
            node.problem = None;
            node.learn(inventory);
        } else {
            let node = Node::new(name, self.head.nodes_joined, key, inventory, now);
            self.head.nodes_joined += 1;
            self.head.nodes.insert(key.node, node);
            self.join_maintenance(key.node);
        }
        if let Some(node) = self.head.nodes.get(&key.node) {
            self.head.volatile.figures.count_link(&node.name);
        }
        self.update_account_keys();
    }

    /// Settles the ranks that the worker should hold. Those that it does not hold are gone; the others are
    /// adopted, and stopped if their attempt is being stopped.
    fn settle_missing(&mut self, node: NodeId, held: &BTreeSet<RankId>, was_gone: bool) {
        for id in self.head.nodes[&node].jobs.clone() {
            let job = &self.head.jobs[&id];
            let (Some(attempt), stopping) = (job.live_attempt().cloned(), job.stop_requested()) else {
                continue;
            };
            let here = live_ranks_on(&attempt, node, id);
            for rank in here.iter().filter(|rank| !held.contains(rank)) {
                self.rank_ended(*rank, self.head.why_missing(&attempt, *rank));
            }
            let adopted = here.iter().any(|rank| held.contains(rank));
            if adopted && was_gone {
                self.record_event(id, JobEventKind::Adopted(id.attempt(attempt.number)));
                self.changed(id);
            }
            if let (true, Some(why)) = (adopted, stopping) {
                self.order_stop(node, id, attempt.number, why);
            }
        }
    }

    /// Settles a rank that the worker holds: it runs, its end will be reported, or it no longer belongs to a
    /// live attempt and has to stop.
    fn settle_held(&mut self, key: WorkerKey, held: HeldRank) {
        // It has begun, and the report of the end before it follows.
        if self.head.is_prefetched(held.rank, key.node) {
            return;
        }
        match (self.head.is_live(held.rank, key.node), held.phase) {
            (true, HeldRankPhase::Running(_)) => self.rank_started(held.rank),
            (true, HeldRankPhase::Starting | HeldRankPhase::Ended) | (false, HeldRankPhase::Ended) => {}
            (false, HeldRankPhase::Starting | HeldRankPhase::Running(_)) => {
                let order = Order::Stop { attempt: held.rank.attempt, why: StopReason::Superseded };
                self.effect(Effect::SendOrder(key, order));
            }
        }
    }

    pub(crate) fn lost(&mut self, key: WorkerKey, detail: &str) {
        let Some(node) = self.head.nodes.get(&key.node) else { return };
        self.cause = Cause::Node(format!("{}: {detail}", node.name));
        self.unreachable(key);
    }

    /// The link is gone. What runs there goes on until the node counts as lost.
    pub(crate) fn unreachable(&mut self, key: WorkerKey) {
        let now = self.now;
        let Some(node) = self.node_mut(key.node).filter(|node| node.key() == Some(key)) else {
            return;
        };
        node.link = NodeLink::Unreachable(key);
        node.link_changed_at = now;
        let (name, jobs) = (node.name.clone(), node.jobs.clone());
        self.head.volatile.telemetry.retain(|(node, _), _| *node != key.node);
        for id in jobs {
            let lost_after = self.head.unreachable_limit(key.node, id);
            self.record_event(id, JobEventKind::NodeUnreachable { node: name.clone(), lost_after });
            self.changed(id);
        }
        self.forget_idleness(key.node);
        self.watch_unreachable_node(key.node);
        self.head.replan_needed = true;
    }

    /// The clock jumped: the time that it skipped does not count as time in which a node was unreachable.
    pub(crate) fn clock_set(&mut self, forward: Span) {
        self.change_unreachable_since(|since| since + forward);
    }

    /// What was unreachable before the head started counts as unreachable since now.
    pub(crate) fn wait_anew_for_nodes(&mut self) {
        let now = self.now;
        self.change_unreachable_since(|_| now);
    }

    fn change_unreachable_since(&mut self, change: impl Fn(Time) -> Time) {
        let is_unreachable = |node: &Node| matches!(node.link, NodeLink::Unreachable(_));
        let waiting: Vec<NodeId> =
            self.head.nodes.iter().filter(|(_, node)| is_unreachable(node)).map(|(id, _)| *id).collect();
        for id in waiting {
            let Some(node) = self.node_mut(id) else { continue };
            node.link_changed_at = change(node.link_changed_at);
            self.watch_unreachable_node(id);
        }
    }

    /// Sets the alarm for the next that is to be given up of an unreachable node: one of its jobs, or itself.
    fn watch_unreachable_node(&mut self, id: NodeId) {
        let Some(node) = self.head.nodes.get(&id) else { return };
        let limits = self.head.live_jobs_on(id).into_iter().map(|job| self.head.unreachable_limit(id, job));
        let next = limits.min().unwrap_or(self.head.config.lost_after);
        let at = node.link_changed_at + next;
        self.set_alarm(at, Alarm::NodeLost(id));
    }

    /// Gives up the jobs for which a node has been unreachable for too long, and the node with the last of
    /// them.
    pub(crate) fn give_up_unreachable_node(&mut self, id: NodeId) {
        let Some(node) = self.head.nodes.get(&id) else { return };
        let NodeLink::Unreachable(key) = node.link else { return };
        let unreachable_for = self.now.since(node.link_changed_at);
        let is_over = |limit: Span| limit <= unreachable_for;
        let (name, jobs) = (node.name.clone(), self.head.live_jobs_on(id));
        let limits: Vec<_> =
            jobs.into_iter().map(|job| (job, self.head.unreachable_limit(id, job))).collect();
        let (given_up, kept): (Vec<_>, Vec<_>) = limits.into_iter().partition(|(_, limit)| is_over(*limit));
        let is_lost = kept.is_empty() && is_over(self.head.config.lost_after);
        if given_up.is_empty() && !is_lost {
            return;
        }
        self.cause = Cause::Node(name.clone());
        if is_lost && let Some(node) = self.node_mut(id) {
            node.link = NodeLink::Lost(key);
            self.head.volatile.lost_nodes.insert(id);
            let text =
                format!("nothing was heard of its worker for {unreachable_for}: its jobs are given up");
            self.tell_of_node(id, FeedKind::NodeLost, text);
        }
        for (job, limit) in given_up {
            self.give_up(job, id, &format!("node {name} was unreachable for {limit}"));
        }
        if is_lost {
            self.drop_predictions_too_large();
        } else {
            self.watch_unreachable_node(id);
        }
        self.head.replan_needed = true;
    }

    fn give_up(&mut self, id: JobId, node: NodeId, detail: &str) {
        let Some(attempt) = self.head.jobs[&id].live_attempt().cloned() else { return };
        let kind =
            JobEventKind::AttemptLost { attempt: id.attempt(attempt.number), detail: detail.to_owned() };
        self.record_event(id, kind);
        let follower = self.head.volatile.followers.get(&id.attempt(attempt.number)).copied();
        for rank in live_ranks_on(&attempt, node, id) {
            self.rank_ended(rank, Outcome::Lost(detail.to_owned()));
        }
        // It may have begun there.
        if let Some(follower) = follower {
            self.give_up(follower, node, detail);
        }
    }

    pub(crate) fn report(&mut self, key: WorkerKey, report: Report) {
        let Some(node) = self.head.nodes.get(&key.node).filter(|node| node.key() == Some(key)) else {
            return;
        };
        self.cause = Cause::Node(node.name.clone());
        match report {
            Report::Started { rank, .. } if self.head.is_live(rank, key.node) => self.rank_started(rank),
            Report::Started { .. } => {}
            Report::Ended { rank, outcome, stopped, progress, at, usage } => {
                if self.head.is_prefetched(rank, key.node) {
                    self.given_back(rank.attempt.job);
                } else if self.head.is_live(rank, key.node) {
                    self.record_usage(rank, usage);
                    self.note_end_report(rank, stopped, progress);
                    self.record_misfit(rank, &outcome, at);
                    self.rank_ended(rank, outcome);
                } else if self.head.is_stale(rank, key.node) {
                    self.record_event(rank.attempt.job, JobEventKind::StaleReport(rank));
                }
                self.effect(Effect::SendOrder(key, Order::Acknowledge(rank)));
            }
            Report::Progress(progress) => self.progress(key.node, progress),
            Report::Sharing { rank, enforcement } if self.head.is_live(rank, key.node) => {
                self.rank_shares(rank, enforcement);
            }
            Report::PrivateUser { rank, uid } if self.head.is_live(rank, key.node) => {
                self.rank_runs_as(rank, uid);
            }
            Report::Usage(usage) => self.note_usage(key.node, usage),
            Report::Idle { attempt, since, quiet_for } if self.head.has_attempt_on(attempt, key.node) => {
                self.left_idle(attempt, since, quiet_for);
            }
            Report::Active(attempt) if self.head.has_attempt_on(attempt, key.node) => {
                self.active_again(attempt)
            }
            Report::Stalled { attempt, quiet_for, step } if self.head.has_attempt_on(attempt, key.node) => {
                self.stalled(attempt, quiet_for, step);
            }
            Report::SignalSent { attempt, signal } if self.head.has_attempt_on(attempt, key.node) => {
                self.signal_sent(attempt, signal);
            }
            Report::Checkpoints { attempt, source, result }
                if self.head.has_attempt_on(attempt, key.node) =>
            {
                self.checkpoints_found(key.node, attempt, source, result);
            }
            Report::Sharing { .. }
            | Report::PrivateUser { .. }
            | Report::Stalled { .. }
            | Report::Idle { .. }
            | Report::Active(_)
            | Report::SignalSent { .. }
            | Report::Checkpoints { .. } => {}
            Report::Allotted { attempt, host } => self.allotted(key.node, attempt, host),
            Report::Condition { device, condition } => self.condition(key.node, &device, condition),
            Report::Telemetry(telemetry) => self.telemetry(key.node, telemetry),
            // For the history alone: the shell keeps these and does not pass them on.
            Report::ColocationSamples(_) => {}
        }
    }

    fn rank_shares(&mut self, rank: RankId, enforcement: Enforcement) {
        let id = rank.attempt.job;
        let attempt = self.job_mut(id).live_attempt_mut();
        let Some(known) = attempt.and_then(|attempt| attempt.ranks.get_mut(rank.rank as usize)) else {
            return;
        };
        if known.enforcement.as_ref() != Some(&enforcement) {
            known.enforcement = Some(enforcement.clone());
            self.record_event(id, JobEventKind::Shares { rank, enforcement });
            self.changed(id);
        }
    }

    fn rank_runs_as(&mut self, rank: RankId, uid: u32) {
        let id = rank.attempt.job;
        let attempt = self.job_mut(id).live_attempt_mut();
        let Some(known) = attempt.and_then(|attempt| attempt.ranks.get_mut(rank.rank as usize)) else {
            return;
        };
        if known.private_uid.replace(uid) != Some(uid) {
            let account = self.head.submissions[&id.number].account().to_owned();
            self.record_event(id, JobEventKind::PrivateUser { rank, account, uid });
            self.changed(id);
        }
    }

    fn condition(&mut self, id: NodeId, device: &DeviceId, condition: Condition) {
        let fenced = self.head.nodes.get(&id).map(Node::fenced).unwrap_or_default();
        let node = self.node_mut(id);
        if node.is_some_and(|node| node.set_condition(device, condition)) {
            self.tell_fenced(id, &fenced);
            self.update_account_keys();
            self.head.replan_needed = true;
        }
    }

    fn telemetry(&mut self, node: NodeId, telemetry: Vec<DeviceTelemetry>) {
        let Some(known) = self.head.nodes.get(&node) else { return };
        let ids: BTreeSet<&DeviceId> = known.devices.iter().map(|it| &it.device.id).collect();
        let of_its_devices = telemetry.into_iter().filter(|it| ids.contains(&it.device));
        self.head.volatile.telemetry.extend(of_its_devices.map(|it| ((node, it.device.clone()), it)));
    }

    fn rank_started(&mut self, rank: RankId) {
        let id = rank.attempt.job;
        let attempt = self.job_mut(id).live_attempt_mut();
        let known = attempt.and_then(|attempt| attempt.ranks.get_mut(rank.rank as usize));
        let Some(known) = known.filter(|known| known.phase == RankPhase::Ordered) else { return };
        known.phase = RankPhase::Running;
        let node = known.node;
        self.clear_node_problem(node);
        self.record_event(id, JobEventKind::Started(rank));
        self.changed(id);
        self.tell_start(id);
    }

    /// Notes what the report on the end of a live rank says besides how it ended.
    fn note_end_report(&mut self, rank: RankId, stopped: Option<StopReason>, progress: Option<Progress>) {
        if let Some(attempt) = self.job_mut(rank.attempt.job).live_attempt_mut() {
            // Once a rank has failed by itself, only a fault of a device explains why.
            let may_explain =
                |why: &StopReason| attempt.first_failure.is_none() || device_fault(*why).is_some();
            attempt.stop_reported = attempt.stop_reported.or(stopped.filter(may_explain));
            if rank.rank == 0 {
                attempt.progress = progress;
            }
        }
    }

    /// A worker that joins again repeats the report of a stall that lasts.
    fn stalled(&mut self, attempt: AttemptId, quiet_for: Span, step: Option<u64>) {
        let latest = self.head.jobs[&attempt.job].events.iter().rev().find_map(|event| event.kind.stall());
        if latest.is_none_or(|(known, _, known_step)| (known, known_step) != (attempt, step)) {
            let stalled = JobEventKind::Stalled { attempt, quiet_for, step };
            let text = stalled.to_string();
            self.record_event(attempt.job, stalled);
            self.changed(attempt.job);
            self.tell_of_job(attempt.job, FeedKind::Stall, text);
        }
    }

    /// Several nodes, and repeated kills, send the same signal.
    fn signal_sent(&mut self, attempt: AttemptId, signal: Signal) {
        let event = JobEventKind::SignalSent { attempt, signal };
        if !self.head.jobs[&attempt.job].events.iter().any(|known| known.kind == event) {
            self.record_event(attempt.job, event);
            self.changed(attempt.job);
        }
    }

    /// A worker that joins again repeats what its ranks have found.
    fn checkpoints_found(
        &mut self,
        node: NodeId,
        attempt: AttemptId,
        source: CheckpointSource,
        result: CheckpointResult,
    ) {
        let Some(node) = self.head.nodes.get(&node).map(|node| node.name.clone()) else { return };
        let event = JobEventKind::Checkpoints { attempt, node, source, result };
        if !self.head.jobs[&attempt.job].events.iter().any(|known| known.kind == event) {
            self.record_event(attempt.job, event);
            self.changed(attempt.job);
        }
    }

    fn progress(&mut self, node: NodeId, progress: Vec<AttemptProgress>) {
        for AttemptProgress { attempt, progress } in progress {
            if self.head.has_attempt_on(attempt, node) {
                // The clocks of two machines are never compared, so the head's own time counts.
                let progress = Progress { at: self.now, ..progress };
                self.head.volatile.progress.insert(attempt, progress);
                self.changed(attempt.job);
            }
        }
    }
}

/// How much later than the head a worker may notice that their link is broken, plus the time that a kill
/// takes.
const LINK_LOSS_MARGIN: Span = Span::from_secs(30);

impl Head {
    /// Whether this attempt has live ranks on this node.
    fn has_attempt_on(&self, attempt: AttemptId, node: NodeId) -> bool {
        let live = self.jobs.get(&attempt.job).and_then(|job| job.live_attempt());
        live.is_some_and(|live| live.number == attempt.attempt && live.live_nodes().contains(&node))
    }

    /// How long a node may be unreachable before a job on it is given up: as long as the operator says, but
    /// never so short that a rank could still run there. Executors stop their ranks after the orphan grace
    /// plus the grace of the job, so the grace of one job keeps no other waiting.
    pub(crate) fn unreachable_limit(&self, node: NodeId, job: JobId) -> Span {
        let orphan_grace = self.nodes.get(&node).map_or(Span::ZERO, |node| node.orphan_grace);
        let grace = self.submissions.get(&job.number).map_or(Span::ZERO, |job| job.spec.stop.grace);
        self.config.lost_after.max(orphan_grace + grace + LINK_LOSS_MARGIN)
    }

    /// The jobs with ranks on a node that have not ended. A gang that was given up there stays in the ledger
    /// of the node until its ranks on other nodes have ended.
    pub(crate) fn live_jobs_on(&self, node: NodeId) -> Vec<JobId> {
        let jobs = self.nodes.get(&node).into_iter().flat_map(|it| &it.jobs);
        let is_live = |job: &JobId| {
            let attempt = self.jobs.get(job).and_then(|job| job.live_attempt());
            attempt.is_some_and(|it| it.live_nodes().contains(&node))
        };
        jobs.copied().filter(is_live).collect()
    }

    /// Whether the rank belongs to a live attempt, has not ended as far as the head knows, and is on this
    /// node.
    pub(crate) fn is_live(&self, rank: RankId, node: NodeId) -> bool {
        let attempt = self.jobs.get(&rank.attempt.job).and_then(|job| job.live_attempt());
        let attempt = attempt.filter(|attempt| attempt.number == rank.attempt.attempt);
        let known = attempt.and_then(|attempt| attempt.ranks.get(rank.rank as usize));
        known.is_some_and(|known| known.is_live() && known.node == node)
    }

    /// The outcome of a rank that its worker does not hold. An order from before a restart may never have
    /// been sent.
    fn why_missing(&self, attempt: &Attempt, rank: RankId) -> Outcome {
        let known = attempt.ranks.get(rank.rank as usize);
        let never_heard_of = known.is_some_and(|known| known.phase == RankPhase::Ordered);
        match never_heard_of && self.is_of_earlier_life(attempt) {
            true => Outcome::NotStarted(StartFailure::OrderLost),
            false => Outcome::Lost("the worker reconnected without it".into()),
        }
    }

    /// Whether this attempt was ordered before the head was last started.
    pub(crate) fn is_of_earlier_life(&self, attempt: &Attempt) -> bool {
        attempt.ordered_at.unwrap_or(attempt.started_at) < self.started_at
    }

    /// Whether the attempt was given up before the rank's end was reported, for the first time.
    fn is_stale(&self, rank: RankId, node: NodeId) -> bool {
        let Some(job) = self.jobs.get(&rank.attempt.job) else { return false };
        let attempt = job.attempt(rank.attempt.attempt).map(|it| it.attempt);
        let known = attempt.and_then(|attempt| attempt.ranks.get(rank.rank as usize));
        let was_lost =
            known.is_some_and(|it| it.node == node && matches!(it.outcome(), Some(Outcome::Lost(_))));
        was_lost && !job.events.iter().any(|event| event.kind == JobEventKind::StaleReport(rank))
    }

    /// Whether a report changes nothing, for it concerns no live rank and no device of this node. The shell
    /// need not write it down; the end of a rank has to be acknowledged all the same.
    pub fn changes_nothing(&self, key: WorkerKey, report: &Report) -> bool {
        let Some(node) = self.nodes.get(&key.node).filter(|node| node.key() == Some(key)) else {
            return true;
        };
        match report {
            Report::Started { rank, .. }
            | Report::Sharing { rank, .. }
            | Report::PrivateUser { rank, .. } => !self.is_live(*rank, key.node),
            Report::Stalled { attempt, .. }
            | Report::Idle { attempt, .. }
            | Report::SignalSent { attempt, .. }
            | Report::Checkpoints { attempt, .. } => !self.has_attempt_on(*attempt, key.node),
            Report::Active(attempt) => !(self.is_idle(*attempt) && self.has_attempt_on(*attempt, key.node)),
            Report::Allotted { attempt, .. } => !self.awaits_allotment(key.node, *attempt),
            Report::Ended { rank, .. } => {
                !self.is_live(*rank, key.node)
                    && !self.is_prefetched(*rank, key.node)
                    && !self.is_stale(*rank, key.node)
            }
            Report::Condition { device, .. } => {
                // An event that is not applied yet may have set another condition, so equal ones count.
                node.devices.iter().all(|it| it.device.id != *device)
            }
            Report::Progress(_) | Report::Telemetry(_) | Report::Usage(_) | Report::ColocationSamples(_) => {
                false
            }
        }
    }

    /// The name that the worker wants, with a number if another node has it already.
    fn free_name(&self, id: NodeId, wanted: &str) -> String {
        let taken = |name: &str| self.nodes.iter().any(|(other, node)| *other != id && node.name == name);
        let numbered = (2..).map(|n| format!("{wanted}-{n}"));
        std::iter::once(wanted.to_owned()).chain(numbered).find(|name| !taken(name)).unwrap_or_default()
    }
}

fn live_ranks_on(attempt: &Attempt, node: NodeId, id: JobId) -> Vec<RankId> {
    let here = attempt.ranks.iter().enumerate().filter(|(_, rank)| rank.is_live() && rank.node == node);
    here.map(|(number, _)| id.attempt(attempt.number).rank(number as u32)).collect()
}
