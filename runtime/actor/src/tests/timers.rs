//! Timers and piped futures: on time, and cancelled with their actor.

use super::test_kit::{EventLog, LONG, TestMessage, ms, not_restarted, settle, spawn_test_actor, tell_all};
use crate::{Actor, ActorFailure, ActorSystem, ChildSpec, Context, TaskHandle};
use tokio::time::sleep;

#[tokio::test(start_paused = true)]
async fn send_after_sends_once_and_send_every_repeats() {
    let (system, log) = (ActorSystem::new(), EventLog::new());
    let actor = spawn_test_actor(&system, &log, "ada", not_restarted("ada"));
    tell_all(&actor, [TestMessage::SendAfter(ms(250), "once"), TestMessage::SendEvery(ms(100), "tick")])
        .await;
    sleep(ms(350)).await;
    assert_eq!(log.times(), [0, 100, 200, 250, 300]);
}

#[tokio::test(start_paused = true)]
async fn a_busy_actor_gets_no_burst_of_ticks() {
    let (system, log) = (ActorSystem::new(), EventLog::new());
    let actor = spawn_test_actor(&system, &log, "ada", ChildSpec::new("ada", 1));
    actor.tell(TestMessage::SendEvery(ms(100), "tick")).await.unwrap();
    actor.tell(TestMessage::Work(ms(1_000))).await.unwrap();
    sleep(ms(1_150)).await;
    // One tick waited in the mailbox and one for room, of the ten that were due.
    assert_eq!(log.times(), [0, 0, 1_000, 1_000, 1_000, 1_100]);
}

#[tokio::test(start_paused = true)]
async fn timers_end_with_the_actor() {
    let (system, log) = (ActorSystem::new(), EventLog::new());
    let actor = spawn_test_actor(&system, &log, "ada", not_restarted("ada"));
    tell_all(
        &actor,
        [TestMessage::SendAfter(ms(50), "never"), TestMessage::SendEvery(ms(50), "never"), TestMessage::Stop],
    )
    .await;
    sleep(LONG).await;
    assert_eq!(log.read(), ["ada started", "ada stopped"]);
}

#[tokio::test(start_paused = true)]
async fn timers_end_with_the_incarnation() {
    let (system, log) = (ActorSystem::new(), EventLog::new());
    let actor = spawn_test_actor(&system, &log, "ada", ChildSpec::new("ada", 4));
    tell_all(
        &actor,
        [
            TestMessage::SendAfter(ms(150), "never"),
            TestMessage::SendEvery(ms(50), "never"),
            TestMessage::Fail,
        ],
    )
    .await;
    sleep(LONG).await;
    assert_eq!(log.read(), ["ada started", "ada started"]);
}

/// Starts a timer and cancels it before it fires.
struct CancelsTimer(EventLog, Option<TaskHandle>);

impl Actor for CancelsTimer {
    type Message = ();

    async fn started(&mut self, context: &mut Context<Self>) -> Result<(), ActorFailure> {
        self.1 = Some(context.send_after(ms(50), ()));
        context.send_after(ms(40), ());
        Ok(())
    }

    async fn handle(&mut self, (): (), _: &mut Context<Self>) -> Result<(), ActorFailure> {
        self.0.write("alarm");
        self.1.iter().for_each(TaskHandle::cancel);
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_timer_sends_nothing() {
    let (system, log) = (ActorSystem::new(), EventLog::new());
    system.spawn_once(not_restarted("cancels"), CancelsTimer(log.clone(), None));
    settle().await;
    sleep(LONG).await;
    assert_eq!(log.times(), [40]);
}

#[tokio::test(start_paused = true)]
async fn the_output_of_a_piped_future_becomes_a_message() {
    let (system, log) = (ActorSystem::new(), EventLog::new());
    let actor = spawn_test_actor(&system, &log, "ada", not_restarted("ada"));
    actor.tell(TestMessage::Pipe(ms(30), "piped")).await.unwrap();
    sleep(ms(50)).await;
    tell_all(&actor, [TestMessage::Pipe(ms(30), "never"), TestMessage::Stop]).await;
    sleep(LONG).await;
    assert_eq!(log.read(), ["ada started", "ada piped", "ada stopped"]);
}
