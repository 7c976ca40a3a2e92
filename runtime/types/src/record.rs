//! Records of jobs and nodes, as `list`, `show` and `nodes` show them and the history keeps them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    Bytes, CodeSnapshot, Demand, Device, DeviceId, DeviceTelemetry, Enforcement, HostShare, Isolation, JobId,
    JobSpec, JobState, LinkBandwidths, NodeDrain, NodeId, Outcome, OutputFiles, Progress, ReasonCode, Share,
    SharingLimits, Signal, Slowdown, Span, StopReason, Sweep, Time,
};

/// The record of a job, an array as a whole, or a member.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobRecord {
    /// Which job.
    pub id: JobId,
    /// Its name.
    pub name: String,
    /// Who submitted it.
    pub user: String,
    /// Its group of recurring jobs.
    pub group: Option<String>,
    /// Its state.
    pub state: JobState,
    /// Why, for programs.
    pub reason_code: ReasonCode,
    /// Why, for people.
    pub reason: String,
    /// What it runs: program and arguments with spaces between them, or the part of an application.
    pub work: String,
    /// The command as it can be typed into a shell, where that differs.
    #[serde(default)]
    pub shell_command: Option<String>,
    /// What it needs.
    pub demand: Demand,
    /// Its priority.
    pub priority: i32,
    /// How long an attempt may run.
    pub time_limit: Option<Span>,
    /// The directory it starts in.
    pub workdir: String,
    /// Its code as it was at submission, if it runs in a snapshot of it.
    #[serde(default)]
    pub code: Option<CodeSnapshot>,
    /// The root job of its application, if it is a child of one.
    #[serde(default)]
    pub application: Option<JobId>,
    /// The number of the latest attempt; 0 before the first.
    pub attempt: u32,
    /// Every attempt, the oldest first.
    pub attempts: Vec<AttemptRecord>,
    /// How it exited, once it did: the first code that is not 0 among its ranks.
    pub exit_code: Option<i32>,
    /// The signal that ended it, if one did.
    pub signal: Option<Signal>,
    /// When it was submitted.
    pub submitted_at: Time,
    /// When its latest attempt was placed.
    pub started_at: Option<Time>,
    /// When it ended.
    pub ended_at: Option<Time>,
    /// Other jobs on the same devices now.
    pub sharing_with: Vec<JobId>,
    /// What its specification says of the training.
    #[serde(default)]
    pub trained: TrainingSpec,
    /// What was predicted at submission, corrected by its own progress.
    pub predicted: Option<JobPrediction>,
    /// Its slowdown factor beside its present neighbors, as far as jobs like these were measured beside each
    /// other.
    #[serde(default)]
    pub slowdown_measured: Option<Slowdown>,
    /// Its progress.
    pub progress: Option<Progress>,
    /// Its members, if it is an array as a whole.
    pub array: Option<ArraySummary>,
    /// Grows with every change that a watcher should see.
    pub revision: u64,
    /// What its specification says for people.
    #[serde(default)]
    pub labels: JobLabels,
}

/// What a job's specification says for people, and no rule depends on.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobLabels {
    /// The partition that a script for Slurm names.
    pub partition: Option<String>,
    /// Files that its output is written to, besides its log.
    pub output: OutputFiles,
    /// The text of this member, if it is one of an array from a file.
    pub entry: Option<String>,
    /// The directory for checkpoints that it names; without one its workers keep them.
    pub checkpoint: Option<String>,
    /// How the members are compared, if it is a sweep or a member of one.
    #[serde(default)]
    pub sweep: Option<Sweep>,
}

impl JobLabels {
    /// Whether nothing is said.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == JobLabels::default()
    }

    /// The part of the specification of this job.
    #[must_use]
    pub fn of(spec: &JobSpec, id: JobId) -> JobLabels {
        let entry = spec.entry(id.index).cloned();
        let checkpoint = spec.checkpoint_of(id);
        let (partition, output) = (spec.partition.clone(), spec.output.clone());
        JobLabels { partition, output, entry, checkpoint, sweep: spec.sweep.clone() }
    }
}

/// What a job's specification says of its training, as far as run times of other jobs can be learned from it.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrainingSpec {
    /// The name of the model.
    pub model: Option<String>,
    /// Samples in one step of one rank.
    pub batch_size: Option<u64>,
    /// What it computes in.
    #[serde(default)]
    pub precision: Option<String>,
    /// Replicas of each stage of the pipeline; empty where none are given.
    pub replicas: Vec<u32>,
    /// Iterations, where the user knows them.
    pub iterations: Option<u64>,
}

