//! What a policy sees: the nodes that accept jobs, the jobs that may start, and those that run.
//!
//! Only data lives here. Whether a demand fits is decided in `device_fit.rs` and `free_nodes.rs`.

use std::collections::BTreeMap;
use std::sync::Arc;

use cohabit_fair_share::{Division, FairShares, GPU, Line, Party, RecentUse, Turns, wanted};
use cohabit_types::{
    AccountKey, Bytes, Demand, DeviceId, DeviceKind, Estimate, GpuPeer, HostShare, JobId, JobSpec,
    LaunchMode, LinkBandwidths, ModelDescription, NodeId, Placement, Qos, ReservationSet, Share, ShareTable,
    Span, Time, TrainingSpec,
};

/// The cluster at one moment, as far as a policy may use it. It is kept up to date by [`ViewChange`]s, so
/// that a plan costs what changed and not what exists.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct View {
    /// The current time.
    pub now: Time,
    /// Nodes that accept jobs, in the order in which they first joined.
    pub nodes: Vec<NodeView>,
    /// Jobs that could start now if resources were free. An array shows at most as many members as could
    /// possibly start at once, plus those that the policy itself stopped.
    pub pending: BTreeMap<JobId, PendingJob>,
    /// Jobs that hold devices.
    pub running: BTreeMap<JobId, RunningJob>,
    /// What everybody holds, used and is entitled to; `None` where users do not take turns.
    pub fair_shares: Option<FairShares>,
}

/// One difference between a view and the next.
#[derive(Debug, Clone, PartialEq)]
pub enum ViewChange {
    /// A node accepts jobs, and this is what it has left.
    Node(NodeView),
    /// A node no longer accepts jobs.
    NodeGone(NodeId),
    /// A job could start if resources were free: a new one, or one that lost its devices.
    Pending(PendingJob),
    /// A job holds devices, or more is known about its end.
    Running(RunningJob),
    /// A job neither waits for resources nor holds devices.
    Gone(JobId),
    /// Users take turns, and this is known of them.
    Shares(SharesChange),
}

/// What becomes known of users who take turns.
#[derive(Debug, Clone, PartialEq)]
pub enum SharesChange {
    /// They do so by this table. It comes before all other changes of a view.
    Table(Arc<ShareTable>),
    /// What a user holds and used.
    Used(String, RecentUse),
}

impl View {
    /// Applies the changes in order.
    pub fn apply(&mut self, changes: &[ViewChange]) {
        changes.iter().for_each(|change| self.apply_one(change));
    }

    fn apply_one(&mut self, change: &ViewChange) {
        match change {
            ViewChange::Node(node) => self.apply_node(node),
            ViewChange::NodeGone(id) => {
                if let Some(place) = self.nodes.iter().position(|node| node.id == *id) {
                    let gone = self.nodes.remove(place);
                    self.count_capacity(self.priced(&gone), 0);
                }
            }
            ViewChange::Pending(job) => {
                self.running.remove(&job.id);
                self.pending.insert(job.id, job.clone());
                if let Some(shares) = &mut self.fair_shares {
                    shares.user(&job.traits.user);
                }
            }
            ViewChange::Running(job) => {
                self.pending.remove(&job.id);
                self.running.insert(job.id, job.clone());
                if let Some(shares) = &mut self.fair_shares {
                    shares.user(&job.traits.user);
                }
            }
            ViewChange::Gone(id) => {
                self.pending.remove(id);
                self.running.remove(id);
            }
            ViewChange::Shares(SharesChange::Table(table)) => {
                let shares = self.fair_shares.get_or_insert_with(|| FairShares::new(Arc::clone(table)));
                shares.set_table(Arc::clone(table));
                let capacity = capacity(shares, &self.nodes);
                shares.set_capacity(capacity);
            }
            ViewChange::Shares(SharesChange::Used(user, used)) => {
                if let Some(shares) = &mut self.fair_shares {
                    shares.set_usage(user, *used);
                }
            }
        }
    }

