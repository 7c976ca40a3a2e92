//! Timers: on time, and gone with their actor.

use super::kit::{Diary, LONG, Say, hire, ms, never, settle, tell_all};
use crate::{Actor, ActorFailure, ActorSystem, ChildSpec, Context, TaskHandle};
use tokio::time::sleep;

#[tokio::test(start_paused = true)]
async fn a_message_comes_after_its_span_and_others_after_each_span() {
    let (system, diary) = (ActorSystem::new(), Diary::begin());
    let scribe = hire(system.root(), &diary, "ada", never("ada"));
    tell_all(&scribe, [Say::Remind(ms(250), "once"), Say::Tick(ms(100), "tick")]).await;
    sleep(ms(350)).await;
    assert_eq!(diary.times(), [0, 100, 200, 250, 300]);
}

#[tokio::test(start_paused = true)]
async fn a_busy_actor_gets_no_bunch_of_ticks() {
    let (system, diary) = (ActorSystem::new(), Diary::begin());
    let scribe = hire(system.root(), &diary, "ada", ChildSpec::new("ada", 1));
    scribe.tell(Say::Tick(ms(100), "tick")).await.unwrap();
    scribe.tell(Say::Work(ms(1_000))).await.unwrap();
    sleep(ms(1_150)).await;
    // One tick waited in the mailbox and one for room, of the ten that were due.
    assert_eq!(diary.times(), [0, 0, 1_000, 1_000, 1_000, 1_100]);
}

#[tokio::test(start_paused = true)]
async fn timers_end_with_the_actor() {
    let (system, diary) = (ActorSystem::new(), Diary::begin());
    let scribe = hire(system.root(), &diary, "ada", never("ada"));
    tell_all(&scribe, [Say::Remind(ms(50), "never"), Say::Tick(ms(50), "never"), Say::Stop]).await;
    sleep(LONG).await;
    assert_eq!(diary.read(), ["ada started", "ada stopped"]);
}

#[tokio::test(start_paused = true)]
async fn timers_end_with_the_incarnation() {
    let (system, diary) = (ActorSystem::new(), Diary::begin());
    let scribe = hire(system.root(), &diary, "ada", ChildSpec::new("ada", 4));
    tell_all(&scribe, [Say::Remind(ms(150), "never"), Say::Tick(ms(50), "never"), Say::Fail]).await;
    sleep(LONG).await;
    assert_eq!(diary.read(), ["ada started", "ada started"]);
}

/// Starts a timer and cancels it.
struct Wavering(Diary, Option<TaskHandle>);

impl Actor for Wavering {
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
    let (system, diary) = (ActorSystem::new(), Diary::begin());
    system.root().spawn_once(never("wavering"), Wavering(diary.clone(), None));
    settle().await;
    sleep(LONG).await;
    assert_eq!(diary.times(), [40]);
}
