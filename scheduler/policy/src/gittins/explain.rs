//! The sentences about decisions of the order: short, with times and numbers, without a full stop at the
//! end.
//!
//! Nothing is decided here.

use cohabit_types::{JobId, Span, Time, counted};

use super::beliefs::Evidence;
use super::draft::{PlaceWait, Precedence};
use super::estimates::EstimateOrigin;
use super::job::{JobRank, OrderedJob};
use super::state::OrderState;
use crate::Proposal;

/// What the order assumes of a job's rest, and what that is based on: a figure to rank by, which is coarser
/// than what people are told of run times.
pub(super) fn expectation(rank: &JobRank, evidence: Evidence) -> String {
    let rest = Span::from_secs_f64(rank.rest.typical);
    match evidence {
        Evidence::Progress => format!("{rest} of work left by its own progress"),
        Evidence::Estimate(source, trust) => {
            let basis = match source {
                EstimateOrigin::User => "the iterations that its submission states",
                EstimateOrigin::Estimator => "an estimate of its run time",
            };
            let percent = 100.0 * trust;
            format!(
                "the order assumes {rest} of work left, by {basis}: {percent:.0}% of such figures come true"
            )
        }
        Evidence::Kind(jobs) => {
            format!(
                "the order assumes {rest} of work left, from {}",
                counted(jobs, "job like it", "jobs like it")
            )
        }
        Evidence::Group(jobs) => {
            before_any_like_it(rest, &counted(jobs, "job of its group", "jobs of its group"))
        }
        Evidence::Others(jobs) => before_any_like_it(rest, &counted(jobs, "other job", "other jobs")),
        Evidence::None => "nothing is known of its run time yet".to_owned(),
    }
}

fn before_any_like_it(rest: Span, jobs: &str) -> String {
    format!("the order assumes {rest} of work left, from {jobs}, because no job like it has ended yet")
}

/// Why a job starts now and there.
pub(super) fn start(rank: &JobRank, evidence: Evidence, place: &str) -> String {
    join(&format!("most urgent job that fits: {}", expectation(rank, evidence)), place)
}

/// Why a job starts that has waited too long.
pub(super) fn overdue_start(job: &OrderedJob, now: Time, place: &str) -> String {
    let waited = now.since(job.submitted_at) - job.attained.held;
    join(&format!("waited too long: {waited} without GPUs"), place)
}

/// Why a job starts whose promised turn has come.
pub(super) fn promised_start(job: &OrderedJob, due_at: Time, now: Time, place: &str) -> String {
    let after = due_at.since(job.submitted_at);
    let turn = match now.since(due_at) {
        Span::ZERO => format!("its promised turn has come, {after} after its submission"),
        late => format!("its promised turn came {late} ago, {after} after its submission"),
    };
    join(&turn, place)
}

/// When the turn of a waiting job is promised, as a sentence of its own.
pub(super) fn promise(due_at: Time, now: Time) -> String {
    match now.since(due_at) {
        Span::ZERO => format!(". Its promised turn comes in {}", due_at.since(now)),
        late => format!(
            ". Its promised turn came {late} ago: of such jobs, only those with an earlier one go first"
        ),
    }
}

fn join(reason: &str, place: &str) -> String {
    match place {
        "" => reason.to_owned(),
        place => format!("{reason}; {place}"),
    }
}

/// Why a running job is stopped.
pub(super) fn stop(
    state: &OrderState,
    victim: JobId,
    newcomer: &OrderedJob,
    precedence: Precedence,
) -> String {
    let newcomer_id = newcomer.id;
    let Some(entry) = state.running.get(victim) else { return format!("makes room for job {newcomer_id}") };
    if entry.job.priority < newcomer.priority {
        return format!("makes room for job {newcomer_id}, which has a higher priority");
    }
    if precedence == Precedence::Overdue {
        return format!("makes room for job {newcomer_id}, which waited too long");
    }
    if let Precedence::Promised(_) = precedence {
        return format!("makes room for job {newcomer_id}, whose promised turn has come");
    }
    let rest = |rank: &JobRank| Span::from_secs_f64(rank.rest.typical);
    let theirs = state.waiting.entry_of(newcomer_id).map(|entry| rest(&entry.rank)).unwrap_or_default();
    format!(
        "makes room for job {newcomer_id}, for which the order assumes {theirs} of work left on {}; this job has {}",
        gpus(newcomer),
        rest(&entry.rank)
    )
}

fn gpus(job: &OrderedJob) -> String {
    match job.profile.milli {
        milli if milli.is_multiple_of(1_000) => counted(milli / 1_000, "GPU", "GPUs"),
        milli => format!("{} of a GPU", cohabit_types::Share(milli as u32)),
    }
}

/// Why a job does not take the place that it could have, and until when.
pub(super) fn hold_out(now: Time, what: PlaceWait, proposal: &Proposal) -> (Time, String) {
    let slowdown = proposal.slowdown;
    match what {
        PlaceWait::BetterPlace(until) => (
            until,
            format!(
                "waits for a faster placement: an iteration would now take {slowdown:.2} times as long as in \
                 the best one. Starts anyway in {}",
                until.since(now)
            ),
        ),
        PlaceWait::OwnDevice(until, at) => (
            until,
            format!(
                "waits for a GPU of its own, expected in {}: sharing one now would slow it down by a factor \
                 of {slowdown:.2} and delay all jobs by {} in total. Shares one anyway in {}",
                at.since(now),
                proposal.delay,
                until.since(now)
            ),
        ),
    }
}
