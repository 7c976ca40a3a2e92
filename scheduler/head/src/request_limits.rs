//! What one request and one user may take. Everything is checked before a request is written down, so what
//! the journal holds can be replayed.

use cohabit_scheduler_core::UserUsage;
use cohabit_types::{
    Bytes, DrainRequest, JobChange, JobId, JobSpec, ModelDescription, Refusal, RefusalCode, Request,
    ReservationAccess, ReservationRequest, Span, Stop, Submit, counted,
};

/// The most jobs that one request may name.
pub(crate) const MOST_IDS: usize = 10_000;

/// The longest name of a job, a group, a node, a model or an idempotency key, in bytes.
const LONGEST_NAME: usize = 1_024;

/// The longest path, in bytes, as in Linux.
const LONGEST_PATH: usize = 4_096;

/// The most operators or stages of a model.
const MOST_PARTS: usize = 10_000;

/// The limits of requests. Those of a user (priority, rates, queued jobs, bytes) do not hold for admins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestLimits {
    /// Members of one array.
    pub array_members: u64,
    /// Jobs on which one job depends.
    pub dependencies: u64,
    /// Bytes of one job: its script, arguments, environment, names, model and all the rest.
    pub job_bytes: Bytes,
    /// The grace period of a stop, and how long before it a warning signal may come.
    pub grace: Span,
    /// The highest priority that a user may give.
    pub user_priority: i32,
    /// Submissions of one user, on average over some seconds.
    pub submits_per_second: u64,
    /// Jobs that one user changes, members of arrays one by one, on average over some seconds.
    pub changes_per_second: u64,
    /// Jobs of one user that wait, members of arrays one by one.
    pub queued_jobs: u64,
    /// Bytes of the jobs of one user that the head remembers, with their histories, each member of an array
    /// and ended ones included.
    pub user_bytes: Bytes,
    /// The content of one code snapshot.
    pub snapshot: Bytes,
    /// The stored code of one user, admins included.
    pub user_code: Bytes,
}

impl Default for RequestLimits {
    fn default() -> RequestLimits {
        RequestLimits {
            array_members: 1_000_000,
            dependencies: 1_000,
            job_bytes: Bytes(2 << 20),
            grace: Span::from_secs(3_600),
            user_priority: 0,
            submits_per_second: 100,
            changes_per_second: 10_000,
            queued_jobs: 10_000,
            user_bytes: Bytes(256 << 20),
            snapshot: Bytes(256 << 20),
            user_code: Bytes(2 << 30),
        }
    }
}

impl RequestLimits {
    /// Refuses a request beyond the limits of one request, or that could not be written down.
    pub(crate) fn check(&self, request: &Request) -> Result<(), Refusal> {
        match request {
            Request::Submit(submit) => {
                at_most("the idempotency key", length(submit.idempotency_key.as_ref()), LONGEST_NAME)?;
                self.check_job(&submit.spec)
            }
            Request::Change(_, jobs) => check_ids(jobs),
            Request::Update(update, _) if update.is_empty() => Err(invalid(
                "the update has no new setting: give a priority, a time limit, retries or a begin time"
                    .into(),
            )),
            Request::Update(_, jobs) => check_ids(jobs),
            Request::Drain(DrainRequest { node, reason, .. }) => {
                at_most("the name of the node", node.len(), LONGEST_NAME)?;
                at_most("the reason", length(reason.as_ref()), LONGEST_NAME)
            }
            Request::Resume(node) => at_most("the name of the node", node.len(), LONGEST_NAME),
            // The core bounds what a table may have.
            Request::ApplyShares(_) | Request::CancelReservation(_) => Ok(()),
            Request::Reserve(asked) => check_reservation(asked),
        }
    }