    fn apply_node(&mut self, node: &NodeView) {
        let before = match self.nodes.binary_search_by_key(&node.ordinal, |it| it.ordinal) {
            Ok(known) => {
                let before = self.priced(&self.nodes[known]);
                self.nodes[known].clone_from(node);
                before
            }
            Err(place) => {
                self.nodes.insert(place, node.clone());
                0
            }
        };
        self.count_capacity(before, self.priced(node));
    }

    /// What a node adds to the capacity that is divided among users.
    fn priced(&self, node: &NodeView) -> u64 {
        self.fair_shares.as_ref().map_or(0, |shares| capacity(shares, std::slice::from_ref(node)))
    }

    /// The capacity is kept by the changes: a plan must not look at all devices.
    fn count_capacity(&mut self, before: u64, after: u64) {
        if let Some(shares) = &mut self.fair_shares
            && let Some(capacity) = shares.capacity()
        {
            shares.set_capacity((capacity + after).saturating_sub(before));
        }
    }

    /// The user of jobs with these traits, among those who take turns; without fair share all jobs belong to
    /// one.
    pub(crate) fn party(&self, traits: &JobTraits) -> Party {
        self.fair_shares.as_ref().and_then(|shares| shares.party(&traits.user)).unwrap_or_default()
    }

    /// The line of jobs with these traits; without fair share all jobs are in one.
    pub(crate) fn line(&self, traits: &JobTraits) -> Line {
        match self.fair_shares {
            Some(_) => Line { party: self.party(traits), qos: traits.qos },
            None => Line::default(),
        }
    }

    /// The turns of those lines of which jobs wait. `waiting` says what the jobs of a user that wait would
    /// hold, in thousandths of a GPU. What was told to stop is not held any more. `None` where users do not
    /// take turns.
    pub(crate) fn turns(
        &self,
        lines: impl Iterator<Item = Line>,
        waiting: impl Fn(Party) -> u64,
    ) -> Option<Turns> {
        let shares = self.fair_shares.as_ref()?;
        let mut turns = Turns::new(shares, &self.division(shares, waiting), lines);
        for job in self.running.values().filter(|job| job.phase == RunPhase::Stopping) {
            turns.release(self.party(&job.traits), job.holds);
        }
        Some(turns)
    }

    /// What everybody is entitled to now.
    fn division(&self, shares: &FairShares, waiting: impl Fn(Party) -> u64) -> Division {
        let count = || capacity(shares, &self.nodes);
        let capacity = shares.capacity().unwrap_or_else(count);
        debug_assert_eq!(capacity, count(), "a node changed, and the capacity was not told");
        shares.divide(self.now, capacity, waiting)
    }

    /// The whole view as changes of an empty one, for a policy that has seen nothing. Pending jobs come in
    /// the order in which they could first have run.
    #[must_use]
    pub fn as_changes(&self) -> Vec<ViewChange> {
        let nodes = self.nodes.iter().cloned().map(ViewChange::Node);
        let mut pending: Vec<&PendingJob> = self.pending.values().collect();
        pending.sort_by_key(|job| (job.eligible_at, job.id));
        let running = self.running.values().cloned().map(ViewChange::Running);
        let shares = self.fair_shares.iter().flat_map(|shares| {
            let table = SharesChange::Table(Arc::clone(shares.table()));
            let used = shares.users().map(|(user, used)| SharesChange::Used(user.to_owned(), used));
            std::iter::once(table).chain(used).map(ViewChange::Shares)
        });
        let nodes = shares.chain(nodes);
        nodes.chain(running).chain(pending.into_iter().cloned().map(ViewChange::Pending)).collect()
    }
}

/// What the devices of these nodes that are in service amount to, by their prices, in thousandths of a GPU.
fn capacity(shares: &FairShares, nodes: &[NodeView]) -> u64 {
    let price = |device: &DeviceView| u64::from(shares.table().price(&device.model)) * GPU / 1_000;
    let devices = nodes.iter().flat_map(|node| &node.devices);
    devices.filter(|device| device.is_in_service()).map(price).sum()
}

