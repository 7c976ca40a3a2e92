//! Order, room and closing.

use super::kit::{Diary, LONG, Say, hire, ms, never, tell_all};
use crate::{ActorSystem, Closed, TryTellError, mailbox};
use futures::FutureExt;

#[tokio::test(start_paused = true)]
async fn messages_are_handled_one_at_a_time_and_in_order() {
    let (system, diary) = (ActorSystem::new(), Diary::begin());
    let scribe = hire(system.root(), &diary, "ada", never("ada"));
    tell_all(&scribe, [Say::Work(ms(50)), Say::Write("a"), Say::Work(ms(10)), Say::Write("b")]).await;
    system.shutdown(LONG).await.unwrap();
    let expected =
        ["ada started", "ada begins", "ada ends", "ada a", "ada begins", "ada ends", "ada b", "ada stopped"];
    assert_eq!(diary.read(), expected);
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
async fn a_slow_actor_slows_its_tellers() {
    let (system, diary) = (ActorSystem::new(), Diary::begin());
    let scribe = hire(system.root(), &diary, "ada", crate::ChildSpec::new("ada", 1));
    for _ in 0..4 {
        scribe.tell(Say::Work(ms(100))).await.unwrap();
        diary.write("told");
    }
    let told: Vec<_> = diary.read().into_iter().filter(|entry| entry != "ada started").collect();
    let expected = ["told", "ada begins", "told", "ada ends", "ada begins", "told", "ada ends", "ada begins"];
    assert_eq!(told[..8], expected);
    system.shutdown(LONG).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn try_tell_gives_the_message_back() {
    let (address, mailbox) = mailbox(1);
    assert_eq!(address.try_tell("one"), Ok(()));
    assert_eq!(address.try_tell("two"), Err(TryTellError::Full("two")));
    drop(mailbox);
    assert_eq!(address.try_tell("three"), Err(TryTellError::Closed("three")));
    assert_eq!(address.tell("four").await, Err(Closed));
}

#[tokio::test(start_paused = true)]
async fn a_mailbox_ends_when_it_is_closed_and_empty_or_when_nobody_can_tell() {
    let (address, mut closed) = mailbox(2);
    address.tell(1).await.unwrap();
    closed.close();
    assert!(address.is_closed());
    assert_eq!((closed.receive().await, closed.receive().await), (Some(1), None));
    let (address, mut orphan) = mailbox::<u32>(2);
    drop(address);
    assert_eq!(orphan.receive().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_mapped_address_shares_the_room_and_gives_unmapped_messages_back() {
    let (address, mut mailbox) = mailbox::<String>(1);
    let numbers = address.mapped(|number: u32| number.to_string());
    numbers.tell(1).await.unwrap();
    assert_eq!(numbers.try_tell(2), Err(TryTellError::Full(2)));
    assert_eq!(mailbox.receive().await, Some("1".to_string()));
    numbers.try_tell(3).unwrap();
    assert_eq!(mailbox.receive().await, Some("3".to_string()));
    drop(mailbox);
    numbers.closed().await;
    assert!(numbers.is_closed());
    assert_eq!(numbers.try_tell(4), Err(TryTellError::Closed(4)));
}
