//! What is said of the end of a job rests on its progress, or on completed runs like it; else it is unknown.

use cohabit_types::{AttemptProgress, JobId, JobPrediction, Outcome, Progress, Report, Span};

use super::kit::{TestHead, gpus, key, rank, runs_like};
use crate::Event;

fn predicted(test: &TestHead, job: JobId) -> JobPrediction {
    test.record(job).predicted.unwrap_or_default()
}

fn explained(test: &TestHead, job: JobId) -> String {
    test.reader().sentences(job).unwrap().join(" ")
}

/// In how many seconds a job ends: at the earliest, typically, and at the latest.
fn ends_in(test: &TestHead, job: JobId) -> [f64; 3] {
    let predicted = predicted(test, job);
    let [least, most] = predicted.ends_between.unwrap();
    [least, predicted.ends_at.unwrap(), most].map(|at| at.since(test.now).as_secs_f64())
}

#[test]
fn without_evidence_the_end_is_unknown() {
    let mut test = TestHead::with_devices(1);
    let (running, waiting) = (test.submit(gpus(1)), test.submit(gpus(1)));
    test.after(Span::from_secs(5));
    assert_eq!(predicted(&test, running), JobPrediction::default());
    assert_eq!((predicted(&test, waiting).ends_at, predicted(&test, waiting).runtime), (None, None));
    let sentence = "Expected end: unknown, because it does not report how many steps it takes, and fewer than 3 jobs \
                    like it have completed.";
    assert!(explained(&test, running).contains(sentence), "{}", explained(&test, running));
    let sentence = "Expected run time: unknown, because fewer than 3 jobs like it have completed.";
    assert!(explained(&test, waiting).contains(sentence), "{}", explained(&test, waiting));
}

#[test]
fn runs_like_it_give_a_range_that_follows_the_age_of_the_job() {
    let mut test = TestHead::with_devices(1);
    let id = test.submit(gpus(1));
    test.past_runs = runs_like(&gpus(1), 600);
    let [least, typical, most] = ends_in(&test, id);
    assert!(200.0 < least && (typical - 600.0).abs() < 0.1 && most < 1_800.0, "{least} to {most}");
    test.after(Span::from_secs(300));
    let later = ends_in(&test, id);
    assert!(later[1] < typical && later[0] < least, "{later:?}");
    assert!(!explained(&test, id).contains("longer than any"));
    test.after(Span::from_secs(3_000));
    let overdue = ends_in(&test, id);
    assert!(overdue[1] > 60.0 && overdue[2] > most, "it is not said to end at once: {overdue:?}");
    let text = explained(&test, id);
    assert!(
        text.contains("(8 of 10 such jobs), from 5 completed runs like it. It has run for longer"),
        "{text}"
    );
}

#[test]
fn a_time_limit_bounds_the_range() {
    let mut test = TestHead::with_devices(1);
    let mut spec = gpus(1);
    spec.time_limit = Some(Span::from_secs(660));
    let id = test.submit(spec.clone());
    test.past_runs = runs_like(&spec, 600);
    assert_eq!(ends_in(&test, id)[2], 660.0);
}

#[test]
fn progress_counts_more_than_runs_until_the_job_is_behind_its_own_pace() {
    let mut test = TestHead::with_devices(1);
    let id = test.submit(gpus(1));
    test.past_runs = runs_like(&gpus(1), 600);
    let progress =
        Progress { step: 10, total: Some(22_500), rate: Some(1.0), at: test.now, ..Progress::default() };
    let report = Report::Progress(vec![AttemptProgress { attempt: id.attempt(1), progress }]);
    test.event(Event::Report(key(1, 1), report));
    let known = predicted(&test, id);
    assert_eq!((known.iterations, known.ends_at), (Some(22_500), Some(test.now + Span::from_secs(22_490))));
    assert_eq!((known.ends_between, known.runs), (None, None));
    assert!(explained(&test, id).contains("Expected end: in about 6 h 14 min, by its own progress."));
    test.after(Span::from_secs(23_000));
    assert_eq!(predicted(&test, id).ends_at, None, "it has stopped to get on");
    assert!(explained(&test, id).contains("Expected end: unknown, because it is behind its own pace."));
}

#[test]
fn nothing_is_expected_of_a_job_that_has_ended() {
    let mut test = TestHead::with_devices(1);
    let id = test.submit(gpus(1));
    test.past_runs = runs_like(&gpus(1), 600);
    test.ended(rank(1, 1), Outcome::Exited(0), None);
    assert_eq!(predicted(&test, id).runtime, None);
    assert!(!explained(&test, id).contains("Expected"));
}
