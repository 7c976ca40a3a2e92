//! Jobs leave memory for the archive, are still known there, and come back.

use cohabit_types::{
    ChangeResult, Dependency, DependencyKind, JobChange, JobId, JobSpec, JobState, Outcome, Principal,
    RefusalCode, Reply, Request, Role, Span, Submit,
};

use super::kit::{TestHead, ada, array, command, job, rank, root};
use crate::archived_submission::work_digest;
use crate::{ArchivedPart, Config, Effect, Event, Head};

const AN_HOUR: Span = Span::from_secs(3_700);

/// A head with a device on which one job ended as completed and one as failed.
fn ended() -> TestHead {
    let mut test = TestHead::with_devices(1);
    for outcome in [Outcome::Exited(0), Outcome::Exited(3)] {
        let id = test.submit(JobSpec { name: "mnist".into(), ..command() });
        test.started(rank(id.number, 1));
        test.ended(rank(id.number, 1), outcome, None);
    }
    test
}

fn archived_parts(test: &mut TestHead) -> Vec<ArchivedPart> {
    let archived = |it| if let Effect::Archive(part) = it { Some(*part) } else { None };
    test.effects().into_iter().filter_map(archived).collect()
}

fn keyed(spec: JobSpec) -> Request {
    let idempotency_key = Some("once".to_owned());
    Request::Submit(Box::new(Submit { spec, idempotency_key, estimate: None }))
}

#[test]
fn a_job_leaves_memory_an_hour_after_its_end_and_can_be_read_from_what_left() {
    let mut test = ended();
    let (record, explanation) = (test.record(job(2)), test.reader().explain(job(2)).unwrap());
    test.after(Span::from_secs(3_000));
    assert_eq!((archived_parts(&mut test).len(), test.head.job_count()), (0, 2));
    test.after(Span::from_secs(700));
    let parts = archived_parts(&mut test);
    assert_eq!(parts.iter().map(|it| (it.number, it.part)).collect::<Vec<_>>(), [(1, 0), (2, 0)]);
    assert_eq!((test.head.job_count(), test.head.revision(job(2))), (0, None));
    let archived = Head::of_archived(parts[1].content.clone()).unwrap();
    archived.check().unwrap();
    let read = archived.at(test.now).record(job(2)).unwrap();
    assert_eq!(
        (read.state, read.exit_code, read.attempts),
        (record.state, record.exit_code, record.attempts)
    );
    assert_eq!(archived.at(test.now).explain(job(2)).unwrap(), explanation);
}

#[test]
fn an_archived_job_is_still_named_depended_on_and_refused_changes() {
    let mut test = ended();
    test.after(AN_HOUR);
    let named = |test: &TestHead, text: &str| test.head.resolve(&ada(), &[text.parse().unwrap()]);
    assert_eq!(named(&test, "2").unwrap(), [job(2)]);
    assert_eq!(named(&test, "1-5").unwrap(), [job(1), job(2)]);
    assert_eq!(named(&test, "last").unwrap(), [job(2)]);
    assert_eq!(named(&test, "mnist").unwrap_err().code, RefusalCode::Ambiguous);
    let after = |id: u64, when| JobSpec { depends_on: vec![Dependency { job: job(id), when }], ..command() };
    let runs = test.submit(after(1, DependencyKind::AfterOk));
    let ends = test.submit(after(2, DependencyKind::AfterOk));
    assert_eq!(test.state(runs), JobState::Running);
    assert_eq!(test.state(ends), JobState::Cancelled);
    let wrong = test.change(JobChange::Cancel, job(1));
    assert!(matches!(&wrong, ChangeResult::Refused(it) if it.message.contains("COMPLETED")), "{wrong:?}");
    let eve = Principal::new("eve", Role::User);
    let Reply::Changed(results) =
        test.request(eve.clone(), Request::Change(JobChange::Requeue, vec![job(1)]))
    else {
        panic!()
    };
    assert!(matches!(&results[0].1, ChangeResult::Refused(it) if it.code == RefusalCode::NotAllowed));
    assert!(test.head.archived_among(&eve, &[job(1)]).is_empty());
    assert_eq!(
        test.head.archived_among(&root(), &[job(1), job(1), job(7)]).into_iter().collect::<Vec<_>>(),
        [1]
    );
}

