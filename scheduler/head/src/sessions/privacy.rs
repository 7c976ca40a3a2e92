//! What users see of the jobs of others where data is private.
//!
//! Answers pass through here last, wherever they come from: memory and history are alike.

use cohabit_types::{
    ApplicationRecord, AttemptRecord, DryRun, Explanation, Filter, JobId, JobLabels, JobPrediction,
    JobRecord, ListPage, PrivateData, RankRecord, Refusal, Role, TrainingSpec,
};

use super::client::ClientSession;

/// Stands for the name of a job that is private.
const PRIVATE: &str = "(private)";

impl ClientSession {
    /// Whether it may see only a part of some jobs.
    pub(super) fn sees_partly(&self) -> bool {
        self.session_context.private_data == PrivateData::On && self.by.role != Role::Admin
    }

    fn sees_fully(&self, record: &JobRecord) -> bool {
        !self.sees_partly() || self.owns(&record.user)
    }

    /// Whether what belongs to this user is its own. A viewer has no jobs: they are of a user whose token had
    /// its name before.
    pub(super) fn owns(&self, user: &str) -> bool {
        match self.by.role {
            Role::User | Role::Admin => self.by.user == user,
            Role::Viewer | Role::Worker => false,
        }
    }

    /// The record as this client may see it.
    fn visible_record(&self, record: JobRecord) -> JobRecord {
        let record = if self.sees_fully(&record) { record } else { private_record(record) };
        if self.is_viewer() { viewed_record(record) } else { record }
    }

    fn is_viewer(&self) -> bool {
        self.by.role == Role::Viewer
    }

    pub(super) fn visible_records(&self, records: Vec<JobRecord>) -> Vec<JobRecord> {
        records.into_iter().map(|record| self.visible_record(record)).collect()
    }

    /// Applications as this client may see them.
    pub(super) fn visible_applications(&self, found: Vec<ApplicationRecord>) -> Vec<ApplicationRecord> {
        let is_visible = |it: &ApplicationRecord| !self.sees_partly() || self.owns(&it.user);
        let visible = |it| if is_visible(&it) { it } else { private_application(it) };
        let seen = |it| if self.is_viewer() { viewed_application(it) } else { it };
        found.into_iter().map(visible).map(seen).collect()
    }

    /// A page of jobs as this client may see them.
    pub(super) async fn visible_page(&self, filter: Filter) -> Result<ListPage, Refusal> {
        let Some(filter) = self.visible_filter(filter) else {
            return Ok(ListPage { jobs: Vec::new(), more: false });
        };
        let page = self.look_up_page(filter).await?;
        Ok(ListPage { jobs: self.visible_records(page.jobs), more: page.more })
    }

    /// A filter by name finds one's own jobs only, or it would tell the names of others; none if it can find
    /// nothing.
    fn visible_filter(&self, filter: Filter) -> Option<Filter> {
        if filter.name.is_none() || !self.sees_partly() {
            return Some(filter);
        }
        let is_own = filter.user.as_ref().is_none_or(|user| *user == self.by.user);
        (is_own && !self.is_viewer()).then(|| Filter { user: Some(self.by.user.clone()), ..filter })
    }

    /// The explanation of a job; of a private one, only its state.
    pub(super) async fn visible_explanation(&self, job: JobId) -> Result<Explanation, Refusal> {
        if self.sees_partly() {
            let record = self.record(job).await?;
            if !self.sees_fully(&record) {
                return Ok(private_explanation(&record));
            }
        }
        if self.is_viewer() {
            return self.viewed_explanation(job).await;
        }
        self.look_up_explanation(job).await
    }

    /// Why a job waits or where it runs, for a viewer. How one ended may quote its command, a path or its
    /// output, and so may the end of an earlier attempt in its history.
    async fn viewed_explanation(&self, job: JobId) -> Result<Explanation, Refusal> {
        let record = self.record(job).await?;
        let sentences = match record.state.is_terminal() || record.attempt > 1 {
            true => {
                let state = format!("Job {job} is {} ({}).", record.state, record.reason_code);
                vec![
                    state,
                    "A viewer does not see how its attempts ended: its user and admins do.".to_owned(),
                ]
            }
            false => self.look_up_explanation(job).await?.sentences,
        };
        Ok(Explanation { sentences, history: Vec::new() })
    }