    /// The same for the job of a submission or a dry run.
    pub(crate) fn check_job(&self, spec: &JobSpec) -> Result<(), Refusal> {
        at_most("the name", spec.name.len(), LONGEST_NAME)?;
        at_most("the group", length(spec.group.as_ref()), LONGEST_NAME)?;
        at_most("the working directory", spec.workdir.len(), LONGEST_PATH)?;
        at_most("the checkpoint directory", length(spec.checkpoint.as_ref()), LONGEST_PATH)?;
        at_most("the partition", length(spec.partition.as_ref()), LONGEST_NAME)?;
        let metric = spec.sweep.as_ref().and_then(|sweep| sweep.metric.as_ref());
        at_most("the metric of the sweep", length(metric), LONGEST_NAME)?;
        spec.output
            .paths()
            .try_for_each(|path| at_most("the file for the output", path.len(), LONGEST_PATH))?;
        spec.model.as_ref().map_or(Ok(()), check_model)?;
        let dependencies = spec.depends_on.len() as u64;
        if dependencies > self.dependencies {
            let limit = self.dependencies;
            return Err(invalid(format!(
                "the job depends on {dependencies} jobs, and at most {limit} are allowed (max-dependencies): let \
                 it depend on an array as a whole, or on a job that depends on the others"
            )));
        }
        let members = spec.members();
        if members > self.array_members {
            let limit = self.array_members;
            return Err(invalid(format!(
                "the array has {members} members, and at most {limit} are allowed (max-array-members): split it \
                 into several arrays"
            )));
        }
        self.check_stop(&spec.stop)?;
        let weight = Bytes(spec.weight() as u64);
        if weight > self.job_bytes {
            let limit = self.job_bytes;
            return Err(invalid(format!(
                "the script, arguments, environment and description of the job take {weight}, and at most \
                 {limit} are allowed (max-job-size): put large values into files"
            )));
        }
        Ok(())
    }

