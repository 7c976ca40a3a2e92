//! Updates of jobs that wait.

use cohabit_types::{
    Array, ChangeResult, IndexRange, JobEventKind, JobId, JobSettings, JobSpec, JobState, Principal,
    RefusalCode, Reply, Request, Span, TimeLimitSetting,
};

use super::kit::*;

fn update(test: &mut TestHead, by: Principal, update: JobSettings, job: JobId) -> ChangeResult {
    match test.request(by, Request::Update(update, vec![job])) {
        Reply::Changed(results) => results.into_iter().next().unwrap().1,
        other => panic!("{other:?}"),
    }
}

fn refused(result: ChangeResult) -> RefusalCode {
    match result {
        ChangeResult::Refused(refusal) => refusal.code,
        other => panic!("{other:?}"),
    }
}

fn priority(priority: i32) -> JobSettings {
    JobSettings { priority: Some(priority), ..JobSettings::default() }
}

#[test]
fn a_new_priority_changes_the_order() {
    let mut test = TestHead::with_devices(1);
    let (running, second, third) = (test.submit(gpus(1)), test.submit(gpus(1)), test.submit(gpus(1)));
    assert_eq!(update(&mut test, ada(), priority(5), third), ChangeResult::Done);
    assert_eq!(test.record(third).priority, 5);
    let history = test.head.job_history(third);
    assert!(history.iter().any(|it| it.kind == JobEventKind::Updated("priority 5".into())));
    test.ended(running.attempt(1).rank(0), cohabit_types::Outcome::Exited(0), None);
    assert_eq!((test.state(second), test.state(third)), (JobState::Pending, JobState::Running));
}

#[test]
fn time_limit_retries_and_begin_time_count_from_the_next_attempt_on() {
    let mut test = TestHead::with_devices(1);
    let held = test.submit(JobSpec { held: true, time_limit: Some(Span::from_secs(60)), ..gpus(1) });
    let begin = test.now + Span::from_secs(100);
    let new = JobSettings {
        time_limit: Some(TimeLimitSetting::Limit(Span::from_secs(7_200))),
        retries: Some(3),
        begin: Some(begin),
        priority: None,
    };
    assert_eq!(update(&mut test, ada(), new, held), ChangeResult::Done);
    assert_eq!(test.record(held).time_limit, Some(Span::from_secs(7_200)));
    test.change(cohabit_types::JobChange::Release, held);
    assert_eq!(test.state(held), JobState::Pending);
    test.after(Span::from_secs(100));
    assert_eq!(test.state(held), JobState::Running);
    let unlimited = JobSettings { time_limit: Some(TimeLimitSetting::Unlimited), ..JobSettings::default() };
    assert_eq!(refused(update(&mut test, ada(), unlimited, held)), RefusalCode::WrongState);
}

#[test]
fn an_array_is_updated_as_a_whole_and_only_by_its_owner() {
    let mut test = TestHead::with_devices(1);
    let ranges = vec![IndexRange { first: 1, last: 3, step: 1 }];
    let array = test.submit(JobSpec { array: Some(Array { ranges, at_once: None }), ..gpus(1) });
    let member = JobId::member(array.number, 2);
    assert_eq!(refused(update(&mut test, ada(), priority(1), member)), RefusalCode::Invalid);
    let eve = Principal::new("eve", cohabit_types::Role::User);
    assert_eq!(refused(update(&mut test, eve, priority(1), array)), RefusalCode::NotAllowed);
    assert_eq!(refused(update(&mut test, ada(), priority(1), JobId::new(99))), RefusalCode::NotFound);
    assert_eq!(update(&mut test, root(), priority(9), array), ChangeResult::Done);
    assert_eq!(test.record(member).priority, 9);
    let bad = JobSettings { time_limit: Some(TimeLimitSetting::Limit(Span::ZERO)), ..JobSettings::default() };
    assert_eq!(refused(update(&mut test, ada(), bad, array)), RefusalCode::Invalid);
}