#[test]
fn a_repeated_submission_finds_its_archived_job_and_another_command_is_refused() {
    let mut test = TestHead::with_devices(1);
    let Reply::Accepted { job: first, .. } = test.request(ada(), keyed(command())) else { panic!() };
    test.ended(rank(first.number, 1), Outcome::Exited(0), None);
    test.after(AN_HOUR);
    assert_eq!(
        test.request(ada(), keyed(command())),
        Reply::Accepted { job: first, members: 1, notes: vec![] }
    );
    let other = JobSpec::command(vec!["other".into()], "/".into());
    assert!(
        matches!(test.request(ada(), keyed(other)), Reply::Refused(it) if it.code == RefusalCode::Invalid)
    );
}

/// Stored in snapshots: another build must find the same.
#[test]
fn the_digest_of_what_a_job_runs_does_not_change() {
    assert_eq!(work_digest(&command()), 10_189_780_025_932_712_339);
    assert_ne!(work_digest(&command()), work_digest(&array(0, 3, None)));
}

#[test]
fn a_restored_job_is_queued_again_and_goes_on_with_its_attempts() {
    let mut test = ended();
    test.after(AN_HOUR);
    let parts = archived_parts(&mut test);
    let lost = test.change(JobChange::Requeue, job(2));
    assert!(matches!(&lost, ChangeResult::Refused(it) if it.code == RefusalCode::NotFound), "{lost:?}");
    for _ in 0..2 {
        test.event(Event::Restored(parts[1].content.clone()));
    }
    assert_eq!(test.change(JobChange::Requeue, job(2)), ChangeResult::Done);
    let record = test.record(job(2));
    assert_eq!((record.state, record.attempt), (JobState::Running, 2));
    test.ended(rank(2, 2), Outcome::Exited(0), None);
    test.after(AN_HOUR);
    let again = archived_parts(&mut test);
    assert_eq!((again.len(), again[0].content.jobs.len(), test.head.job_count()), (1, 1, 0));
    // The disk may still have what was archived first.
    test.event(Event::Restored(parts[1].content.clone()));
    assert_eq!(test.head.job_count(), 0);
    assert_eq!(test.head.final_state(job(2)).map(|it| it.job_state()), Some(JobState::Completed));
}

#[test]
fn one_that_is_restored_for_nothing_is_archived_again() {
    let mut test = ended();
    test.after(AN_HOUR);
    let parts = archived_parts(&mut test);
    test.event(Event::Restored(parts[0].content.clone()));
    assert_eq!(test.head.job_count(), 1);
    test.after(Span::from_secs(60));
    assert_eq!(archived_parts(&mut test), parts[..1]);
}

#[test]
fn an_array_leaves_with_its_last_member_and_comes_back_whole() {
    let mut test = TestHead::with_devices(2);
    let id = test.submit(array(0, 1, None));
    let member = |index| JobId::member(id.number, index);
    test.ended(member(1).attempt(1).rank(0), Outcome::Exited(1), None);
    test.after(AN_HOUR);
    assert_eq!((archived_parts(&mut test).len(), test.head.job_count()), (0, 2), "one member still runs");
    test.ended(member(0).attempt(1).rank(0), Outcome::Exited(0), None);
    test.after(AN_HOUR);
    let parts = archived_parts(&mut test);
    assert_eq!((parts.len(), parts[0].content.jobs.len()), (1, 2));
    let ended = |id| test.head.final_state(id).map(|it| it.job_state());
    assert_eq!(ended(member(0)), Some(JobState::Completed));
    assert_eq!(ended(member(1)), Some(JobState::Failed));
    assert_eq!((ended(id), ended(member(2))), (Some(JobState::Failed), None));
    test.event(Event::Restored(parts[0].content.clone()));
    assert_eq!(test.change(JobChange::Requeue, member(1)), ChangeResult::Done);
    assert_eq!(test.state(id), JobState::Running);
}

