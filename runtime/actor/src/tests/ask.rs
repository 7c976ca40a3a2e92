//! Questions: answered, dropped, timed out.

use super::test_kit::{EventLog, LONG, TestMessage, ms, not_restarted, settle, spawn_test_actor};
use crate::{ActorSystem, AskError, ChildSpec, TellError};
use tokio::time::Instant;

#[tokio::test(start_paused = true)]
async fn a_question_is_answered() {
    let (system, log) = (ActorSystem::new(), EventLog::new());
    let actor = spawn_test_actor(&system, &log, "ada", not_restarted("ada"));
    assert_eq!(actor.ask(TestMessage::Name).await, Ok("ada"));
    assert_eq!(actor.ask_within(ms(10), TestMessage::Name).await, Ok("ada"));
}

#[tokio::test(start_paused = true)]
async fn a_dropped_question_fails_at_once() {
    let (system, log) = (ActorSystem::new(), EventLog::new());
    let actor = spawn_test_actor(&system, &log, "ada", not_restarted("ada"));
    assert_eq!(actor.ask(TestMessage::DropReply).await, Err(AskError::NoReply));
}

#[tokio::test(start_paused = true)]
async fn the_limit_covers_the_wait_for_room_and_for_the_answer() {
    let (system, log) = (ActorSystem::new(), EventLog::new());
    let actor = spawn_test_actor(&system, &log, "ada", ChildSpec::new("ada", 1));
    actor.tell(TestMessage::Hang).await.unwrap();
    settle().await;
    for _waits_for in ["the answer", "room"] {
        let asked_at = Instant::now();
        let answer = actor.ask_within(ms(70), TestMessage::Name).await;
        assert_eq!(answer, Err(AskError::TimedOut { limit: ms(70) }));
        assert_eq!(asked_at.elapsed(), ms(70));
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_that_waits_behind_a_last_failure_gets_no_reply() {
    let (system, log) = (ActorSystem::new(), EventLog::new());
    let actor = spawn_test_actor(&system, &log, "ada", not_restarted("ada"));
    actor.tell(TestMessage::Panic).await.unwrap();
    assert_eq!(actor.ask(TestMessage::Name).await, Err(AskError::NoReply));
    assert_eq!(actor.ask(TestMessage::Name).await, Err(AskError::Closed(TellError)));
    assert!(system.shutdown(LONG).await.is_err());
}
