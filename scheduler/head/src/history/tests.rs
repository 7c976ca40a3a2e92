//! What queries find in the history, and what is removed from it.

use cohabit_scheduler_core::MemoryMisfit;
use cohabit_types::{
    Bytes, ColocationSample, DeviceId, Filter, JobId, JobRecord, JobState, Outcome, SharingStrategy, Time,
};

use super::HistoryReader;
use crate::journal::{Journal, JournalWrite};
use crate::recovery::recover;
use crate::test_kit::{TestJournal, at, ended, one_job, planned, submitted};

/// The records of two jobs: the first succeeded, the second exited with code 3.
fn two_ended() -> Vec<JobRecord> {
    let mut events = one_job();
    events.extend([planned(2, "2"), ended("2#1/0", Outcome::Exited(3)), submitted(3)]);
    let journal = TestJournal::of(events);
    let records = recover(&journal.path, &journal.open(), |_| {}).unwrap().ended;
    assert_eq!(records.len(), 2);
    records
}

fn history() -> (TestJournal, HistoryReader) {
    let journal = TestJournal::new();
    let ended = two_ended().into_iter().map(|record| JournalWrite::Ended(Box::new(record)));
    journal.open().commit(&ended.collect::<Vec<_>>()).unwrap();
    let history = HistoryReader::new(&journal.path);
    (journal, history)
}

fn ids(history: &HistoryReader, filter: &Filter) -> Vec<String> {
    history.list(filter).unwrap().jobs.iter().map(|record| record.id.to_string()).collect()
}

fn all() -> Filter {
    Filter { limit: 10, ..Filter::default() }
}

#[test]
fn an_ended_job_is_a_row_that_people_can_read() {
    let (journal, _) = history();
    let row = journal.ask(
        "SELECT name, user, state, reason_code, exit_code, ended_at, runtime_s, gpus, nodes, devices, command \
         FROM jobs WHERE id = '2'",
    );
    let row: Vec<_> = row.into_iter().flatten().collect();
    assert_eq!(
        row,
        [
            "train",
            "ada",
            "FAILED",
            "exit_code",
            "3",
            "2026-01-01T00:00:08Z",
            "1",
            "1",
            "box",
            "host-0",
            "/bin/train --fast"
        ]
    );
}

#[test]
fn views_add_up_the_use_of_each_user() {
    let (journal, _) = history();
    let usage = journal.ask("SELECT user, jobs, completed, gpu_hours FROM usage_by_user");
    let hours = "0.001".to_owned();
    assert_eq!(usage, [Some("ada".into()), Some("2".into()), Some("1".into()), Some(hours)]);
    assert_eq!(journal.ask("SELECT id FROM recent_jobs"), [Some("2".into())]);
    assert_eq!(journal.ask("SELECT count(*) FROM attempts"), [Some("2".into())]);
}

#[test]
fn a_record_is_read_as_it_was_written() {
    let (_journal, history) = history();
    let expected = two_ended().remove(0);
    assert_eq!(history.record(JobId::new(1)).unwrap(), Some(expected));
    assert_eq!(history.record(JobId::new(9)).unwrap(), None);
}

#[test]
fn a_second_end_replaces_the_first() {
    let (journal, history) = history();
    let mut again = two_ended().remove(0);
    again.state = JobState::Cancelled;
    journal.open().commit(&[JournalWrite::Ended(Box::new(again.clone()))]).unwrap();
    assert_eq!(history.record(JobId::new(1)).unwrap(), Some(again));
    assert_eq!(journal.ask("SELECT count(*) FROM attempts"), [Some("2".into())]);
}

