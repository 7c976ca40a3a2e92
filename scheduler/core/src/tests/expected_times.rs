//! What is said of the end of a job rests on its progress, or on completed runs like it; else it is unknown.

use std::collections::BTreeMap;

use cohabit_policy::{CompletedRun, JobFeatures};
use cohabit_types::{AttemptProgress, JobId, JobPrediction, JobSpec, Outcome, Progress, Report, Span, Time};

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

/// In how many seconds a job starts: at the earliest, typically, and at the latest.
fn starts_in(test: &TestHead, job: JobId) -> [f64; 3] {
    let predicted = predicted(test, job);
    let [least, most] = predicted.starts_between.unwrap();
    [least, predicted.starts_at.unwrap(), most].map(|at| at.since(test.now).as_secs_f64())
}

#[test]
fn the_start_of_a_queued_job_has_the_range_that_the_jobs_before_it_leave() {
    let mut test = TestHead::with_devices(1);
    test.past_runs = runs_like(&gpus(1), 600);
    let [running, next, last] = [1, 2, 3].map(|_| test.submit(gpus(1)));
    test.after(Span::from_secs(60));
    let (running_end, next_start) = (ends_in(&test, running), starts_in(&test, next));
    let is_near = |[one, other]: [f64; 2]| (one - other).abs() < 0.02 * one;
    let pairs = running_end.iter().zip(&next_start).map(|(one, other)| [*one, *other]);
    assert!(
        pairs.clone().all(is_near),
        "it starts with the end of the running job: {running_end:?} {next_start:?}"
    );
    let last_start = starts_in(&test, last);
    assert!(last_start[0] > next_start[0] && last_start[2] > next_start[2], "{last_start:?}");
    let width = |range: [f64; 3]| range[2] - range[0];
    assert!(width(last_start) < 2.0 * width(running_end), "deviations do not all add up: {last_start:?}");
    let text = explained(&test, last);
    let sentence = "(8 of 10 times), from the run times of jobs like those before it, and if none is submitted that \
                    comes first.";
    assert!(text.contains("Expected start: in ") && text.contains(sentence), "{text}");
}

/// Draws numbers that look independent of each other, from 0 to 1 (the generator of Lehmer, 1951).
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> f64 {
        self.0 = self.0 * 48_271 % 0x7fff_ffff;
        self.0 as f64 / f64::from(0x7fff_ffff)
    }

    /// A run time of the kind of jobs with this number: the logarithms of run times are normal.
    fn run_time(&mut self, kind: usize) -> Span {
        let normal: f64 = (0..12).map(|_| self.next()).sum::<f64>() - 6.0;
        Span::from_secs_f64([30.0, 120.0, 900.0][kind] * (0.5 * normal).exp())
    }
}

/// A job of the kind with this number.
fn of_kind(kind: usize) -> JobSpec {
    JobSpec { group: Some(format!("kind-{kind}")), ..gpus(1) }
}

/// Fills a queue, and returns of how many jobs the start is stated as a range, and of how many it came to lie
/// in it.
fn starts_in_range(devices: u32, draws: &mut Draws) -> [usize; 2] {
    let mut test = TestHead::with_devices(devices);
    for kind in 0..3 {
        let run = |runtime| CompletedRun {
            features: JobFeatures::of("ada", &of_kind(kind), Time::EPOCH),
            ended_at: Time::EPOCH,
            runtime,
            iterations: None,
        };
        test.past_runs.learn(&(0..20).map(|_| run(draws.run_time(kind))).collect::<Vec<_>>());
    }
    let kinds: Vec<usize> = (0..40).map(|_| (draws.next() * 3.0) as usize).collect();
    let jobs: Vec<JobId> = kinds.iter().map(|kind| test.submit(of_kind(*kind))).collect();
    let stated: Vec<_> = jobs.iter().map(|job| predicted(&test, *job).starts_between).collect();
    let mut hits = 0;
    let mut running: BTreeMap<Time, JobId> = BTreeMap::new();
    loop {
        for run in test.runs() {
            let place = jobs.iter().position(|job| *job == run.attempt.job).unwrap();
            running.insert(test.now + draws.run_time(kinds[place]), run.attempt.job);
            hits +=
                usize::from(stated[place].is_some_and(|[least, most]| (least..=most).contains(&test.now)));
            test.started(run.attempt.rank(0));
        }
        let Some((at, job)) = running.pop_first() else { break };
        test.now = at;
        test.ended(job.attempt(1).rank(0), Outcome::Exited(0), None);
    }
    [stated.iter().flatten().count(), hits]
}

#[test]
fn eight_of_ten_jobs_start_in_the_range_that_is_stated() {
    for devices in [1, 4, 16] {
        let mut draws = Draws(u64::from(devices));
        let rounds = (0..40).map(|_| starts_in_range(devices, &mut draws));
        let [stated, hits] = rounds.fold([0, 0], |all, it| [all[0] + it[0], all[1] + it[1]]);
        assert_eq!(stated, 40 * (40 - devices as usize), "every job that waits has a range");
        let part = hits as f64 / stated as f64;
        assert!((0.74..0.86).contains(&part), "{devices} devices: {part}");
    }
}

#[test]
fn a_start_after_a_job_with_progress_is_one_time_and_after_an_unknown_one_none() {
    let mut test = TestHead::with_devices(1);
    let running = test.submit(gpus(1));
    let waiting = test.submit(gpus(1));
    test.after(Span::from_secs(60));
    assert_eq!(predicted(&test, waiting).starts_at, None);
    let progress =
        Progress { step: 10, total: Some(110), rate: Some(1.0), at: test.now, ..Progress::default() };
    let report = Report::Progress(vec![AttemptProgress { attempt: running.attempt(1), progress }]);
    test.event(Event::Report(key(1, 1), report));
    test.after(Span::from_secs(1));
    test.planned();
    let known = predicted(&test, waiting);
    assert_eq!((known.starts_at, known.starts_between), (Some(test.now + Span::from_secs(99)), None));
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
