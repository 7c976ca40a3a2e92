//! Records: what the head tells about a job, an array as a whole, or a node.

use std::sync::Arc;

use cohabit_types::{
    ArraySummary, AttemptRecord, Bytes, ColocationSlowdown, DeviceId, JobId, JobPrediction, JobRecord,
    NodeId, NodeRecord, Progress, RankId, RankRecord, ReasonCode, Share, Slowdown, Time, TrainingSpec,
    WorkerKey,
};

use crate::head::Head;
use crate::job::{Attempt, Job, Rank};
use crate::submission::Submission;

impl Head {
    /// All there is to tell about a job, a member, or an array as a whole.
    pub fn record(&self, now: Time, id: JobId) -> Option<JobRecord> {
        let submission = self.submissions.get(&id.number)?;
        match self.jobs.get(&id) {
            Some(job) => Some(self.job_record(now, id, submission, job)),
            None => self.is_array(id).then(|| self.array_record(id, submission)),
        }
    }

    pub(crate) fn job_record(&self, now: Time, id: JobId, submission: &Submission, job: &Job) -> JobRecord {
        let attempts: Vec<AttemptRecord> =
            job.attempts.iter().map(|attempt| self.attempt_record(id, attempt)).collect();
        let (reason_code, reason) = self.reason(now, id, job);
        let progress = self.progress_of(id, job);
        JobRecord {
            state: job.state,
            reason_code,
            reason,
            attempt: attempts.last().map_or(0, |attempt| attempt.attempt),
            exit_code: job.exit_code,
            signal: job.signal,
            started_at: attempts.last().map(|attempt| attempt.started_at),
            ended_at: job.ended_at,
            sharing_with: self.sharing_with(id, job),
            predicted: self.predicted(now, id, job, progress.as_ref()),
            slowdown_measured: self.company(id, job).and_then(|it| it.measured),
            progress,
            attempts,
            ..self.blank(id, submission)
        }
    }

    fn array_record(&self, id: JobId, submission: &Submission) -> JobRecord {
        let summary = submission.summary();
        let speaker = submission.speaker.and_then(|(member, _)| self.jobs.get(&member)).map(Arc::as_ref);
        let last = speaker.filter(|_| submission.has_ended());
        let (reason_code, reason) = array_reason(&summary, speaker);
        JobRecord {
            state: submission.state(),
            reason_code,
            reason,
            exit_code: last.and_then(|job| job.exit_code),
            signal: last.and_then(|job| job.signal),
            started_at: submission.started_at,
            ended_at: last.and_then(|_| self.last_end(id)),
            array: Some(summary),
            ..self.blank(id, submission)
        }
    }

    /// When the last member of an array that has ended did so.
    fn last_end(&self, array: JobId) -> Option<Time> {
        self.jobs
            .range(array..=JobId::member(array.number, u32::MAX))
            .filter_map(|(_, job)| job.ended_at)
            .max()
    }

    /// What a record says whatever the state.
    fn blank(&self, id: JobId, submission: &Submission) -> JobRecord {
        let spec = &submission.spec;
        JobRecord {
            id,
            name: spec.name.clone(),
            user: submission.user.clone(),
            group: spec.group.clone(),
            state: cohabit_types::JobState::Pending,
            reason_code: ReasonCode::WaitingForTurn,
            reason: String::new(),
            work: spec.work.title(),
            demand: spec.demand,
            priority: spec.priority,
            time_limit: spec.time_limit,
            workdir: spec.workdir.clone(),
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
        }
    }