    /// A dry run in which private jobs have no names.
    pub(super) async fn visible_dry_run(&self, mut dry_run: Box<DryRun>) -> Result<Box<DryRun>, Refusal> {
        if !self.sees_partly() || dry_run.neighbors.is_empty() {
            return Ok(dry_run);
        }
        let neighbors = dry_run.neighbors.iter().map(|it| it.then.job).collect();
        // One that has ended meanwhile may be found no more.
        let records = self.look_up_records(neighbors).await.unwrap_or_default();
        let own: Vec<JobId> =
            records.iter().filter(|it| self.sees_fully(it)).map(|record| record.id).collect();
        let others = dry_run.neighbors.iter_mut().filter(|it| !own.contains(&it.then.job));
        others.for_each(|it| PRIVATE.clone_into(&mut it.name));
        Ok(dry_run)
    }
}

/// The record without what its user wrote or the job reported. Every field is named: one that is added has to
/// be decided on here.
fn private_record(record: JobRecord) -> JobRecord {
    JobRecord {
        id: record.id,
        name: PRIVATE.to_owned(),
        user: record.user,
        group: None,
        state: record.state,
        reason_code: record.reason_code,
        reason: record.reason_code.to_string(),
        work: String::new(),
        shell_command: None,
        demand: record.demand,
        priority: record.priority,
        time_limit: record.time_limit,
        workdir: String::new(),
        code: None,
        application: record.application,
        attempt: record.attempt,
        attempts: record.attempts.into_iter().map(private_attempt).collect(),
        exit_code: record.exit_code,
        signal: record.signal,
        submitted_at: record.submitted_at,
        started_at: record.started_at,
        ended_at: record.ended_at,
        sharing_with: record.sharing_with,
        trained: TrainingSpec::default(),
        predicted: record.predicted.map(private_prediction),
        slowdown_measured: record.slowdown_measured,
        progress: None,
        array: record.array,
        revision: record.revision,
        labels: JobLabels::default(),
    }
}

/// The record without what may hold a secret: the command, directories, files, and sentences that quote them
/// or the output. A job that has not started yet keeps the sentence that says why it waits.
fn viewed_record(record: JobRecord) -> JobRecord {
    let has_started = record.attempt > 0 || record.state.is_terminal();
    JobRecord {
        reason: if has_started { record.reason_code.to_string() } else { record.reason },
        work: String::new(),
        shell_command: None,
        workdir: String::new(),
        code: None,
        attempts: record.attempts.into_iter().map(private_attempt).collect(),
        labels: JobLabels { partition: record.labels.partition, ..JobLabels::default() },
        ..record
    }
}

/// The application without what it runs.
fn viewed_application(application: ApplicationRecord) -> ApplicationRecord {
    ApplicationRecord { code: None, program: String::new(), ..application }
}

/// The application without what its user wrote. Every field is named: one that is added has to be decided on
/// here.
fn private_application(application: ApplicationRecord) -> ApplicationRecord {
    ApplicationRecord {
        job: application.job,
        name: PRIVATE.to_owned(),
        user: application.user,
        state: application.state,
        attempt: application.attempt,
        code: None,
        program: String::new(),
        runners: application.runners,
        mains: application.mains,
        counts: application.counts,
        submitted_at: application.submitted_at,
        started_at: application.started_at,
        node: application.node,
        gpus: application.gpus,
        max_gpus: application.max_gpus,
    }
}

fn private_attempt(attempt: AttemptRecord) -> AttemptRecord {
    AttemptRecord {
        attempt: attempt.attempt,
        started_at: attempt.started_at,
        ended_at: attempt.ended_at,
        stopped: attempt.stopped,
        ranks: attempt.ranks.into_iter().map(private_rank).collect(),
        host: attempt.host,
        idle: attempt.idle,
    }
}

/// The outcome may quote the command, a path or the output.
fn private_rank(rank: RankRecord) -> RankRecord {
    RankRecord {
        node: rank.node,
        devices: rank.devices,
        share: rank.share,
        outcome: None,
        enforcement: rank.enforcement,
        gpu_memory: rank.gpu_memory,
        host_limits: rank.host_limits,
        private_uid: rank.private_uid,
    }
}

/// The number of iterations is what its user stated, or its model.
fn private_prediction(predicted: JobPrediction) -> JobPrediction {
    JobPrediction { iterations: None, ..predicted }
}

fn private_explanation(record: &JobRecord) -> Explanation {
    let sentences = vec![
        format!("Job {} is {} ({}).", record.id, record.state, record.reason_code),
        format!("Only {} and admins can see more of it.", record.user),
    ];
    Explanation { sentences, history: Vec::new() }
}
