//! What the progress of running jobs tells of their sensitivity.
//!
//! A job that goes on beside the same neighbors with another share shows what the change was worth: the ratio
//! of its speeds before and after. Ratios of all jobs of one name are joined into a table. Nothing else is
//! compared: jobs of one name may train with different batches, and neighbors slow jobs down.

use std::collections::BTreeMap;
use std::sync::Arc;

use cohabit_types::{HostShare, JobId, Span, Time};

use super::profiles::names;
use super::speed_levels::SpeedLevels;
use super::table::SensitivityTable;
use crate::{JobTraits, RunPhase, RunningJob, View, ViewChange};

/// A process needs a moment to get used to another share.
const SETTLING: Span = Span::from_secs(10);

/// Speeds are measured over at least this long,
const SHORTEST_WINDOW: Span = Span::from_secs(20);

/// and over at least so many steps.
const FEWEST_STEPS: u64 = 10;

/// The names of which something is learned.
const MOST_NAMES: usize = 10_000;

/// Tables that are learned while jobs run.
#[derive(Debug, Default, Clone)]
pub(crate) struct LearnedSensitivity {
    levels: BTreeMap<String, SpeedLevels>,
    tables: BTreeMap<String, Arc<SensitivityTable>>,
    watched: BTreeMap<JobId, WatchedJob>,
}

/// A job whose speed is measured.
#[derive(Debug, Clone)]
struct WatchedJob {
    conditions: Conditions,
    /// Its first report under these conditions, once it has settled.
    first: Option<(u64, Time)>,
    /// Its speed under these conditions, in steps a second.
    speed: Option<f64>,
    /// Its share and its speed before, if only the share has changed since.
    before: Option<(HostShare, f64)>,
}

/// What decides how fast a job is.
#[derive(Debug, Clone, PartialEq)]
struct Conditions {
    share: HostShare,
    started_at: Time,
    neighbors: Vec<JobId>,
}

impl LearnedSensitivity {
    /// Learns from what changed; the view contains it already.
    pub(crate) fn learn(&mut self, view: &View, changes: &[ViewChange]) {
        for change in changes {
            match change {
                ViewChange::Running(job) if job.demand.is_fungible() => self.observe(view, job),
                ViewChange::Pending(job) => _ = self.watched.remove(&job.id),
                ViewChange::Gone(job) => _ = self.watched.remove(job),
                ViewChange::Running(_)
                | ViewChange::Node(_)
                | ViewChange::NodeGone(_)
                | ViewChange::Shares(_) => {}
            }
        }
    }

    /// The table of a job, as far as one was learned.
    pub(crate) fn find(&self, traits: &JobTraits) -> Option<&Arc<SensitivityTable>> {
        names(traits).next().and_then(|name| self.tables.get(name))
    }

    /// Whether the speed of a job under its present conditions is known.
    pub(crate) fn has_speed(&self, job: JobId) -> bool {
        self.watched.get(&job).is_some_and(|watched| watched.speed.is_some())
    }

    /// Whether a change of a job's share is being measured.
    pub(crate) fn is_measuring(&self, job: JobId) -> bool {
        self.watched.get(&job).is_some_and(|watched| watched.before.is_some())
    }

    fn observe(&mut self, view: &View, job: &RunningJob) {
        let conditions = Conditions {
            share: job.host_share(),
            started_at: job.started_at,
            neighbors: neighbors(view, job),
        };
        let watched = self.watched.entry(job.id).or_insert_with(|| WatchedJob::under(conditions.clone()));
        watched.meet(conditions);
        let Some((step, at)) = job.steps.filter(|_| is_steady(job)) else { return };
        if let Some((before, ratio)) = watched.report(step, at, job.allotted_at) {
            self.compare(job, before, ratio);
        }
    }

    /// The job is faster by this factor than with the share before.
    fn compare(&mut self, job: &RunningJob, before: HostShare, ratio: f64) {
        let Some(name) = names(&job.traits).next() else { return };
        if self.levels.len() >= MOST_NAMES && !self.levels.contains_key(name) {
            return;
        }
        let devices = job.demand.devices().max(1);
        let levels = self.levels.entry(name.to_owned()).or_default();
        levels.add(before, job.host_share(), devices, ratio);
        if let Some(table) = levels.table() {
            self.tables.insert(name.to_owned(), Arc::new(table));
        }
    }
}

impl WatchedJob {
    const fn under(conditions: Conditions) -> WatchedJob {
        WatchedJob { conditions, first: None, speed: None, before: None }
    }

    /// Begins anew if the conditions have changed.
    fn meet(&mut self, conditions: Conditions) {
        if conditions == self.conditions {
            return;
        }
        let same_but_share =
            Conditions { share: self.conditions.share, ..conditions.clone() } == self.conditions;
        let before = self.speed.filter(|_| same_but_share).map(|speed| (self.conditions.share, speed));
        *self = WatchedJob { before, ..WatchedJob::under(conditions) };
    }

    /// Its step at a time. Returns the share before and the ratio of its speeds since and then, once that is
    /// known.
    fn report(&mut self, step: u64, at: Time, changed_at: Time) -> Option<(HostShare, f64)> {
        if at < changed_at + SETTLING {
            return None;
        }
        let Some((first, since)) = self.first else {
            self.first = Some((step, at));
            return None;
        };
        let (steps, length) = (step.saturating_sub(first), at.since(since));
        if length < SHORTEST_WINDOW || steps < FEWEST_STEPS {
            return None;
        }
        let speed = steps as f64 / length.as_secs_f64();
        self.speed = Some(speed);
        self.before.take().map(|(share, before)| (share, speed / before))
    }
}

fn is_steady(job: &RunningJob) -> bool {
    job.phase == RunPhase::Running && job.allotting.is_none()
}

/// The other jobs on its devices.
fn neighbors(view: &View, job: &RunningJob) -> Vec<JobId> {
    let mut neighbors: Vec<JobId> = Vec::new();
    for part in &job.placement.parts {
        let Some(node) = view.nodes.iter().find(|node| node.id == part.node) else { continue };
        let devices = node.devices.iter().filter(|device| part.devices.contains(&device.id));
        neighbors.extend(devices.flat_map(|device| device.jobs.iter().copied()).filter(|it| *it != job.id));
    }
    neighbors.sort_unstable();
    neighbors.dedup();
    neighbors
}
