//! Records: what the head shows of a job, an array as a whole, or a node.

use std::sync::Arc;

use cohabit_types::{
    ArraySummary, AttemptRecord, Bytes, ColocationSlowdown, DeviceId, JobId, JobLabels, JobPrediction,
    JobRecord, JobState, NodeId, NodeRecord, Progress, RankId, RankRecord, ReasonCode, Share, Slowdown, Time,
    TrainingSpec, WorkerKey, counted,
};

use crate::forecasts::is_by;
use crate::head::Head;
use crate::job::{AttemptRef, Job, JobExit, Rank};
use crate::reader::HeadReader;
use crate::submission::SubmissionState;

impl HeadReader<'_> {
    /// The record of a job, a member, or an array as a whole.
    pub fn record(&self, id: JobId) -> Option<JobRecord> {
        let submission = self.head.submissions.get(&id.number)?;
        match self.head.jobs.get(&id) {
            Some(job) => Some(self.job_record(id, submission, job)),
            None => self.head.is_array(id).then(|| self.head.array_record(id, submission)),
        }
    }

    pub(crate) fn job_record(&self, id: JobId, submission: &SubmissionState, job: &Job) -> JobRecord {
        let attempts: Vec<AttemptRecord> =
            job.attempts().map(|attempt| self.head.attempt_record(id, attempt)).collect();
        let (reason_code, reason) = self.reason(id, job);
        let progress = self.head.progress_of(id, job);
        JobRecord {
            state: job.state(),
            reason_code,
            reason,
            attempt: attempts.last().map_or(0, |attempt| attempt.attempt),
            exit_code: job.last_exit.and_then(JobExit::code),
            signal: job.last_exit.and_then(JobExit::signal),
            started_at: attempts.last().map(|attempt| attempt.started_at),
            ended_at: job.ended().map(|end| end.at),
            sharing_with: self.head.sharing_with(id, job),
            predicted: self.predicted(id, job, progress.as_ref()),
            slowdown_measured: self.colocation_slowdown_of(id, job).and_then(|it| it.measured),
            progress,
            attempts,
            ..self.head.blank(id, submission)
        }
    }

    /// The slowdown of a job by those on the same devices; none if these have changed since the policy
    /// looked.
    pub(crate) fn colocation_slowdown_of(&self, id: JobId, job: &Job) -> Option<&ColocationSlowdown> {
        // Few jobs have a slowdown; only for those the others on their devices are collected.
        self.forecasts?.slowdown(id).filter(|it| is_by(it, &self.head.sharing_with(id, job)))
    }

    /// What is expected of a job, as far as there is evidence for it.
    fn predicted(&self, id: JobId, job: &Job, progress: Option<&Progress>) -> Option<JobPrediction> {
        let submission = &self.head.submissions[&id.number];
        let memory = submission.estimate.as_ref().and_then(|it| it.gpu_memory);
        let predicted = JobPrediction {
            slowdown: self.predicted_slowdown(id, job),
            gpu_memory: memory.filter(|_| job.exclusive_from_attempt.is_none()),
            ..self.expected_times(id, job, submission, progress)
        };
        (predicted != JobPrediction::default()).then_some(predicted)
    }

    /// The slowdown by the jobs that it shares devices with now, or else the one predicted when it was
    /// placed.
    pub(crate) fn predicted_slowdown(&self, id: JobId, job: &Job) -> Option<Slowdown> {
        if let Some(slowdown) = self.colocation_slowdown_of(id, job) {
            return Some(slowdown.predicted.expected);
        }
        let at_placing = job.last_attempt().and_then(|it| it.attempt.predicted_slowdown)?;
        let is_alone = job.live_attempt().is_some() && self.head.sharing_with(id, job).is_empty();
        Some(if is_alone { Slowdown::NONE } else { at_placing })
    }
}

impl Head {
    fn array_record(&self, id: JobId, submission: &SubmissionState) -> JobRecord {
        let summary = submission.summary();
        let worst = submission.worst_member.and_then(|(member, _)| self.jobs.get(&member)).map(Arc::as_ref);
        let ended = worst.filter(|_| submission.has_ended());
        let exit = ended.and_then(|job| job.last_exit);
        let (reason_code, reason) = array_reason(submission.state(), &summary, worst);
        JobRecord {
            state: submission.state(),
            reason_code,
            reason,
            exit_code: exit.and_then(JobExit::code),
            signal: exit.and_then(JobExit::signal),
            started_at: submission.first_started_at,
            ended_at: ended.and_then(|_| self.last_end(id)),
            array: Some(summary),
            ..self.blank(id, submission)
        }
    }

    /// When the last member of an array ended.
    pub(crate) fn last_end(&self, array: JobId) -> Option<Time> {
        self.jobs
            .range(array..=JobId::member(array.number, u32::MAX))
            .filter_map(|(_, job)| Some(job.ended()?.at))
            .max()
    }