impl TrainingSpec {
    /// The part of a job's specification.
    #[must_use]
    pub fn of(spec: &JobSpec) -> TrainingSpec {
        let model = spec.model.as_ref();
        TrainingSpec {
            model: model.and_then(|it| it.name.clone()),
            batch_size: model.and_then(|it| it.batch_size),
            precision: model.and_then(|it| it.precision.clone()),
            replicas: model.map_or_else(Vec::new, |it| it.stages.iter().map(|it| it.replicas).collect()),
            iterations: spec.iterations.or_else(|| model?.total_iterations()),
        }
    }
}

/// One try to run a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttemptRecord {
    /// From 1.
    pub attempt: u32,
    /// When it was placed.
    pub started_at: Time,
    /// When its last rank ended.
    pub ended_at: Option<Time>,
    /// Why it was stopped, if it was.
    pub stopped: Option<StopReason>,
    /// Its ranks.
    pub ranks: Vec<RankRecord>,
    /// Cores and host memory that it holds, or held at its end, on each of its nodes, in the order of node
    /// ranks; empty if what it claims is fixed.
    #[serde(default)]
    pub host: Vec<HostShare>,
    /// If it runs, and has done nothing for long enough that its worker told.
    #[serde(default)]
    pub idle: Option<IdleRecord>,
}

/// An attempt that does nothing, and what becomes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdleRecord {
    /// Since when.
    pub since: Time,
    /// When it may be stopped because a job waits for its place; never, unless its job is interactive.
    pub stop_from: Option<Time>,
    /// When it is stopped even if nobody waits.
    pub stop_at: Option<Time>,
}

/// One process of an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankRecord {
    /// The node's name.
    pub node: String,
    /// Its devices there.
    pub devices: Vec<DeviceId>,
    /// How much of each.
    pub share: Share,
    /// How it ended.
    pub outcome: Option<Outcome>,
    /// Whether its limits are, or were, enforced; nothing if it shares no device, or that is not known yet.
    #[serde(default)]
    pub enforcement: Option<Enforcement>,
    /// Memory it holds on its devices now, where a driver tells.
    #[serde(default)]
    pub gpu_memory: Option<Bytes>,
    /// Whether the cores and the host memory that its job claims are, or were, limits; nothing if it claims
    /// none.
    #[serde(default)]
    pub host_limits: Option<Enforcement>,
    /// As which user it runs, or ran, if its own has no account on the node.
    #[serde(default)]
    pub private_uid: Option<u32>,
}

/// What was predicted for a job.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobPrediction {
    /// Training iterations.
    pub iterations: Option<u64>,
    /// Time it runs for when alone: half of the runs that this rests on took less. None without evidence.
    pub runtime: Option<Span>,
    /// The times between which eight of ten such runs lie.
    #[serde(default)]
    pub runtime_between: Option<[Span; 2]>,
    /// The number of completed runs that this rests on.
    #[serde(default)]
    pub runs: Option<u32>,
    /// Its slowdown factor beside its neighbors: the present ones, as far as they are known, or else as was
    /// expected when the latest attempt was placed.
    #[serde(default)]
    pub slowdown: Option<Slowdown>,
    /// Memory that it needs on each of its devices, where it did not say.
    #[serde(default)]
    pub gpu_memory: Option<Bytes>,
    /// When it may start.
    pub starts_at: Option<Time>,
    /// The times between which eight of ten such starts lie, where that rests on run times of earlier jobs.
    #[serde(default)]
    pub starts_between: Option<[Time; 2]>,
    /// When it may end.
    pub ends_at: Option<Time>,
    /// The times between which eight of ten such runs would end, where that rests on earlier runs.
    #[serde(default)]
    pub ends_between: Option<[Time; 2]>,
}

/// The members of an array by state.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArraySummary {
    /// How many there are.
    pub members: u64,
    /// How many are in each state; states with none are left out.
    pub states: BTreeMap<JobState, u64>,
}

impl ArraySummary {
    /// Members in this state.
    #[must_use]
    pub fn count(&self, state: JobState) -> u64 {
        self.states.get(&state).copied().unwrap_or(0)
    }

    /// Members that ended, in whatever way.
    #[must_use]
    pub fn ended(&self) -> u64 {
        self.states.iter().filter(|(state, _)| state.is_terminal()).map(|(_, count)| count).sum()
    }
}

impl JobRecord {
    /// What it runs, in one line for people: a command is quoted.
    #[must_use]
    pub fn command_line(&self) -> &str {
        self.shell_command.as_deref().unwrap_or(&self.work)
    }

    /// The latest attempt.
    #[must_use]
    pub fn latest(&self) -> Option<&AttemptRecord> {
        self.attempts.last()
    }

    /// Names of the nodes of the latest attempt, each once.
    #[must_use]
    pub fn nodes(&self) -> Vec<String> {
        let mut nodes: Vec<String> = Vec::new();
        for rank in self.latest().map_or(&[][..], |attempt| &attempt.ranks) {
            if !nodes.contains(&rank.node) {
                nodes.push(rank.node.clone());
            }
        }
        nodes
    }

