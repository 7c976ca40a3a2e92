//! One test for each scenario of the program with streams.

use crate::fake_head::FakeHead;
use crate::scenarios::{play, play_on};

/// Plays a scenario that keeps files in the folder of the head, with one runner at a time.
async fn play_with_one_runner(scenario: &str) {
    let head = FakeHead::with_runners(1).await;
    let folder = head.folder().to_str().unwrap().to_owned();
    play_on(&head, &[scenario, &folder]).await;
}

#[tokio::test]
async fn items_come_in_order() {
    play_with_one_runner("items_come_in_order").await;
}

#[tokio::test]
async fn a_maker_pauses_at_8_unread_items() {
    play_with_one_runner("a_maker_pauses_at_8_unread_items").await;
}

#[tokio::test]
async fn a_stream_goes_on_after_the_end_of_its_process() {
    play_with_one_runner("a_stream_goes_on_after_the_end_of_its_process").await;
}

#[tokio::test]
async fn dropping_a_stream_cancels_its_task() {
    play(&["dropping_a_stream_cancels_its_task"]).await;
}

#[tokio::test]
async fn errors_of_streams_come_after_their_items() {
    play(&["errors_of_streams_come_after_their_items"]).await;
}

#[tokio::test]
async fn items_have_handles() {
    play(&["items_have_handles"]).await;
}