    /// A job is stopped within this time, whatever it does.
    fn check_stop(&self, stop: &Stop) -> Result<(), Refusal> {
        let limit = self.grace;
        if stop.grace > limit {
            let grace = stop.grace;
            return Err(invalid(format!(
                "the grace period is {grace}, and at most {limit} are allowed (max-grace)"
            )));
        }
        match stop.warning {
            Some(warning) if warning.before > limit => {
                let before = warning.before;
                let message = format!(
                    "the stop signal comes {before} before the stop, and at most {limit} are allowed (max-grace)"
                );
                Err(invalid(message))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The refusal of a user who submits too fast.
    pub(crate) fn submits_too_fast(&self, user: &str) -> Refusal {
        let limit = counted(self.submits_per_second, "job a second", "jobs a second");
        beyond(format!(
            "{user} submits more than {limit} (max-submits-per-second): submit an array, or wait a moment"
        ))
    }

    /// The refusal of a user who changes jobs too fast.
    pub(crate) fn changes_too_fast(&self, user: &str) -> Refusal {
        let limit = counted(self.changes_per_second, "job a second", "jobs a second");
        beyond(format!(
            "{user} changes more than {limit} (max-changes-per-second), members of arrays one by one: wait a moment"
        ))
    }

    /// Refuses a change that lets histories grow, once the jobs of its user, who is no admin, take more
    /// memory than allowed.
    pub(crate) fn check_change(
        &self,
        user: &str,
        usage: UserUsage,
        change: JobChange,
    ) -> Result<(), Refusal> {
        let (bytes, limit) = (Bytes(usage.bytes), self.user_bytes);
        let ends_it = matches!(change, JobChange::Cancel | JobChange::Kill | JobChange::Withdraw);
        if ends_it || bytes <= limit {
            return Ok(());
        }
        Err(beyond(format!(
            "the jobs of {user} and their histories take {bytes}, and at most {limit} are allowed \
             (max-user-size): cancel jobs, or try again when the head has forgotten ended ones"
        )))
    }

    /// Refuses a priority that only an admin may give.
    pub(crate) fn check_priority(&self, priority: i32) -> Result<(), Refusal> {
        let limit = self.user_priority;
        if priority <= limit {
            return Ok(());
        }
        Err(beyond(format!(
            "priority {priority} is above {limit}, the highest that a user may give (max-user-priority): lower it, \
             or ask an admin"
        )))
    }

    /// Refuses a submission beyond what its user, who is no admin, may give or have in memory.
    pub(crate) fn check_submission(
        &self,
        user: &str,
        usage: UserUsage,
        submit: &Submit,
    ) -> Result<(), Refusal> {
        self.check_priority(submit.spec.priority)?;
        let members = submit.spec.members();
        if usage.waiting.saturating_add(members) > self.queued_jobs {
            let limit = self.queued_jobs;
            let waiting = counted(usage.waiting, "job of", "jobs of");
            return Err(beyond(format!(
                "{waiting} {user} already wait in the queue, this submission has {}, and at most {limit} may \
                 wait (max-queued-jobs): submit again when some have started",
                counted(members, "job", "jobs")
            )));
        }
        let bytes = Bytes(usage.bytes.saturating_add(submit.spec.footprint()));
        if bytes > self.user_bytes {
            let limit = self.user_bytes;
            return Err(beyond(format!(
                "with this one the jobs of {user} would take {bytes}, and at most {limit} are allowed \
                 (max-user-size): submit smaller jobs, or again when the head has forgotten older ones"
            )));
        }
        Ok(())
    }
}

/// Refuses a submission with which more jobs of a user would wait than the table of shares allows.
pub(crate) fn check_queued_jobs(
    user: &str,
    usage: UserUsage,
    submit: &Submit,
    most: Option<u64>,
) -> Result<(), Refusal> {
    let members = submit.spec.members();
    match most {
        Some(most) if usage.waiting.saturating_add(members) > most => {
            let waiting = counted(usage.waiting, "job of", "jobs of");
            let message = format!(
                "{waiting} {user} wait already, this submission has {}, and at most {most} may wait (queued-jobs): \
                 submit again when some have started",
                counted(members, "job", "jobs")
            );
            Err(Refusal::new(RefusalCode::Limit, message))
        }
        Some(_) | None => Ok(()),
    }
}

/// The refusal of a user who submits more in a minute than the table of shares allows.
pub(crate) fn too_many_in_a_minute(user: &str, most: u32) -> Refusal {
    let again = Span::from_secs_f64(60.0 / f64::from(most.max(1)));
    let message = format!(
        "{user} submitted {} in the last minute, as many as submits-per-minute allows: submit an array, or again in \
         {again}",
        counted(u64::from(most), "job", "jobs")
    );
    Refusal::new(RefusalCode::Limit, message)
}

/// Refuses a request that names too many jobs.
pub(crate) fn check_ids(jobs: &[JobId]) -> Result<(), Refusal> {
    check_count(jobs.len())
}

/// The same by their number.
pub(crate) fn check_count(jobs: usize) -> Result<(), Refusal> {
    if jobs <= MOST_IDS {
        return Ok(());
    }
    Err(invalid(format!(
        "the request names {jobs} jobs, and at most {MOST_IDS} are allowed: split it into several requests"
    )))
}

fn check_model(model: &ModelDescription) -> Result<(), Refusal> {
    at_most("the name of the model", length(model.name.as_ref()), LONGEST_NAME)?;
    at_most("the precision of the model", length(model.precision.as_ref()), LONGEST_NAME)?;
    let parts = model.operators.len().max(model.stages.len());
    if parts > MOST_PARTS {
        return Err(invalid(format!(
            "the model has {parts} operators or stages, and at most {MOST_PARTS} are allowed: describe it more \
             coarsely"
        )));
    }
    match not_finite(model) {
        Some(field) => {
            Err(invalid(format!("{field} of the model is not a finite number: correct it or leave it out")))
        }
        None => Ok(()),
    }
}

fn check_reservation(asked: &ReservationRequest) -> Result<(), Refusal> {
    let ReservationAccess { users, projects } = &asked.admits;
    let names = || asked.nodes.iter().chain(users).chain(projects);
    let count = names().count();
    if count > MOST_IDS {
        return Err(invalid(format!(
            "the reservation names {count} nodes, users and projects, and at most {MOST_IDS} are allowed"
        )));
    }
    names().try_for_each(|name| at_most("a name in the reservation", name.len(), LONGEST_NAME))?;
    at_most("the reason", length(asked.reason.as_ref()), LONGEST_NAME)
}

/// JSON in the journal has no NaN.
fn not_finite(model: &ModelDescription) -> Option<&'static str> {
    let stage = |read: fn(&cohabit_types::PipelineStage) -> f64| {
        model.stages.iter().map(read).any(|it| !it.is_finite())
    };
    let on = |gpus: &std::collections::BTreeMap<String, f64>| gpus.values().any(|it| !it.is_finite());
    let single = |value: Option<f64>| value.is_some_and(|it| !it.is_finite());
    [
        ("flops-per-sample", single(model.flops_per_sample)),
        ("activation-bytes", single(model.activation_bytes)),
        ("compute-seconds of a stage", stage(|stage| stage.compute_seconds)),
        ("compute-seconds-on of a stage", model.stages.iter().any(|stage| on(&stage.compute_seconds_on))),
        ("activation-bytes of a stage", stage(|stage| stage.activation_bytes)),
        ("gradient-bytes of a stage", stage(|stage| stage.gradient_bytes)),
    ]
    .into_iter()
    .find_map(|(field, broken)| broken.then_some(field))
}

fn at_most(what: &str, bytes: usize, limit: usize) -> Result<(), Refusal> {
    if bytes <= limit {
        return Ok(());
    }
    Err(invalid(format!("{what} has {bytes} bytes, and at most {limit} are allowed: shorten it")))
}

fn length(text: Option<&String>) -> usize {
    text.map_or(0, String::len)
}

fn invalid(message: String) -> Refusal {
    Refusal::new(RefusalCode::Invalid, message)
}

fn beyond(message: String) -> Refusal {
    Refusal::new(RefusalCode::NotAllowed, message)
}
