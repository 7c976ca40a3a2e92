//! Mailboxes: order, capacity, closing.

use super::test_kit::{EventLog, LONG, TestMessage, ms, not_restarted, spawn_test_actor, tell_all};
use crate::{ActorSystem, TellError, TryTellError, mailbox};
use futures::FutureExt;

#[tokio::test(start_paused = true)]
async fn messages_are_handled_one_at_a_time_and_in_order() {
    let (system, log) = (ActorSystem::new(), EventLog::new());
    let actor = spawn_test_actor(&system, &log, "ada", not_restarted("ada"));
    tell_all(
        &actor,
        [
            TestMessage::Work(ms(50)),
            TestMessage::Write("a"),
            TestMessage::Work(ms(10)),
            TestMessage::Write("b"),
        ],
    )
    .await;
    system.shutdown(LONG).await.unwrap();
    let expected =
        ["ada started", "ada begins", "ada ends", "ada a", "ada begins", "ada ends", "ada b", "ada stopped"];
    assert_eq!(log.read(), expected);
}

#[tokio::test(start_paused = true)]
async fn tell_waits_for_room_and_nothing_is_lost() {
    let (address, mut mailbox) = mailbox(2);
    address.tell(1).await.unwrap();
    address.tell(2).await.unwrap();
    let mut third = Box::pin(address.tell(3));
    assert_eq!(third.as_mut().now_or_never(), None);
    assert_eq!(mailbox.receive().await, Some(1));
    assert_eq!(third.now_or_never(), Some(Ok(())));
    assert_eq!((mailbox.receive().await, mailbox.receive().await), (Some(2), Some(3)));
    assert_eq!(mailbox.receive().now_or_never(), None, "and nothing else");
}

#[tokio::test(start_paused = true)]
async fn a_slow_actor_slows_its_senders() {
    let (system, log) = (ActorSystem::new(), EventLog::new());
    let actor = spawn_test_actor(&system, &log, "ada", crate::ChildSpec::new("ada", 1));
    for _ in 0..4 {
        actor.tell(TestMessage::Work(ms(100))).await.unwrap();
        log.write("told");
    }
    let entries: Vec<_> = log.read().into_iter().filter(|entry| entry != "ada started").collect();
    let expected = ["told", "ada begins", "told", "ada ends", "ada begins", "told", "ada ends", "ada begins"];
    assert_eq!(entries[..8], expected);
    system.shutdown(LONG).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn try_tell_returns_the_message() {
    let (address, mailbox) = mailbox(1);
    assert_eq!(address.try_tell("one"), Ok(()));
    assert_eq!(address.try_tell("two"), Err(TryTellError::Full("two")));
    drop(mailbox);
    assert_eq!(address.try_tell("three"), Err(TryTellError::Closed("three")));
    assert_eq!(address.tell("four").await, Err(TellError));
}

#[tokio::test(start_paused = true)]
async fn a_mailbox_ends_when_it_is_closed_and_empty_or_when_all_addresses_are_dropped() {
    let (address, mut closed) = mailbox(2);
    address.tell(1).await.unwrap();
    closed.close();
    assert!(address.is_closed());
    assert_eq!((closed.receive().await, closed.receive().await), (Some(1), None));
    let (address, mut orphan) = mailbox::<u32>(2);
    drop(address);
    assert_eq!(orphan.receive().await, None);
}