#[test]
fn every_filter_narrows_the_list() {
    let (_journal, history) = history();
    assert_eq!(ids(&history, &all()), ["1", "2"]);
    assert_eq!(ids(&history, &Filter { states: vec![JobState::Failed, JobState::Timeout], ..all() }), ["2"]);
    assert_eq!(ids(&history, &Filter { user: Some("eve".into()), ..all() }), [""; 0]);
    assert_eq!(ids(&history, &Filter { name: Some("train".into()), ..all() }), ["1", "2"]);
    assert_eq!(ids(&history, &Filter { ended_after: Some(at(5)), ..all() }), ["2"]);
    assert_eq!(ids(&history, &Filter { after: Some(JobId::new(1)), ..all() }), ["2"]);
    assert_eq!(ids(&history, &Filter { members_of: Some(1), ..all() }), [""; 0]);
    assert_eq!(ids(&history, &Filter { user: Some("' OR 1=1 --".into()), ..all() }), [""; 0]);
}

#[test]
fn a_page_shows_whether_there_are_more() {
    let (_journal, history) = history();
    let first = history.list(&Filter { limit: 1, ..all() }).unwrap();
    assert!(first.more);
    let rest = history.list(&Filter { after: Some(first.jobs[0].id), ..all() }).unwrap();
    assert_eq!((rest.jobs[0].id, rest.more), (JobId::new(2), false));
}

#[test]
fn pruning_removes_jobs_with_their_attempts() {
    let (journal, history) = history();
    journal.open().commit(&[pruned(at(6))]).unwrap();
    assert_eq!(ids(&history, &all()), ["2"]);
    assert_eq!(journal.ask("SELECT group_concat(job) FROM attempts"), [Some("2".into())]);
    assert_eq!(history.newest(5).unwrap()[0].nodes(), ["box"]);
}

/// Rank 0 of the first job beside the second and an unknown one, for five seconds.
fn sample() -> ColocationSample {
    ColocationSample {
        rank: "1#1/0".parse().unwrap(),
        device: DeviceId("GPU-1".into()),
        gpu: "H200".into(),
        sharing: SharingStrategy::Mps,
        neighbors: ["9#1/0", "2#1/0", "2#1/1"].map(|rank| rank.parse().unwrap()).into(),
        from: at(1),
        to: at(6),
        steps: 50,
        rate: 10.0,
        memory: Some(Bytes(7)),
        utilization: Some(0.5),
    }
}

fn rows(journal: &TestJournal, sql: &str) -> Vec<String> {
    journal.ask(sql).into_iter().map(|value| value.unwrap_or_else(|| "-".into())).collect()
}