/// A node that accepts jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeView {
    /// Its id.
    pub id: NodeId,
    /// Its position in the order in which nodes first joined.
    pub ordinal: u64,
    /// Its name, for texts that people read.
    pub name: String,
    /// All its CPU cores.
    pub cpus: u32,
    /// Cores that no job claims.
    pub cpus_free: u32,
    /// All its host memory.
    pub memory: Bytes,
    /// Host memory that no job claims.
    pub memory_free: Bytes,
    /// The most jobs that it runs at once; `None` if it does not say.
    pub max_jobs: Option<u32>,
    /// How many it runs.
    pub jobs: u32,
    /// Bandwidths between its devices, and from it to other nodes.
    pub links: LinkBandwidths,
    /// Whose demands alone it takes; `None` if it takes all.
    pub owner: Option<AccountKey>,
    /// The times for which it is reserved, now or later.
    pub windows: Vec<NodeWindow>,
    /// Whether it can fetch snapshots of code.
    pub fetches_code: bool,
    /// Whether applications may listen there for their processes on other nodes.
    pub application_ports: bool,
    /// Whether the cores and the host memory of jobs there may change while they run.
    pub changes_host_shares: bool,
    /// Its devices, in the order in which they are filled.
    pub devices: Vec<DeviceView>,
}

/// A time for which a node is reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeWindow {
    /// How long until it begins, in whole minutes, rounded down; zero from its beginning on.
    pub starts_in: Span,
    /// The reservation, by its position, if it admits anybody.
    pub admits: ReservationSet,
}

/// A device and what is left of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceView {
    /// Its id.
    pub id: DeviceId,
    /// A GPU, a host slot or a fake.
    pub kind: DeviceKind,
    /// The model's name.
    pub model: String,
    /// The share that no job has.
    pub free: Share,
    /// All its memory; `None` where the device has no memory of its own.
    pub memory: Option<Bytes>,
    /// Memory that no job claims.
    pub memory_free: Option<Bytes>,
    /// The jobs that use it: its co-location set.
    pub jobs: Vec<JobId>,
    /// Whether jobs may start on it now.
    pub availability: DeviceAvailability,
    /// How it may be shared.
    pub sharing: SharingTerms,
    /// Memory held by processes that Cohabit did not start.
    pub foreign_memory: Bytes,
    /// How it reaches other devices of its node, where that is known.
    pub peers: Vec<GpuPeer>,
}

/// Whether jobs may start on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceAvailability {
    /// They may.
    Open,
    /// Not yet: the device recovers by itself.
    Recovering,
    /// Not until a person has seen to it.
    Closed,
}

/// How a device may be shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharingTerms {
    /// Whether the limits of a share are enforced.
    pub mode: SharingMode,
    /// How many more ranks it may hold; `None` without a limit.
    pub ranks_free: Option<u32>,
    /// Memory that all jobs sharing it have to leave free together.
    pub reserve: Bytes,
    /// Whose jobs may share it.
    pub users: SharingUsers,
}

impl Default for SharingTerms {
    /// Any job may share it, and limits are only accounting.
    fn default() -> SharingTerms {
        SharingTerms {
            mode: SharingMode::Unenforced,
            ranks_free: None,
            reserve: Bytes::ZERO,
            users: SharingUsers::Several,
        }
    }
}

/// Whose jobs may share a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SharingUsers {
    /// Those of several users together.
    Several,
    /// Those of one user at a time: the one who uses it now, if anybody does.
    One(Option<AccountKey>),
}

/// Whether the limits of the jobs that share a device are enforced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SharingMode {
    /// They are enforced.
    Enforced,
    /// They are only accounting.
    Unenforced,
    /// The device cannot be shared.
    Exclusive,
}

/// A job that could start now if resources were free.
#[derive(Debug, Clone, PartialEq)]
pub struct PendingJob {
    /// Its id.
    pub id: JobId,
    /// A larger priority goes first.
    pub priority: i32,
    /// When it was submitted.
    pub submitted_at: Time,
    /// Since when it could have run.
    pub eligible_at: Time,
    /// The resources it needs.
    pub demand: Demand,
    /// What its earlier attempts had.
    pub attained: AttainedTime,
    /// What is known about it.
    pub traits: Arc<JobTraits>,
}

