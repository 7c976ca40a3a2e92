//! Questions: answered, dropped, too late.

use super::kit::{Diary, LONG, Say, hire, ms, never, settle};
use crate::{ActorSystem, AskError, ChildSpec, Closed};
use tokio::time::Instant;

#[tokio::test(start_paused = true)]
async fn a_question_is_answered() {
    let (system, diary) = (ActorSystem::new(), Diary::begin());
    let scribe = hire(system.root(), &diary, "ada", never("ada"));
    assert_eq!(scribe.ask(Say::Name).await, Ok("ada"));
    assert_eq!(scribe.ask_within(ms(10), Say::Name).await, Ok("ada"));
}

#[tokio::test(start_paused = true)]
async fn a_dropped_question_is_known_at_once() {
    let (system, diary) = (ActorSystem::new(), Diary::begin());
    let scribe = hire(system.root(), &diary, "ada", never("ada"));
    assert_eq!(scribe.ask(Say::Forget).await, Err(AskError::NoReply));
}

#[tokio::test(start_paused = true)]
async fn the_limit_covers_the_wait_for_room_and_for_the_answer() {
    let (system, diary) = (ActorSystem::new(), Diary::begin());
    let scribe = hire(system.root(), &diary, "ada", ChildSpec::new("ada", 1));
    scribe.tell(Say::Hang).await.unwrap();
    settle().await;
    for _waits_for in ["the answer", "room"] {
        let asked_at = Instant::now();
        let answer = scribe.ask_within(ms(70), Say::Name).await;
        assert_eq!(answer, Err(AskError::TimedOut { limit: ms(70) }));
        assert_eq!(asked_at.elapsed(), ms(70));
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_that_waits_behind_a_last_failure_gets_no_reply() {
    let (system, diary) = (ActorSystem::new(), Diary::begin());
    let scribe = hire(system.root(), &diary, "ada", never("ada"));
    scribe.tell(Say::Panic).await.unwrap();
    assert_eq!(scribe.ask(Say::Name).await, Err(AskError::NoReply));
    assert_eq!(scribe.ask(Say::Name).await, Err(AskError::Closed(Closed)));
    assert!(system.shutdown(LONG).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_mapped_reply_answers_the_same_asker() {
    let (system, diary) = (ActorSystem::new(), Diary::begin());
    let scribe = hire(system.root(), &diary, "ada", never("ada"));
    let length = scribe.ask(|reply_to| Say::Name(reply_to.map(str::len))).await;
    assert_eq!(length, Ok(3));
}