#[test]
fn a_sample_is_one_row_even_if_it_is_reported_again() {
    let (journal, _) = history();
    let longer = ColocationSample { to: at(8), steps: 70, memory: None, ..sample() };
    journal
        .open()
        .commit(&[JournalWrite::Samples(vec![sample()]), JournalWrite::Samples(vec![longer])])
        .unwrap();
    assert_eq!(rows(&journal, "SELECT count(*) FROM stretches"), ["1"]);
    let row = "SELECT job, attempt, rank, device, gpu, sharing, neighbours, started_at, ended_at, steps, rate, \
               memory_bytes, utilisation FROM stretches";
    let times = ["2026-01-01T00:00:01Z", "2026-01-01T00:00:08Z"];
    let whose = ["1", "1", "0", "GPU-1", "H200", "mps", r#"["2","9"]"#];
    assert_eq!(rows(&journal, row), [&whose[..], &times, &["70", "10", "-", "0.5"]].concat());
}

#[test]
fn the_view_of_samples_names_jobs_that_ended() {
    let (journal, _) = history();
    let unknown = ColocationSample { rank: "9#1/0".parse().unwrap(), to: at(7), ..sample() };
    journal.open().commit(&[JournalWrite::Samples(vec![sample(), unknown])]).unwrap();
    let beside = |job: &str| {
        rows(&journal, &format!("SELECT name, model, beside, rate FROM co_location WHERE job = '{job}'"))
    };
    assert_eq!(beside("1"), ["train", "-", r#"["train","9"]"#, "10"]);
    assert_eq!(beside("9"), ["-", "-", r#"["train","9"]"#, "10"]);
    assert_eq!(rows(&journal, "SELECT job FROM co_location"), ["9"], "the latest first");
}

#[test]
fn invalid_samples_never_fail_a_commit() {
    let (journal, _) = history();
    let never = ColocationSample { rate: f64::NAN, ..sample() };
    let huge = ColocationSample {
        from: Time::NEVER,
        to: Time::NEVER,
        steps: u64::MAX,
        memory: Some(Bytes(u64::MAX)),
        utilization: Some(f64::NAN),
        ..sample()
    };
    journal.open().commit(&[JournalWrite::Samples(vec![never, huge])]).unwrap();
    let row = rows(&journal, "SELECT count(*), steps, memory_bytes, utilisation FROM stretches");
    let most = i64::MAX.to_string();
    assert_eq!(row, ["1", &most, &most, "-"]);
}

#[test]
fn pruning_removes_samples() {
    let (journal, _) = history();
    let late = ColocationSample { from: at(7), to: at(9), ..sample() };
    journal.open().commit(&[JournalWrite::Samples(vec![sample(), late]), pruned(at(8))]).unwrap();
    let left = rows(&journal, "SELECT count(*), min(ended_at) FROM stretches");
    assert_eq!(left, ["1", "2026-01-01T00:00:09Z"]);
}

/// Rank 0 of the first job finds no memory left beside the second and an unknown one.
fn misfit() -> MemoryMisfit {
    let ColocationSample { rank, device, gpu, to, .. } = sample();
    let neighbors = vec![JobId::new(2), JobId::member(9, 1)];
    MemoryMisfit { rank, device, gpu, sharing: SharingStrategy::TimeSliced, neighbors, at: to }
}

#[test]
fn a_misfit_is_one_row_even_if_a_replay_repeats_it_and_is_read_as_it_was_written() {
    let (journal, history) = history();
    let earlier = MemoryMisfit { rank: "2#1/0".parse().unwrap(), neighbors: vec![], at: at(3), ..misfit() };
    let writes = [vec![misfit(), earlier.clone()], vec![misfit()]].map(JournalWrite::Misfits);
    journal.open().commit(&writes).unwrap();
    assert_eq!(history.newest_misfits(10).unwrap(), [earlier, misfit()]);
    assert_eq!(history.newest_misfits(1).unwrap(), [misfit()]);
    let row = rows(&journal, "SELECT sharing, neighbours, ended_at FROM misfits WHERE job = '1'");
    assert_eq!(row, ["time_sliced", r#"["2","9.1"]"#, "2026-01-01T00:00:06Z"]);
    journal.edit("UPDATE misfits SET neighbours = 'nobody' WHERE job = '1'");
    assert_eq!(history.newest_misfits(10).unwrap().len(), 1, "what makes no sense is left out");
    journal.open().commit(&[pruned(at(4))]).unwrap();
    assert_eq!(rows(&journal, "SELECT job FROM misfits"), ["1"]);
}

#[test]
fn numbers_and_lists_out_of_bounds_find_nothing_without_an_error() {
    let (_journal, history) = history();
    assert_eq!(history.numbers(1..=u64::MAX).unwrap().len(), ids(&history, &all()).len());
    assert_eq!(history.record(JobId::new(u64::MAX)).unwrap(), None);
    let states = vec![JobState::Completed; 100_000];
    let found = ids(&history, &Filter { states: states.clone(), ..all() });
    assert_eq!(found, ids(&history, &Filter { states: vec![JobState::Completed], ..all() }));
    let beyond = Filter { states, after: Some(JobId::new(u64::MAX)), ..all() };
    assert_eq!(ids(&history, &beyond), Vec::<String>::new());
}

/// Removes of the history, and of the archive, what ended before this time.
fn pruned(before: Time) -> JournalWrite {
    JournalWrite::Prune { history: before, archive: before, feed: before }
}
