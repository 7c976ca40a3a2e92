//! What people see of co-located jobs, and dry runs.

use cohabit_policy::{
    DryRunResult, PendingJob, QueueForecast, SlowdownReporter, View, ViewChange, parse_policy,
};
use cohabit_types::{
    ColocationSlowdown, Dependency, DependencyKind, DryRun, Estimate, JobId, JobPrediction, JobSpec, Outcome,
    PredictedSlowdown, RefusalCode, Share, Slowdown, Span, Submit,
};

use super::kit::*;
use crate::PolicyForecasts;

fn companionship(number: u64, beside: &[u64], slowdown: f64, measured: Option<u32>) -> ColocationSlowdown {
    ColocationSlowdown {
        job: job(number),
        beside: beside.iter().copied().map(job).collect(),
        predicted: PredictedSlowdown::new(slowdown, 0.05),
        measured: measured.map(Slowdown),
    }
}

/// Two jobs on one device with their slowdowns.
fn pair() -> TestHead {
    let mut test = TestHead::with_devices(1);
    test.submit(part(400));
    test.submit(part(400));
    let slowdowns = vec![companionship(1, &[2], 1.12, None), companionship(2, &[1], 1.3, Some(1_220))];
    test.predict(slowdowns);
    test
}

fn sentences(test: &TestHead, job: JobId) -> String {
    test.reader().sentences(job).unwrap().join(" ")
}

fn shown(test: &TestHead, number: u64) -> (Option<u32>, Option<u32>) {
    let record = test.record(job(number));
    let predicted = record.predicted.and_then(|it| it.slowdown);
    (predicted.map(|it| it.0), record.slowdown_measured.map(|it| it.0))
}

/// A dry run with a sharing policy and a slowdown reporter without measurements.
fn considered(test: &TestHead, submit: Submit) -> DryRun {
    let past_runs = runs_like(&submit.spec, 100);
    let imagined = test.head.prepare_dry_run(test.now, &ada(), submit).unwrap();
    let (view, mut foresight) = (test.head.view(test.now), SlowdownReporter::default());
    let mut policy = parse_policy("first-fit-sharing").unwrap();
    policy.learn(&view, &view.as_changes());
    foresight.learn(&view, &view.as_changes());
    let place = policy.dry_run(&view, &imagined.job);
    let with_job = place.as_ref().map(|it| foresight.report_with(&view, &imagined.job, &it.placement));
    let thought = DryRunResult {
        with_job: with_job.unwrap_or_default(),
        current: foresight.report_current(&view),
        place,
        queue: queue_with(&view, &imagined.job),
    };
    test.head.finish_dry_run(&imagined, &thought, &past_runs)
}

fn queue_with(view: &View, job: &PendingJob) -> QueueForecast {
    let mut view = view.clone();
    view.apply(&[ViewChange::Pending(job.clone())]);
    let mut policy = parse_policy("first-fit-sharing").unwrap();
    policy.learn(&view, &view.as_changes());
    QueueForecast::new(&view, policy.explain_pending(&view))
}

fn submit(spec: JobSpec) -> Submit {
    let (runtime, gpu_memory) = (Some(Span::from_secs(100)), None);
    let estimate = Some(Estimate { runtime, gpu_memory, ..Estimate::default() });
    Submit { spec, idempotency_key: None, estimate }
}

#[test]
fn predicted_and_measured_slowdowns_of_colocated_jobs_are_shown() {
    let test = pair();
    assert_eq!((shown(&test, 1), shown(&test, 2)), ((Some(1_120), None), (Some(1_300), Some(1_220))));
    let explanation = sentences(&test, job(1));
    let sentence = "Predicted slowdown: 1.12 (1.06 to 1.18), because it shares a GPU with job 2; \
                    slowdown of job 2: 1.30 (measured: 1.22).";
    assert!(explanation.contains(sentence), "{explanation}");
    let explanation = sentences(&test, job(2));
    assert!(
        explanation
            .contains("; measured: 1.22), because it shares a GPU with job 1; slowdown of job 1: 1.12."),
        "{explanation}"
    );
}

#[test]
fn a_slowdown_by_earlier_neighbors_is_not_shown_for_the_present_ones() {
    let mut test = pair();
    assert!(test.forecasts.cover(&test.head));
    test.submit(part(200));
    assert_eq!(shown(&test, 1), (None, None));
    assert!(!test.forecasts.cover(&test.head));
    assert!(!sentences(&test, job(1)).contains("shares a GPU with"));
    test.ended(rank(3, 1), Outcome::Exited(0), None);
    assert_eq!(shown(&test, 1), (Some(1_120), None));
    test.ended(rank(2, 1), Outcome::Exited(0), None);
    assert_eq!(shown(&test, 1), (None, None), "it has its device for itself");
}