    /// The name of the node of a rank of the latest attempt.
    #[must_use]
    pub fn node_of(&self, rank: u32) -> Option<&str> {
        Some(&self.latest()?.ranks.get(rank as usize)?.node)
    }

    /// Whether the limits of the latest attempt are, or were, enforced: all of them, or why one is not.
    /// Nothing if it shares no device, or that is not known yet.
    #[must_use]
    pub fn sharing(&self) -> Option<&Enforcement> {
        let known =
            || self.latest().into_iter().flat_map(|it| &it.ranks).filter_map(|it| it.enforcement.as_ref());
        known().find(|it| **it != Enforcement::Enforced).or_else(|| known().next())
    }

    /// Whether the cores and the host memory that it claims are, or were, limits in its latest attempt: on
    /// all its nodes, or on which one they are not. Nothing if it claims none, or has had no attempt.
    #[must_use]
    pub fn host_limits(&self) -> Option<(&str, &Enforcement)> {
        let ranks = || self.latest().into_iter().flat_map(|it| &it.ranks);
        let known = || ranks().filter_map(|it| Some((it.node.as_str(), it.host_limits.as_ref()?)));
        known().find(|(_, it)| **it != Enforcement::Enforced).or_else(|| known().next())
    }

    /// Devices of the latest attempt.
    #[must_use]
    pub fn devices(&self) -> Vec<DeviceId> {
        self.latest()
            .map_or(&[][..], |attempt| &attempt.ranks)
            .iter()
            .flat_map(|rank| rank.devices.clone())
            .collect()
    }

    /// The exit code that `run` and `wait` pass on: the job's own, 128 + signal, 124 to 127, or 0.
    ///
    /// None while the job lives.
    #[must_use]
    pub fn shell_code(&self) -> Option<i32> {
        if !self.state.is_terminal() {
            return None;
        }
        Some(match (self.state, self.reason_code) {
            (JobState::Completed, _) => 0,
            (JobState::Timeout, _) => 124,
            (_, ReasonCode::CommandNotFound) => 127,
            (_, ReasonCode::NotExecutable) => 126,
            (JobState::Cancelled, _) => 130,
            _ => match (self.signal, self.exit_code) {
                (Some(signal), _) => 128 + signal.0,
                (None, Some(code)) if code != 0 => code,
                (None, _) if self.array.is_some() => 1,
                (None, _) => 125,
            },
        })
    }
}

/// The record of a node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodeRecord {
    /// The id.
    pub id: NodeId,
    /// Its name.
    pub name: String,
    /// Its state.
    pub state: NodeState,
    /// Why ranks do not start on it, until one does.
    pub problem: Option<String>,
    /// Why it gets no new jobs, if an admin drained it.
    #[serde(default)]
    pub drain: Option<NodeDrain>,
    /// Where other nodes reach it.
    pub address: String,
    /// Version of its worker.
    pub build: String,
    /// Its cores.
    pub cpus: u32,
    /// Cores that jobs claim.
    pub cpus_used: u32,
    /// Its memory.
    pub memory: Bytes,
    /// Memory that jobs claim.
    pub memory_used: Bytes,
    /// Its devices and the jobs on them.
    pub devices: Vec<DeviceRecord>,
    /// How fast its devices reach each other, as far as it is known.
    pub links: LinkBandwidths,
    /// How far its devices may be shared.
    pub sharing: SharingLimits,
    /// What its worker keeps apart.
    pub isolation: Isolation,
    /// Jobs that run on it.
    pub jobs: Vec<JobId>,
    /// When its state last changed.
    pub since: Time,
}

/// A device and the jobs on it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeviceRecord {
    /// The device.
    pub device: Device,
    /// How much of it is taken.
    pub used: Share,
    /// How much of its memory jobs claim.
    pub memory_used: Bytes,
    /// Its co-location set.
    pub jobs: Vec<JobId>,
    /// What it last showed, where it is a GPU whose worker is connected.
    pub telemetry: Option<DeviceTelemetry>,
}

/// The state of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum NodeState {
    /// Connected, takes jobs.
    Up,
    /// Connected, but a rank found no room on it: no new jobs for a while.
    Paused,
    /// Connected, takes no new jobs; some still run.
    Draining,
    /// Connected, takes no new jobs; none runs.
    Drained,
    /// Its link broke; its attempts are not given up yet.
    Unreachable,
    /// Gone; its attempts were given up.
    Lost,
}

impl NodeState {
    /// The state as people and scripts see it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            NodeState::Up => "UP",
            NodeState::Paused => "PAUSED",
            NodeState::Draining => "DRAINING",
            NodeState::Drained => "DRAINED",
            NodeState::Unreachable => "UNREACHABLE",
            NodeState::Lost => "LOST",
        }
    }
}