#[test]
fn an_array_in_several_parts_comes_back_whole_too() {
    let mut test = TestHead::new();
    let id = test.submit(JobSpec { held: true, ..array(0, 1_199, None) });
    test.change(JobChange::Cancel, id);
    test.after(AN_HOUR);
    let mut parts = archived_parts(&mut test).into_iter();
    let mut whole = parts.next().unwrap().content;
    assert_eq!((whole.jobs.len(), parts.len(), test.head.job_count()), (512, 2, 0));
    parts.for_each(|part| whole.append(part.content));
    assert_eq!((whole.submissions.len(), whole.jobs.len()), (1, 1_200));
    test.event(Event::Restored(whole));
    assert_eq!((test.head.job_count(), test.record(id).array.unwrap().members), (1_200, 1_200));
    assert_eq!(test.change(JobChange::Requeue, JobId::member(id.number, 1_199)), ChangeResult::Done);
    assert_eq!(test.state(id), JobState::Pending);
}

#[test]
fn a_large_array_stays_in_memory_for_the_whole_retention() {
    let mut test = TestHead::new();
    let id = test.submit(array(0, 10_000, None));
    test.change(JobChange::Cancel, id);
    test.after(AN_HOUR);
    assert_eq!(test.head.job_count(), 10_001);
    test.after(Span::from_secs(86_400));
    assert_eq!(test.head.job_count(), 0);
}

/// Many jobs that ended at once leave in several steps, so that other events come in between.
#[test]
fn one_alarm_archives_a_bounded_number_of_jobs() {
    let mut test = TestHead::new();
    let jobs: Vec<JobId> = (0..600).map(|_| test.submit(command())).collect();
    test.request(ada(), Request::Change(JobChange::Cancel, jobs));
    let (due, _) = test.head.deadline().unwrap();
    test.now = due;
    test.event(Event::Alarm);
    assert_eq!((archived_parts(&mut test).len(), test.head.job_count()), (512, 88));
    assert_eq!(test.head.deadline().unwrap().0, due);
    test.event(Event::Alarm);
    assert_eq!((archived_parts(&mut test).len(), test.head.job_count()), (88, 0));
}

#[test]
fn summaries_go_with_the_retention_and_survive_a_snapshot_until_then() {
    let mut test = ended();
    let Reply::Accepted { job: third, .. } = test.request(ada(), keyed(command())) else { panic!() };
    test.ended(rank(third.number, 1), Outcome::Exited(0), None);
    let before = test.head.usage("ada").bytes;
    test.after(AN_HOUR);
    let bytes = test.head.usage("ada").bytes;
    assert!(bytes > 0 && bytes < before / 2, "{bytes} of {before} are left");
    let (rest, parts) = test.head.split_for_snapshot(2);
    let parts: Vec<_> = parts.collect();
    assert_eq!(parts.iter().map(|part| part.archived.len()).collect::<Vec<_>>(), [2, 1]);
    let restored = Head::from_snapshot(rest, parts).unwrap();
    restored.check().unwrap();
    assert_eq!(restored, test.head);
    test.after(Span::from_secs(90_000));
    assert_eq!((test.head.usage("ada").bytes, test.head.final_state(job(1))), (0, None));
    assert_eq!(test.head.deadline(), None);
    let Reply::Accepted { job: fourth, .. } = test.request(ada(), keyed(command())) else { panic!() };
    assert_eq!(fourth, job(4), "the key is free again");
}

#[test]
fn jobs_stay_in_memory_where_the_archive_is_not_sooner_than_the_retention() {
    let mut test = ended();
    let config = Config { archive_after: Span::from_secs(86_400), ..Config::default() };
    test.event(Event::HeadStarted(config));
    test.after(Span::from_secs(86_000));
    assert_eq!(test.head.job_count(), 2);
    test.after(Span::from_secs(400));
    assert_eq!((archived_parts(&mut test).len(), test.head.job_count()), (0, 0));
}
