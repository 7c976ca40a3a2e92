//! The users: what each holds now, and what each waits for.

use std::collections::BTreeMap;

use askama::Template;
use cohabit_client::types::{JobPhase, JobRecord, JobState, Time};

use super::line;
use super::queue::queue_of;
use crate::cluster::Cluster;

/// All users with live jobs.
#[derive(Template)]
#[template(path = "people.html")]
pub(crate) struct People {
    pub(crate) rows: Vec<PersonRow>,
    pub(crate) devices: usize,
}

/// A user.
#[derive(Debug)]
pub(crate) struct PersonRow {
    pub(crate) name: String,
    /// The address of the user's live jobs.
    pub(crate) queue: String,
    pub(crate) held: String,
    pub(crate) per_cent: u32,
    pub(crate) running: u64,
    pub(crate) waiting: u64,
    pub(crate) on_hold: u64,
    pub(crate) wanted: String,
    pub(crate) oldest_wait: String,
}

/// What one user has.
#[derive(Debug, Default)]
struct Usage {
    held: f64,
    running: u64,
    waiting: u64,
    on_hold: u64,
    wanted: f64,
    oldest: Option<Time>,
}

impl People {
    pub(crate) fn new(cluster: &Cluster) -> People {
        let mut usage: BTreeMap<&str, Usage> = BTreeMap::new();
        for job in cluster.jobs.live() {
            usage.entry(&job.user).or_default().add(job);
        }
        let devices = cluster.nodes.iter().map(|node| node.devices.len()).sum();
        let mut users: Vec<(&str, Usage)> = usage.into_iter().collect();
        users.sort_by(|(_, one), (_, other)| other.held.total_cmp(&one.held));
        let now = cluster.as_of();
        People { rows: users.iter().map(|(name, usage)| usage.row(name, devices, now)).collect(), devices }
    }
}

impl Usage {
    /// Adds a live job. Members of an array that wait are counted by the array as a whole.
    fn add(&mut self, job: &JobRecord) {
        if job.state.phase() == JobPhase::Placed && job.array.is_none() {
            let ranks = job.latest().map_or(&[][..], |attempt| &attempt.ranks);
            self.held += ranks.iter().map(|it| it.share.as_f64() * it.devices.len() as f64).sum::<f64>();
            self.running += 1;
        }
        if job.id.index.is_some() {
            return;
        }
        let count = |state| job.array.as_ref().map_or(u64::from(job.state == state), |it| it.count(state));
        let (waiting, on_hold) = (count(JobState::Pending), count(JobState::Held));
        self.waiting += waiting;
        self.on_hold += on_hold;
        self.wanted += waiting as f64 * job.demand.total_milli() as f64 / 1_000.0;
        if waiting > 0 {
            self.oldest = self.oldest.into_iter().chain([job.submitted_at]).min();
        }
    }

    fn row(&self, name: &str, devices: usize, now: Time) -> PersonRow {
        let part = if devices == 0 { 0.0 } else { self.held / devices as f64 };
        PersonRow {
            name: line(name),
            queue: queue_of(name),
            held: rounded(self.held),
            per_cent: (part * 100.0).round().clamp(0.0, 100.0) as u32,
            running: self.running,
            waiting: self.waiting,
            on_hold: self.on_hold,
            wanted: rounded(self.wanted),
            oldest_wait: self.oldest.map_or(String::new(), |at| now.since(at).to_string()),
        }
    }
}

fn rounded(gpus: f64) -> String {
    format!("{}", (gpus * 100.0).round() / 100.0)
}
