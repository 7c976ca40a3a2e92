//! One test for each scenario of the program with tasks, and what became of the jobs of runners.

use cohabit_client::types::{JobId, JobRecord, JobState};

use crate::fake_head::FakeHead;
use crate::fake_jobs::end_of;
use crate::program;
use crate::scenarios::{play, play_on, show};

/// Plays a scenario that keeps files in the folder of the head.
pub(crate) async fn play_with_folder(scenario: &str) -> FakeHead {
    let head = FakeHead::start().await;
    play_on(&head, &[scenario, head.folder().to_str().unwrap()]).await;
    head
}

/// The records of the runners that were started, in order.
fn runners(head: &FakeHead) -> Vec<JobRecord> {
    let jobs = head.jobs();
    let started = jobs.values().filter(|job| job.is_of_tasks() && job.record.attempt > 0);
    started.map(|job| job.record.clone()).collect()
}

#[tokio::test]
async fn a_killed_runner_costs_a_retry() {
    let head = play_with_folder("a_killed_runner_costs_a_retry").await;
    let killed = runners(&head).iter().filter(|it| it.signal.is_some_and(|signal| signal.0 == 9)).count();
    assert!(killed >= 1);
    let names: Vec<String> = runners(&head).iter().map(|it| it.name.clone()).collect();
    assert!(names.iter().all(|name| name == "tasks"), "{names:?}");
}

#[tokio::test]
async fn recursion_deeper_than_cores_ends() {
    let head = FakeHead::with_runners(1).await;
    play_on(&head, &["recursion_deeper_than_cores_ends"]).await;
    assert_eq!(runners(&head).len(), 1);
}

#[tokio::test]
async fn dropping_a_ref_cancels_its_tree() {
    play(&["dropping_a_ref_cancels_its_tree"]).await;
}

#[tokio::test]
async fn tasks_get_and_give_handles() {
    play(&["tasks_get_and_give_handles"]).await;
}

#[tokio::test]
async fn errors_and_panics_of_tasks_are_told() {
    play(&["errors_and_panics_of_tasks_are_told"]).await;
}

#[tokio::test]
async fn retries_are_counted() {
    play_with_folder("retries_are_counted").await;
}

#[tokio::test]
async fn a_plain_task_asks_whether_it_is_cancelled() {
    play_with_folder("a_plain_task_asks_whether_it_is_cancelled").await;
}

#[tokio::test]
async fn a_runner_that_is_told_to_end_gives_its_tasks_away() {
    let head = play_with_folder("a_runner_that_is_told_to_end_gives_its_tasks_away").await;
    // 128 and SIGTERM.
    assert_eq!(end_of(&runners(&head)[0]), (JobState::Failed, Some(143)));
}

#[tokio::test]
async fn a_task_that_does_not_end_ends_its_process() {
    let head = FakeHead::with_runners(1).await;
    let folder = head.folder().to_str().unwrap().to_owned();
    play_on(&head, &["a_task_that_does_not_end_ends_its_process", &folder]).await;
    let first = runners(&head).remove(0);
    assert_eq!(end_of(&first), (JobState::Failed, Some(1)));
    let said = head.printed(first.id).1;
    assert!(said.contains("ask cohabit::cancelled() in it"), "{said}");
}

#[tokio::test]
async fn tasks_are_bounded() {
    play(&["tasks_are_bounded"]).await;
}

#[tokio::test]
async fn a_runner_ends_when_it_is_idle() {
    let head = play(&["a_runner_ends_when_it_is_idle"]).await;
    let runners = runners(&head);
    assert_eq!(runners.len(), 2);
    assert_eq!(end_of(&runners[0]), (JobState::Completed, Some(0)));
}

#[tokio::test]
async fn actors_end_in_good_order() {
    let head = FakeHead::start().await;
    let root = head.launch(&program(), &["actors_end_in_good_order"]);
    let (counter, broken) = (JobId::new(root.number + 2), JobId::new(root.number + 3));
    assert_eq!(end_of(&head.ended(counter).await), (JobState::Completed, Some(0)));
    assert_eq!(end_of(&head.ended(broken).await), (JobState::Failed, Some(1)));
    head.jobs()[&root].signal(nix::sys::signal::Signal::SIGTERM);
    head.ended(root).await;
}

#[tokio::test]
#[ignore = "takes times: run it alone, with a release build"]
async fn measure_tasks() {
    let head = FakeHead::with_runners(2).await;
    play_on(&head, &["measure_tasks"]).await;
    show(&head);
}