impl PendingJob {
    /// The job as it runs once it was placed; nothing is expected of its end.
    #[must_use]
    pub fn placed(self, placement: Placement, started_at: Time) -> RunningJob {
        let PendingJob { id, priority, submitted_at, eligible_at: _, demand, attained, traits } = self;
        RunningJob {
            id,
            priority,
            submitted_at,
            started_at,
            demand,
            placement,
            phase: RunPhase::Running,
            ends_at: None,
            reported_end: None,
            allotted_at: started_at,
            allotting: None,
            steps: None,
            attained,
            holds: wanted(&demand),
            reclaimable_from: Time::EPOCH,
            idle_from: None,
            traits,
        }
    }
}

/// What the ended attempts of a job had.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct AttainedTime {
    /// How long they held devices.
    pub held: Span,
    /// The same without what neighbors on the devices cost: divided by the slowdown that was predicted.
    pub worked: Span,
}

/// A job that holds devices.
#[derive(Debug, Clone, PartialEq)]
pub struct RunningJob {
    /// Its id.
    pub id: JobId,
    /// A larger priority is preempted later.
    pub priority: i32,
    /// When it was submitted.
    pub submitted_at: Time,
    /// When its attempt was placed.
    pub started_at: Time,
    /// The resources it was given.
    pub demand: Demand,
    /// The devices it holds.
    pub placement: Placement,
    /// Whether it is about to release them.
    pub phase: RunPhase,
    /// When it is expected to end: by its own progress, else by its estimate for these devices.
    pub ends_at: Option<Time>,
    /// When it ends by its own progress, where it reports any.
    pub reported_end: Option<Time>,
    /// When its cores and its host memory last changed.
    pub allotted_at: Time,
    /// What its worker was told to give it, and has not answered yet. Until then the placement says the
    /// larger of both amounts.
    pub allotting: Option<HostShare>,
    /// The step of its training that it last reported, and when.
    pub steps: Option<(u64, Time)>,
    /// What its earlier attempts had.
    pub attained: AttainedTime,
    /// What it keeps from others, in thousandths of a GPU.
    pub holds: u64,
    /// It may not be reclaimed before, because it was lately reclaimed as often as it may be.
    pub reclaimable_from: Time,
    /// It does nothing, and is stopped from then on if its place would help a job that waits.
    pub idle_from: Option<Time>,
    /// What is known about it.
    pub traits: Arc<JobTraits>,
}

impl RunningJob {
    /// The cores and the host memory that it holds on its first node.
    #[must_use]
    pub fn host_share(&self) -> HostShare {
        self.placement.parts.first().map_or_else(HostShare::default, |part| part.host_share(&self.demand))
    }
}

/// Whether a job that holds devices goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunPhase {
    /// It runs, or is being started.
    Running,
    /// It was told to stop: its devices become free soon.
    Stopping,
}

/// What is known about a job before it runs; all members of an array share it.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct JobTraits {
    /// The user who submitted it.
    pub user: String,
    /// Its name.
    pub name: String,
    /// Its group of recurring jobs.
    pub group: Option<String>,
    /// The model that it trains.
    pub model: Option<ModelDescription>,
    /// Its training iterations, where the user states them.
    pub iterations: Option<u64>,
    /// Its estimate, frozen at submission.
    pub estimate: Option<Estimate>,
    /// Its time limit.
    pub time_limit: Option<Span>,
    /// Who launches its ranks: only where we do can a rank be put on a chosen device.
    pub launch: LaunchMode,
    /// Whether the scheduler may stop it for a more urgent job.
    pub preemptible: bool,
    /// When its user's turn comes for it.
    pub qos: Qos,
}

impl JobTraits {
    /// The traits of a job of this user.
    #[must_use]
    pub fn of(user: &str, spec: &JobSpec, estimate: Option<Estimate>) -> JobTraits {
        JobTraits {
            user: user.to_owned(),
            name: spec.name.clone(),
            group: spec.group.clone(),
            model: spec.model.clone(),
            iterations: TrainingSpec::of(spec).iterations,
            estimate,
            time_limit: spec.time_limit,
            launch: spec.launch,
            preemptible: spec.preemptible,
            qos: spec.qos,
        }
    }
}
