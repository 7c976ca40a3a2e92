//! Estimates: what is learned, when, and that figures of users are kept.

use cohabit_types::{
    AttemptRecord, Demand, Estimate, GpuRequest, JobPrediction, JobRecord, JobState, Slowdown, Span,
    StopReason, Submit, Time,
};

use super::*;
use crate::test_kit::{at, ran, submit};

fn minutes(numbers: std::ops::Range<u64>) -> Vec<JobRecord> {
    numbers.map(|number| ran(number, Span::from_secs(50))).collect()
}

fn estimate(estimates: &mut Estimates, change: impl FnOnce(&mut Submit), now: Time) -> Option<Estimate> {
    let mut submit = submit();
    change(&mut submit);
    estimates.fill("ada", &mut submit, now);
    submit.estimate
}

#[test]
fn only_completed_jobs_are_learned_from() {
    let good = ran(1, Span::from_secs(30));
    let learned = CompletedRun::of(&good).unwrap();
    assert_eq!((learned.runtime, learned.iterations), (Span::from_secs(30), Some(500)));
    assert_eq!((learned.ended_at, learned.features.group.as_str()), (at(90), "train"));
    assert_eq!(CompletedRun::of(&JobRecord { state: JobState::Failed, ..good.clone() }), None);
    assert_eq!(CompletedRun::of(&JobRecord { attempts: vec![], ..good }), None);
}

/// A job with attempts of these lengths in seconds, stopped for these reasons.
fn with_attempts(attempts: &[(u64, Option<StopReason>)]) -> JobRecord {
    let mut record = ran(1, Span::from_secs(0));
    let latest = record.attempts.pop().unwrap();
    let attempt = |(secs, stopped): &(u64, Option<StopReason>)| AttemptRecord {
        ended_at: Some(latest.started_at + Span::from_secs(*secs)),
        stopped: *stopped,
        ..latest.clone()
    };
    record.attempts = attempts.iter().map(attempt).collect();
    record
}

#[test]
fn work_continues_over_preemptions_and_begins_anew_after_other_ends() {
    let preempted = Some(StopReason::Preempted);
    let seconds =
        |attempts: &[_]| CompletedRun::of(&with_attempts(attempts)).map(|run| run.runtime.as_secs_f64());
    assert_eq!(seconds(&[(30, None)]), Some(30.0));
    assert_eq!(seconds(&[(7, None), (30, None)]), Some(30.0));
    assert_eq!(seconds(&[(7, None), (50, preempted), (20, preempted), (30, None)]), Some(100.0));
    assert_eq!(seconds(&[(50, preempted), (7, Some(StopReason::DeviceLost)), (30, None)]), Some(30.0));
}

#[test]
fn what_neighbors_cost_is_no_work() {
    let mut record = ran(1, Span::from_secs(30));
    let runtime = |record: &JobRecord| CompletedRun::of(record).unwrap().runtime;
    record.predicted = Some(JobPrediction { slowdown: Some(Slowdown(2_000)), ..JobPrediction::default() });
    assert_eq!(runtime(&record), Span::from_secs(15));
    record.slowdown_measured = Some(Slowdown(1_500));
    assert_eq!(runtime(&record), Span::from_secs(20));
    record.slowdown_measured = Some(Slowdown(900));
    assert_eq!(runtime(&record), Span::from_secs(30), "less than 1 is noise");
}

#[test]
fn the_features_of_a_record_are_those_of_its_submission() {
    let mut submitted = submit();
    submitted.spec.demand = Demand { nodes: 2, gpus: GpuRequest::Whole(4), ..Demand::default() };
    let record = JobRecord { demand: submitted.spec.demand, ..ran(1, Span::from_secs(1)) };
    assert_eq!(CompletedRun::of(&record).unwrap().features, JobFeatures::of("ada", &submitted.spec, at(60)));
}

#[cfg(not(feature = "learned"))]
#[test]
fn without_a_forest_only_figures_of_the_user_are_used() {
    let mut estimates = Estimates::learned_from(&minutes(0..300));
    assert_eq!(estimate(&mut estimates, |_| {}, at(90_000)), None);
    let answer = estimate(&mut estimates, |submit| submit.spec.iterations = Some(7), at(90_000)).unwrap();
    assert_eq!((answer.iterations, answer.runtime), (Some(7), None));
}

#[cfg(feature = "learned")]
mod learned {
    use super::*;

    #[test]
    fn few_jobs_give_their_median_and_figures_of_the_user_are_kept() {
        let mut estimates = Estimates::learned_from(&[]);
        assert_eq!(estimate(&mut estimates, |_| {}, at(0)), None);
        estimates.learn(&minutes(0..1));
        let expected = estimate(&mut estimates, |_| {}, at(1_000)).unwrap();
        assert_eq!((expected.iterations, expected.runtime), (Some(500), Some(Span::from_secs(50))));
        assert_eq!(expected.basis, "the last job of 'train' by ada");
        let answer = estimate(&mut estimates, |submit| submit.spec.iterations = Some(7), at(1_000)).unwrap();
        assert_eq!(answer.iterations, Some(7));
    }

    #[test]
    fn until_a_fit_is_done_the_previous_forest_answers() {
        let mut estimates = Estimates::learned_from(&[]);
        estimates.learn(&minutes(0..250));
        assert!(estimates.source.is_fitting());
        assert!(estimate(&mut estimates, |_| {}, at(90_000)).is_some());
        estimates.learn(&minutes(250..260));
        estimates.source.wait();
        let expected = estimate(&mut estimates, |_| {}, at(90_000)).unwrap();
        assert_eq!(expected.basis, "the forest, from 260 jobs, 260 of them of its group");
        assert!(!estimates.source.is_fitting());
    }

    #[test]
    fn estimates_are_the_same_after_a_restart() {
        let mut before = Estimates::learned_from(&[]);
        before.learn(&minutes(0..250));
        before.source.wait();
        let mut after = Estimates::learned_from(&minutes(0..250));
        let seen = |estimates: &mut Estimates| estimate(estimates, |_| {}, at(90_000));
        assert_eq!(seen(&mut before), seen(&mut after));
        assert!(seen(&mut after).unwrap().basis.contains("forest"));
    }
}
