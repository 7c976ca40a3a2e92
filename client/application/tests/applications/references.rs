//! One test for each scenario of the program with references and objects.

use crate::fake_head::FakeHead;
use crate::scenarios::{play, play_on};
use crate::tasks::play_with_folder;

#[tokio::test]
async fn references_are_arguments() {
    play_with_folder("references_are_arguments").await;
}

#[tokio::test]
async fn a_task_returns_the_reference_of_its_call() {
    play_with_folder("a_task_returns_the_reference_of_its_call").await;
}

#[tokio::test]
async fn a_process_with_calls_is_not_idle() {
    play_with_folder("a_process_with_calls_is_not_idle").await;
}

#[tokio::test]
async fn a_failed_dependency_is_told() {
    play(&["a_failed_dependency_is_told"]).await;
}

#[tokio::test]
async fn dropping_the_last_reference_cancels() {
    play_with_folder("dropping_the_last_reference_cancels").await;
}

#[tokio::test]
async fn a_limit_holds_for_what_nobody_awaits() {
    play(&["a_limit_holds_for_what_nobody_awaits"]).await;
}

#[tokio::test]
async fn large_values_travel() {
    play(&["large_values_travel"]).await;
}

#[tokio::test]
async fn objects_are_read_in_place() {
    play(&["objects_are_read_in_place"]).await;
}

#[tokio::test]
async fn references_lie_in_objects() {
    play(&["references_lie_in_objects"]).await;
}

#[tokio::test]
async fn an_object_outlives_its_maker() {
    play_with_folder("an_object_outlives_its_maker").await;
}

#[tokio::test]
async fn an_actor_keeps_its_arguments() {
    play(&["an_actor_keeps_its_arguments"]).await;
}

#[tokio::test]
async fn references_that_do_not_travel_are_refused() {
    play(&["references_that_do_not_travel_are_refused"]).await;
}

#[tokio::test]
async fn who_waits_for_a_reference_gives_its_core_back() {
    let head = FakeHead::with_runners(1).await;
    let folder = head.folder().to_str().unwrap().to_owned();
    play_on(&head, &["who_waits_for_a_reference_gives_its_core_back", &folder]).await;
}