    fn attempt_record(&self, id: JobId, attempt: &Attempt) -> AttemptRecord {
        let share = |node| {
            let part = attempt.placement.parts.iter().find(|part| part.node == node);
            part.map_or(Share::WHOLE, |part| part.share)
        };
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
            ended_at: attempt.ended_at,
            stopped: attempt.effective_stop(),
            ranks: (0..).zip(&attempt.ranks).map(rank).collect(),
        }
    }

    /// What a rank was last seen to hold on its devices; nothing once it has ended or where no driver tells.
    fn gpu_memory(&self, id: RankId, rank: &Rank) -> Option<Bytes> {
        let seen = |device: &DeviceId| self.live.telemetry.get(&(rank.node, device.clone()));
        let held = rank.devices.iter().filter_map(seen).flat_map(|it| &it.ranks).filter(|(of, _)| *of == id);
        held.map(|(_, bytes)| *bytes).reduce(|sum, more| sum + more).filter(|_| rank.is_live())
    }

    fn progress_of(&self, id: JobId, job: &Job) -> Option<Progress> {
        let attempt = job.attempts.last()?;
        self.live.progress.get(&id.attempt(attempt.number)).or(attempt.progress.as_ref()).cloned()
    }

    fn sharing_with(&self, id: JobId, job: &Job) -> Vec<JobId> {
        let parts = job.live_attempt().map_or(&[][..], |attempt| &attempt.placement.parts);
        let on_its_devices = parts.iter().flat_map(|part| {
            let devices = self.nodes.get(&part.node).map_or(&[][..], |node| &node.devices);
            devices
                .iter()
                .filter(|it| part.devices.contains(&it.device.id))
                .flat_map(|it| it.residents.iter().copied())
        });
        let others: std::collections::BTreeSet<JobId> = on_its_devices.filter(|other| *other != id).collect();
        others.into_iter().collect()
    }

    /// What is known of it beside its present neighbours; nothing where others have come or gone since.
    pub(crate) fn company(&self, id: JobId, job: &Job) -> Option<&ColocationSlowdown> {
        self.live.company.get(&id).filter(|it| is_among(it, &self.sharing_with(id, job)))
    }

    /// Whether it is known of all who share a device what their present neighbours cost them, but for nodes
    /// that the policy does not see.
    pub(crate) fn knows_colocation_slowdowns(&self) -> bool {
        let seen = self.nodes.values().filter(|node| node.takes_jobs());
        seen.flat_map(|node| &node.devices).filter(|device| device.residents.len() > 1).all(|device| {
            device.residents.iter().all(|id| {
                let others: Vec<JobId> = device.residents.iter().copied().filter(|it| it != id).collect();
                self.live.company.get(id).is_some_and(|it| is_among(it, &others))
            })
        })
    }

    /// What was frozen at submission, corrected by what the job itself reports.
    fn predicted(
        &self,
        now: Time,
        id: JobId,
        job: &Job,
        progress: Option<&Progress>,
    ) -> Option<JobPrediction> {
        let estimate = self.submissions[&id.number].estimate.as_ref();
        let expected = self.live.expected.get(&id);
        let running = job.live_attempt();
        let by_progress = || Some(progress?.at + progress?.remaining()?);
        let there = job.attempts.last().and_then(|attempt| attempt.expected);
        let runtime = there.or(estimate.and_then(|it| it.runtime)).or(expected.and_then(|it| it.runtime));
        let by_estimate = || Some((running?.started_at + runtime?).max(now));
        let predicted = JobPrediction {
            iterations: estimate.and_then(|it| it.iterations),
            runtime,
            slowdown: self.predicted_slowdown(id, job),
            gpu_memory: estimate.and_then(|it| it.gpu_memory).filter(|_| job.alone_from.is_none()),
            starts_at: expected.and_then(|it| it.starts_at),
            ends_at: match running {
                Some(_) => by_progress().or_else(by_estimate),
                None => expected.and_then(|it| it.ends_at),
            },
        };
        (predicted != JobPrediction::default()).then_some(predicted)
    }

    /// Beside its present neighbours, or else as was expected when it was placed.
    fn predicted_slowdown(&self, id: JobId, job: &Job) -> Option<Slowdown> {
        if let Some(company) = self.company(id, job) {
            return Some(company.predicted.expected);
        }
        let at_placing = job.attempts.last().and_then(|attempt| attempt.slowdown)?;
        let is_alone = job.live_attempt().is_some() && self.sharing_with(id, job).is_empty();
        Some(if is_alone { Slowdown::NONE } else { at_placing })
    }

    /// All nodes, in the order in which they joined.
    pub fn node_records(&self) -> Vec<NodeRecord> {
        let mut nodes: Vec<_> = self.nodes.iter().collect();
        nodes.sort_by_key(|(_, node)| node.ordinal);
        nodes.into_iter().map(|(id, node)| node.record(*id, &self.live.telemetry)).collect()
    }

    /// The node that holds, or held, a rank: its name, and its link while there is one.
    pub fn worker_of(&self, rank: RankId) -> Option<(String, Option<WorkerKey>)> {
        let attempts = &self.jobs.get(&rank.attempt.job)?.attempts;
        let attempt = attempts.iter().find(|attempt| attempt.number == rank.attempt.attempt)?;
        let rank = attempt.ranks.get(rank.rank as usize)?;
        Some((rank.node_name.clone(), self.link_of(rank.node)))
    }

    /// The node with this name, if it is linked: where the logs of jobs that left the memory may still be.
    pub fn node_named(&self, name: &str) -> Option<NodeId> {
        self.nodes.iter().find(|(_, node)| node.name == name).map(|(id, _)| *id)
    }
}

/// Whether it tells of these neighbours and no others.
fn is_among(company: &ColocationSlowdown, others: &[JobId]) -> bool {
    company.beside.len() == others.len() && others.iter().all(|other| company.beside.contains(other))
}

fn array_reason(summary: &ArraySummary, speaker: Option<&Job>) -> (ReasonCode, String) {
    let counts: Vec<String> =
        summary.states.iter().map(|(state, count)| format!("{count} {state}")).collect();
    let code = speaker.map_or(ReasonCode::WaitingForTurn, |job| job.reason);
    (code, format!("{} of {} members have ended: {}", summary.ended(), summary.members, counts.join(", ")))
}
