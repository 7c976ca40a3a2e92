//! What goes into the feed: what happened to jobs, nodes and GPUs that people may want to be told.
//!
//! An array is told of as a whole: when its first member starts and when its last one has ended. Stalls and
//! new attempts of its members are told one by one. Children of applications are the business of their
//! application.

use std::collections::BTreeMap;

use cohabit_types::{
    DeviceId, FeedEvent, FeedJob, FeedKind, Health, JobId, JobRecord, NodeId, NotifyRequest, counted,
    shortened,
};

use crate::head::Head;
use crate::interface::Effect;
use crate::job::RankPhase;
use crate::node::Node;
use crate::transition::Transition;

/// The longest text of an entry, in bytes, and of each text in it.
const LONGEST_TEXT: usize = 500;
/// The longest name in an entry, in bytes.
const LONGEST_NAME: usize = 200;
/// The most nodes of a job that an entry names.
const MOST_NODES: usize = 16;

impl Transition<'_> {
    /// A rank of the live attempt runs: tells of the attempt, if it is the first of its ranks.
    pub(crate) fn tell_start(&mut self, id: JobId) {
        let Some(attempt) = self.head.jobs.get(&id).and_then(|job| job.live_attempt()) else { return };
        let begun = attempt.ranks.iter().filter(|rank| rank.phase != RankPhase::Ordered).count();
        if id.index.is_none() && begun == 1 {
            let (number, ranks) = (attempt.number, attempt.ranks.len());
            let text = format!("attempt {number} runs, with {}", counted(ranks, "rank", "ranks"));
            self.tell_of_job(id, FeedKind::Start, text);
        }
    }

    /// The first member of an array was placed.
    pub(crate) fn tell_array_start(&mut self, number: u64) {
        self.tell_of_job(JobId::new(number), FeedKind::Start, "its first member starts".to_owned());
    }

    /// A job, or an array as a whole, has ended with this record.
    pub(crate) fn tell_end(&mut self, record: &JobRecord) {
        if let Some(kind) = FeedKind::of_end(record.state).filter(|_| record.id.index.is_none()) {
            self.tell(record, kind, record.reason.clone());
        }
    }

    /// Tells of a job, a member or an array as a whole.
    pub(crate) fn tell_of_job(&mut self, id: JobId, kind: FeedKind, text: String) {
        if let Some(record) = self.head.at(self.now).record(id) {
            self.tell(&record, kind, text);
        }
    }

    fn tell(&mut self, record: &JobRecord, kind: FeedKind, text: String) {
        if record.application.is_some() {
            return;
        }
        let job = Some(feed_job(record, self.head.requests_for(record.id, kind)));
        self.add_to_feed(FeedEvent { at: self.now, kind, job, node: None, device: None, text });
    }

    pub(crate) fn tell_of_node(&mut self, node: NodeId, kind: FeedKind, text: String) {
        let node = self.head.nodes.get(&node).map(|node| node.name.clone());
        self.add_to_feed(FeedEvent { at: self.now, kind, job: None, node, device: None, text });
    }

    /// Tells which devices of a node are out of service that were not in these, or the other way round.
    pub(crate) fn tell_fenced(&mut self, id: NodeId, before: &BTreeMap<DeviceId, String>) {
        let Some(node) = self.head.nodes.get(&id) else { return };
        let (name, now) = (node.name.clone(), node.fenced());
        let is_there = |device: &DeviceId| node.devices.iter().any(|it| it.device.id == *device);
        let back: Vec<DeviceId> =
            before.keys().filter(|it| is_there(it) && !now.contains_key(*it)).cloned().collect();
        let back = back.into_iter().map(|it| (it, FeedKind::GpuBack, "it is in service again".to_owned()));
        let fenced = now.into_iter().filter(|(device, _)| !before.contains_key(device));
        let fenced = fenced.map(|(device, why)| (device, FeedKind::GpuFenced, why));
        for (device, kind, text) in back.chain(fenced) {
            let (node, device) = (Some(name.clone()), Some(device));
            self.add_to_feed(FeedEvent { at: self.now, kind, job: None, node, device, text });
        }
    }

    fn add_to_feed(&mut self, event: FeedEvent) {
        let text = shortened(&event.text, LONGEST_TEXT);
        self.effect(Effect::AddToFeed(Box::new(FeedEvent { text, ..event })));
    }
}

impl Head {
    /// What the user of a job has asked for that covers this kind.
    fn requests_for(&self, id: JobId, kind: FeedKind) -> Vec<NotifyRequest> {
        let requests = self.submissions.get(&id.number).map_or(&[][..], |it| &it.spec.notify);
        requests.iter().filter(|request| request.event.covers(kind)).cloned().collect()
    }
}

impl Node {
    /// Its devices that are out of service until somebody has looked after them, and why.
    pub(crate) fn fenced(&self) -> BTreeMap<DeviceId, String> {
        let fenced = self.devices.iter().filter_map(|it| match &it.device.condition.health {
            Health::Fenced(why) => Some((it.device.id.clone(), why.clone())),
            Health::Well | Health::Recovering(_) => None,
        });
        fenced.collect()
    }
}

fn feed_job(record: &JobRecord, requests: Vec<NotifyRequest>) -> FeedJob {
    let mut nodes = record.nodes();
    nodes.truncate(MOST_NODES);
    FeedJob {
        id: record.id,
        name: shortened(&record.name, LONGEST_NAME),
        user: record.user.clone(),
        state: record.state,
        reason_code: record.reason_code,
        reason: shortened(&record.reason, LONGEST_TEXT),
        attempt: record.attempt,
        exit_code: record.exit_code,
        signal: record.signal,
        nodes,
        array: record.array.clone(),
        submitted_at: record.submitted_at,
        started_at: record.started_at,
        ended_at: record.ended_at,
        requests,
    }
}