    /// The part of a record that does not depend on the job's state.
    fn blank(&self, id: JobId, submission: &SubmissionState) -> JobRecord {
        let spec = &submission.spec;
        JobRecord {
            id,
            name: spec.name.clone(),
            user: submission.user.clone(),
            group: spec.group.clone(),
            state: JobState::Pending,
            reason_code: ReasonCode::WaitingForTurn,
            reason: String::new(),
            work: spec.entrypoint.title(),
            shell_command: spec.entrypoint.shell_command(),
            demand: spec.demand,
            priority: spec.priority,
            time_limit: spec.time_limit,
            workdir: spec.workdir.clone(),
            code: spec.code.clone(),
            application: spec.entrypoint.parent().map(|root| root.job),
            attempt: 0,
            attempts: Vec::new(),
            exit_code: None,
            signal: None,
            submitted_at: submission.submitted_at,
            started_at: None,
            ended_at: None,
            sharing_with: Vec::new(),
            trained: TrainingSpec::of(spec),
            predicted: None,
            slowdown_measured: None,
            progress: None,
            array: None,
            revision: self.revision(id).unwrap_or(1),
            labels: JobLabels::of(spec, id),
        }
    }

    fn attempt_record(&self, id: JobId, it: AttemptRef<'_>) -> AttemptRecord {
        let attempt = it.attempt;
        let share = |node| attempt.placement.part_on(node).map_or(Share::WHOLE, |part| part.share);
        let rank = |(number, rank): (u32, &Rank)| RankRecord {
            node: rank.node_name.clone(),
            devices: rank.devices.clone(),
            share: share(rank.node),
            outcome: rank.outcome().cloned(),
            enforcement: rank.enforcement.clone(),
            gpu_memory: self.gpu_memory(id.attempt(attempt.number).rank(number), rank),
            host_limits: rank.host_limits.clone(),
            private_uid: rank.private_uid,
        };
        AttemptRecord {
            attempt: attempt.number,
            started_at: attempt.started_at,
            ended_at: it.ended_at,
            stopped: it.effective_stop(),
            ranks: (0..).zip(&attempt.ranks).map(rank).collect(),
            host: attempt.placement.parts.iter().filter_map(|part| part.host).collect(),
            idle: attempt
                .idle_since
                .filter(|_| it.ended_at.is_none())
                .map(|since| self.idle_record(id, since)),
        }
    }

    /// The memory that a rank was last seen to hold on its devices; none once it has ended, or where no
    /// driver reports it.
    fn gpu_memory(&self, id: RankId, rank: &Rank) -> Option<Bytes> {
        let seen = |device: &DeviceId| self.volatile.telemetry.get(&(rank.node, device.clone()));
        let held = rank.devices.iter().filter_map(seen).flat_map(|it| &it.ranks).filter(|(of, _)| *of == id);
        held.map(|(_, bytes)| *bytes).reduce(|sum, more| sum + more).filter(|_| rank.is_live())
    }

    pub(crate) fn progress_of(&self, id: JobId, job: &Job) -> Option<Progress> {
        let attempt = job.last_attempt()?.attempt;
        self.volatile.progress.get(&id.attempt(attempt.number)).or(attempt.progress.as_ref()).cloned()
    }

    fn sharing_with(&self, id: JobId, job: &Job) -> Vec<JobId> {
        let parts = job.live_attempt().map_or(&[][..], |attempt| &attempt.placement.parts);
        let on_its_devices = parts.iter().flat_map(|part| {
            let devices = self.nodes.get(&part.node).map_or(&[][..], |node| &node.devices);
            devices
                .iter()
                .filter(|it| part.devices.contains(&it.device.id))
                .flat_map(|it| it.jobs.iter().copied())
        });
        let others: std::collections::BTreeSet<JobId> = on_its_devices.filter(|other| *other != id).collect();
        others.into_iter().collect()
    }

    /// All nodes, in the order in which they joined.
    pub fn node_records(&self) -> Vec<NodeRecord> {
        let mut nodes: Vec<_> = self.nodes.iter().collect();
        nodes.sort_by_key(|(_, node)| node.ordinal);
        nodes.into_iter().map(|(id, node)| node.record(*id, &self.volatile.telemetry)).collect()
    }

    /// The node that a rank runs, or ran, on: its name, and its link while it is connected.
    pub fn worker_of(&self, rank: RankId) -> Option<(String, Option<WorkerKey>)> {
        let attempt = self.jobs.get(&rank.attempt.job)?.attempt(rank.attempt.attempt)?.attempt;
        let rank = attempt.ranks.get(rank.rank as usize)?;
        Some((rank.node_name.clone(), self.link_of(rank.node)))
    }

    /// The node with this name. It may still have the logs of jobs that are no longer in memory.
    pub fn node_named(&self, name: &str) -> Option<NodeId> {
        self.nodes.iter().find(|(_, node)| node.name == name).map(|(id, _)| *id)
    }
}

fn array_reason(state: JobState, summary: &ArraySummary, worst: Option<&Job>) -> (ReasonCode, String) {
    let counts: Vec<String> =
        summary.states.iter().map(|(state, count)| format!("{count} {state}")).collect();
    let held = match summary.count(JobState::Held) {
        0 => String::new(),
        held => {
            format!("; {}, to run once released", counted(held, "member is on hold", "members are on hold"))
        }
    };
    let code = match worst {
        _ if state == JobState::Held => ReasonCode::HeldByUser,
        Some(worst) => worst.reason_code(),
        None => ReasonCode::WaitingForTurn,
    };
    let (ended, members, counts) = (summary.ended(), summary.members, counts.join(", "));
    let members = counted(members, "member has", "members have");
    (code, format!("{ended} of {members} ended: {counts}{held}"))
}
