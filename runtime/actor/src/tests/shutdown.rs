//! The order of a shutdown, and its deadlines.

use super::test_kit::{EventLog, LONG, TestMessage, ms, not_restarted, settle, spawn_test_actor, tell_all};
use crate::{Actor, ActorFailure, ActorSystem, ActorSystemError, Address, Context};
use tokio::time::sleep;

#[tokio::test(start_paused = true)]
async fn actors_stop_in_reverse_order_and_children_before_their_parent() {
    let (system, log) = (ActorSystem::new(), EventLog::new());
    let ada = spawn_test_actor(&system, &log, "ada", not_restarted("ada"));
    spawn_test_actor(&system, &log, "zoe", not_restarted("zoe"));
    for child in ["bob", "cyd"] {
        ada.ask(|reply_to| TestMessage::SpawnChild(child, reply_to)).await.unwrap();
    }
    settle().await;
    log.read();
    system.run_until(sleep(ms(10)), LONG).await.unwrap();
    assert_eq!(log.read(), ["zoe stopped", "cyd stopped", "bob stopped", "ada stopped"]);
}

#[tokio::test(start_paused = true)]
async fn queued_messages_are_handled_before_the_end() {
    let (system, log) = (ActorSystem::new(), EventLog::new());
    let actor = spawn_test_actor(&system, &log, "ada", not_restarted("ada"));
    tell_all(&actor, [TestMessage::Work(ms(100)), TestMessage::Write("a"), TestMessage::Write("b")]).await;
    system.shutdown(LONG).await.unwrap();
    assert_eq!(log.read(), ["ada started", "ada begins", "ada ends", "ada a", "ada b", "ada stopped"]);
    assert!(actor.is_closed());
}

#[tokio::test(start_paused = true)]
async fn an_actor_that_stops_itself_drops_the_rest_and_its_children() {
    let (system, log) = (ActorSystem::new(), EventLog::new());
    let actor = spawn_test_actor(&system, &log, "ada", not_restarted("ada"));
    actor.ask(|reply_to| TestMessage::SpawnChild("bob", reply_to)).await.unwrap();
    settle().await;
    tell_all(&actor, [TestMessage::Stop, TestMessage::Write("never")]).await;
    actor.closed().await;
    settle().await;
    assert_eq!(log.read(), ["ada started", "bob started", "bob stopped", "ada stopped"]);
    system.shutdown(LONG).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_actor_that_hangs_is_dropped_after_its_grace_and_the_others_end_in_order() {
    let (system, log) = (ActorSystem::new(), EventLog::new());
    spawn_test_actor(&system, &log, "ada", not_restarted("ada"));
    let bad = spawn_test_actor(&system, &log, "bad", not_restarted("bad").grace(ms(300)));
    bad.tell(TestMessage::Hang).await.unwrap();
    settle().await;
    log.read();
    let error = system.shutdown(ms(500)).await.unwrap_err();
    assert!(matches!(&error, ActorSystemError::Overdue { actors } if actors == &["bad"]), "{error}");
    log.write("done");
    assert_eq!(log.times(), [301, 301]);
}

#[tokio::test(start_paused = true)]
async fn a_child_that_hangs_leaves_its_parent_time_to_end_in_order() {
    let (system, log) = (ActorSystem::new(), EventLog::new());
    let parent = spawn_test_actor(&system, &log, "parent", not_restarted("parent").grace(ms(400)));
    let child = parent.ask(|reply_to| TestMessage::SpawnChild("child", reply_to)).await.unwrap();
    child.tell(TestMessage::Hang).await.unwrap();
    settle().await;
    parent.tell(TestMessage::Write("last words")).await.unwrap();
    log.read();
    system.shutdown(LONG).await.unwrap();
    log.write("done");
    assert_eq!(log.times(), [1, 201, 201]);
    assert!(child.is_closed());
}

#[tokio::test(start_paused = true)]
async fn a_long_handle_can_watch_for_the_shutdown() {
    let (system, log) = (ActorSystem::new(), EventLog::new());
    let actor = spawn_test_actor(&system, &log, "ada", not_restarted("ada"));
    actor.tell(TestMessage::WorkUntilShutdown).await.unwrap();
    sleep(LONG).await;
    system.shutdown(ms(10)).await.unwrap();
    assert_eq!(log.read(), ["ada started", "ada begins", "ada ends", "ada stopped"]);
}

#[tokio::test(start_paused = true)]
async fn dropping_the_system_drops_its_actors() {
    let (system, log) = (ActorSystem::new(), EventLog::new());
    let parent = spawn_test_actor(&system, &log, "parent", not_restarted("parent"));
    let child = parent.ask(|reply_to| TestMessage::SpawnChild("child", reply_to)).await.unwrap();
    settle().await;
    drop(system);
    parent.closed().await;
    child.closed().await;
    assert_eq!(log.read(), ["parent started", "child started"], "and no orderly end");
}

/// Sends its parent more messages than the parent has room for, when it stops.
struct LastWords(Address<&'static str>);

impl Actor for LastWords {
    type Message = ();

    async fn handle(&mut self, (): (), _: &mut Context<Self>) -> Result<(), ActorFailure> {
        Ok(())
    }

    async fn stopped(&mut self) {
        for word in ["good", "bye", "now"] {
            self.0.tell(word).await.unwrap();
        }
    }
}

struct Listener(EventLog);

impl Actor for Listener {
    type Message = &'static str;

    async fn started(&mut self, context: &mut Context<Self>) -> Result<(), ActorFailure> {
        context.spawn_once(not_restarted("last words"), LastWords(context.address().clone()));
        Ok(())
    }

    async fn handle(&mut self, word: &'static str, context: &mut Context<Self>) -> Result<(), ActorFailure> {
        self.0.write(format!("listener received {word}"));
        let late = context.spawn_once(not_restarted("late"), LastWords(context.address().clone()));
        assert!(late.is_closed(), "nothing starts under an actor that stops");
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_parent_handles_messages_until_its_children_are_gone() {
    let (system, log) = (ActorSystem::new(), EventLog::new());
    let spec = crate::ChildSpec::new("listener", 1);
    system.spawn_once(spec, Listener(log.clone()));
    settle().await;
    system.shutdown(LONG).await.unwrap();
    let expected = ["listener received good", "listener received bye", "listener received now"];
    assert_eq!(log.read(), expected);
}
