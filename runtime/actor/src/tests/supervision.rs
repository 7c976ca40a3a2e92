//! Failures: restarted, escalated, or nobody's.

use super::kit::{Diary, LONG, Say, Scribe, hire, ms, never, settle, tell_all};
use crate::{
    Actor, ActorFailure, ActorSystem, ActorSystemError, ChildSpec, Context, Escalation, RestartPolicy,
};
use std::error::Error;
use std::future::pending;
use tokio::time::sleep;

/// Three restarts within a minute: after 100, 200 and 250 ms.
fn thrice(name: &str) -> ChildSpec {
    let restart = RestartPolicy { limit: 3, window: ms(60_000), first_delay: ms(100), max_delay: ms(250) };
    ChildSpec::new(name, 16).restart(restart)
}

#[tokio::test(start_paused = true)]
async fn a_failure_restarts_the_actor_and_loses_only_the_message_at_hand() {
    for failure in [Say::Panic, Say::Fail] {
        let (system, diary) = (ActorSystem::new(), Diary::begin());
        let scribe = hire(system.root(), &diary, "ada", thrice("ada"));
        tell_all(&scribe, [Say::Write("a"), failure, Say::Write("b"), Say::Write("c")]).await;
        sleep(ms(500)).await;
        assert_eq!(diary.read(), ["ada started", "ada a", "ada started", "ada b", "ada c"]);
        scribe.tell(Say::Write("the address is the same")).await.unwrap();
        system.shutdown(LONG).await.unwrap();
        assert_eq!(diary.read(), ["ada the address is the same", "ada stopped"]);
    }
}

#[tokio::test(start_paused = true)]
async fn restarts_wait_longer_each_time_and_then_the_system_ends_with_the_reason() {
    let (system, diary) = (ActorSystem::new(), Diary::begin());
    let scribe = hire(system.root(), &diary, "ada", thrice("ada"));
    tell_all(&scribe, [Say::Fail, Say::Fail, Say::Panic, Say::Panic, Say::Write("never")]).await;
    let error = system.run_until(pending(), LONG).await.unwrap_err();
    assert_eq!(diary.times(), [0, 100, 300, 550]);
    assert!(scribe.is_closed());
    let escalated = error.source().unwrap();
    assert_eq!(escalated.to_string(), "actor `ada` failed again after 3 restart(s) within 60s");
    assert_eq!(escalated.source().unwrap().to_string(), "panicked: out of ink");
}

#[tokio::test(start_paused = true)]
async fn an_actor_that_lives_long_enough_starts_afresh() {
    let (system, diary) = (ActorSystem::new(), Diary::begin());
    let scribe = hire(system.root(), &diary, "ada", thrice("ada"));
    for _ in 0..8 {
        scribe.tell(Say::Fail).await.unwrap();
        sleep(ms(40_000)).await;
    }
    assert_eq!(diary.read().len(), 9);
    system.shutdown(LONG).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn siblings_do_not_notice_a_failure() {
    let (system, diary) = (ActorSystem::new(), Diary::begin());
    let ada = hire(system.root(), &diary, "ada", thrice("ada"));
    let bob = hire(system.root(), &diary, "bob", thrice("bob"));
    ada.tell(Say::Fail).await.unwrap();
    settle().await;
    bob.tell(Say::Write("goes on")).await.unwrap();
    settle().await;
    assert_eq!(diary.read(), ["ada started", "bob started", "bob goes on"]);
}

#[tokio::test(start_paused = true)]
async fn a_child_given_up_fails_its_parent_which_stops_the_siblings_and_is_restarted() {
    let (system, diary) = (ActorSystem::new(), Diary::begin());
    let parent = hire(system.root(), &diary, "parent", thrice("parent"));
    let bad = parent.ask(|reply_to| Say::Hire("bad", reply_to)).await.unwrap();
    let good = parent.ask(|reply_to| Say::Hire("good", reply_to)).await.unwrap();
    bad.tell(Say::Fail).await.unwrap();
    sleep(ms(99)).await;
    assert!(bad.is_closed() && good.is_closed() && !parent.is_closed());
    let before = ["parent started", "bad started", "good started", "good stopped"];
    assert_eq!(diary.read(), before);
    sleep(ms(2)).await;
    assert_eq!(diary.read(), ["parent started"]);
}

#[tokio::test(start_paused = true)]
async fn the_whole_way_of_an_escalation_is_in_the_error() {
    let (system, diary) = (ActorSystem::new(), Diary::begin());
    let parent = hire(system.root(), &diary, "parent", never("parent"));
    let child = parent.ask(|reply_to| Say::Hire("child", reply_to)).await.unwrap();
    child.tell(Say::Fail).await.unwrap();
    let error = system.run_until(pending(), LONG).await.unwrap_err();
    let ActorSystemError::Escalation(escalated) = error else { panic!("{error}") };
    assert_eq!(escalated.actor, "parent");
    let inner = escalated.cause.downcast::<Escalation>().unwrap();
    assert_eq!((inner.actor.as_str(), inner.cause.to_string().as_str()), ("parent/child", "the pen broke"));
}

#[tokio::test(start_paused = true)]
async fn an_actor_spawned_once_fails_alone() {
    let (system, diary) = (ActorSystem::new(), Diary::begin());
    let scribe = system.root().spawn_once(never("ada"), Scribe { name: "ada", diary: diary.clone() });
    tell_all(&scribe, [Say::Fail, Say::Write("never")]).await;
    scribe.closed().await;
    sleep(LONG).await;
    assert_eq!(diary.read(), ["ada started"]);
    system.shutdown(LONG).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_a_task_beside_the_actor_is_its_failure() {
    let (system, diary) = (ActorSystem::new(), Diary::begin());
    let scribe = hire(system.root(), &diary, "ada", never("ada"));
    scribe.tell(Say::PanicAlongside).await.unwrap();
    let error = system.run_until(pending(), LONG).await.unwrap_err();
    assert!(ActorFailure::from(error).to_string().ends_with("panicked: the table fell"));
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_the_factory_and_an_error_of_started_are_failures() {
    struct NeverStarts;
    impl Actor for NeverStarts {
        type Message = ();
        async fn handle(&mut self, (): (), _: &mut Context<Self>) -> Result<(), ActorFailure> {
            Ok(())
        }
        async fn started(&mut self, _: &mut Context<Self>) -> Result<(), ActorFailure> {
            Err(ActorFailure::from_message("no such file"))
        }
    }
    let (system, mut built) = (ActorSystem::new(), 0);
    system.spawn(thrice("opener"), move || {
        built += 1;
        assert!(built != 2, "out of memory");
        NeverStarts
    });
    let error = system.run_until(pending(), LONG).await.unwrap_err();
    assert!(ActorFailure::from(error).to_string().ends_with("after 3 restart(s) within 60s: no such file"));
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_does_not_wait_for_the_back_off() {
    let (system, diary) = (ActorSystem::new(), Diary::begin());
    let restart = RestartPolicy { first_delay: LONG, max_delay: LONG, ..RestartPolicy::default() };
    let scribe = hire(system.root(), &diary, "ada", ChildSpec::new("ada", 4).restart(restart));
    scribe.tell(Say::Fail).await.unwrap();
    settle().await;
    system.shutdown(LONG).await.unwrap();
    diary.write("done");
    assert_eq!(diary.times(), [0, 1]);
}