#[test]
fn forecasts_do_not_cover_jobs_that_came_later() {
    let mut test = TestHead::with_devices(1);
    test.submit(gpus(1));
    test.submit(gpus(1));
    assert!(test.forecasts.cover(&test.head));
    test.forecasts = PolicyForecasts::default();
    assert!(!test.forecasts.cover(&test.head), "one waits, of whom nothing is told");
}

#[test]
fn a_dry_run_predicts_sharing_and_leaves_nothing_behind() {
    let mut test = TestHead::with_devices(1);
    let neighbor = test.submit(JobSpec { name: "resident".into(), ..part(500) });
    let head = test.head.clone();
    let dry_run = considered(&test, submit(part(500)));
    assert_eq!(head, test.head);
    let place = dry_run.place.unwrap();
    assert_eq!(
        (place.nodes, place.devices[0].as_str(), place.share),
        (vec!["node1".to_owned()], "gpu-0", Share(500))
    );
    let own = dry_run.slowdown.unwrap();
    let [beside] = &dry_run.neighbors[..] else { panic!("{:?}", dry_run.neighbors) };
    assert_eq!((own.job, &own.beside[..]), (job(2), &[neighbor][..]));
    assert_eq!((beside.then.job, beside.name.as_str(), beside.now), (neighbor, "resident", Slowdown::NONE));
    assert!(beside.then.predicted.expected > Slowdown::NONE);
    assert_eq!(dry_run.predicted.slowdown, Some(own.predicted.expected));
    assert_eq!(dry_run.predicted.starts_at, Some(test.now));
    assert!(dry_run.reason.starts_with("it would start at once"), "{}", dry_run.reason);
}

#[test]
fn a_dry_run_without_a_place_says_why_and_when_it_may_start() {
    let mut test = TestHead::with_devices(1);
    test.request(ada(), cohabit_types::Request::Submit(Box::new(submit(gpus(1)))));
    let dry_run = considered(&test, submit(gpus(1)));
    assert_eq!((dry_run.place, dry_run.slowdown, dry_run.neighbors), (None, None, vec![]));
    let after = |at: cohabit_types::Time| at.since(test.now).as_secs_f64();
    let JobPrediction { starts_at, starts_between, ends_at, ends_between, .. } = dry_run.predicted;
    assert!((98.0..102.0).contains(&after(starts_at.unwrap())), "the other job takes about 100 s");
    let ([least, most], [_, latest]) = (starts_between.unwrap(), ends_between.unwrap());
    assert!(starts_at > Some(least) && starts_at < Some(most) && ends_at > starts_at && latest > most);
    let sentence = "needs 1 free GPU on one node; the best node has 0 free";
    assert!(dry_run.reason.starts_with(sentence), "{}", dry_run.reason);
}

#[test]
fn a_dry_run_of_an_ineligible_job_has_a_reason_and_a_placement() {
    let mut test = TestHead::with_devices(2);
    let earlier = test.submit(gpus(1));
    let depends_on = vec![Dependency { job: earlier, when: DependencyKind::AfterOk }];
    let dry_run = considered(&test, submit(JobSpec { depends_on: depends_on.clone(), ..gpus(1) }));
    assert!(dry_run.place.is_some());
    assert_eq!(dry_run.reason, "it is waiting for job 1 to end");
    assert_eq!((dry_run.predicted.starts_at, dry_run.predicted.runs), (None, Some(5)));
    let runtime = dry_run.predicted.runtime.unwrap().as_secs_f64();
    assert!((runtime - 100.0).abs() < 0.001, "{runtime}");
    let held = considered(&test, submit(JobSpec { held: true, ..gpus(1) }));
    assert_eq!(held.reason, "it is on hold: release it to let it run");
    test.ended(rank(1, 1), Outcome::Exited(0), None);
    let dry_run = considered(&test, submit(JobSpec { depends_on, ..gpus(1) }));
    assert_eq!(dry_run.predicted.starts_at, Some(test.now));
}

#[test]
fn a_dry_run_is_refused_like_its_submission() {
    let test = TestHead::with_devices(1);
    let refused = |spec| test.head.prepare_dry_run(test.now, &ada(), submit(spec)).unwrap_err().code;
    assert_eq!(refused(gpus(2)), RefusalCode::Unsatisfiable);
    assert_eq!(refused(JobSpec { workdir: "here".into(), ..gpus(1) }), RefusalCode::Invalid);
    let depends_on = vec![Dependency { job: job(9), when: DependencyKind::AfterAny }];
    assert_eq!(refused(JobSpec { depends_on, ..gpus(1) }), RefusalCode::NotFound);
    assert!(test.head.prepare_dry_run(test.now, &ada(), submit(array(3, 9, None))).is_ok());
}
