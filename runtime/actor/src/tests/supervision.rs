//! Failures: restarted, fatal, or without consequences for others.

use super::test_kit::{
    EventLog, LONG, TestActor, TestMessage, ms, not_restarted, settle, spawn_test_actor, tell_all,
};
use crate::restart_policy::RestartPolicy;
use crate::{Actor, ActorFailure, ActorSystem, ActorSystemError, ChildSpec, Context};
use std::error::Error;
use std::future::pending;
use tokio::time::sleep;

/// Three restarts within a minute: after 100, 200 and 250 ms.
fn restarted_thrice(name: &str) -> ChildSpec {
    let restart = RestartPolicy { limit: 3, window: ms(60_000), first_delay: ms(100), max_delay: ms(250) };
    ChildSpec { restart, ..ChildSpec::new(name, 16) }
}

#[tokio::test(start_paused = true)]
async fn a_failure_restarts_the_actor_and_loses_only_the_message_at_hand() {
    for failure in [TestMessage::Panic, TestMessage::Fail] {
        let (system, log) = (ActorSystem::new(), EventLog::new());
        let actor = spawn_test_actor(&system, &log, "ada", restarted_thrice("ada"));
        tell_all(
            &actor,
            [TestMessage::Write("a"), failure, TestMessage::Write("b"), TestMessage::Write("c")],
        )
        .await;
        sleep(ms(500)).await;
        assert_eq!(log.read(), ["ada started", "ada a", "ada started", "ada b", "ada c"]);
        actor.tell(TestMessage::Write("the address is the same")).await.unwrap();
        system.shutdown(LONG).await.unwrap();
        assert_eq!(log.read(), ["ada the address is the same", "ada stopped"]);
    }
}

#[tokio::test(start_paused = true)]
async fn restarts_wait_longer_each_time_and_then_the_system_ends_with_the_last_failure() {
    let (system, log) = (ActorSystem::new(), EventLog::new());
    let actor = spawn_test_actor(&system, &log, "ada", restarted_thrice("ada"));
    tell_all(
        &actor,
        [
            TestMessage::Fail,
            TestMessage::Fail,
            TestMessage::Panic,
            TestMessage::Panic,
            TestMessage::Write("never"),
        ],
    )
    .await;
    let error = system.run_until(pending(), LONG).await.unwrap_err();
    assert_eq!(log.times(), [0, 100, 300, 550]);
    assert!(actor.is_closed());
    assert_eq!(error.to_string(), "actor `ada` failed again, with 3 of its restarts used up within 60s");
    assert_eq!(error.source().unwrap().to_string(), "panicked: out of memory");
}

#[tokio::test(start_paused = true)]
async fn restarts_outside_the_window_do_not_count() {
    let (system, log) = (ActorSystem::new(), EventLog::new());
    let actor = spawn_test_actor(&system, &log, "ada", restarted_thrice("ada"));
    for _ in 0..8 {
        actor.tell(TestMessage::Fail).await.unwrap();
        sleep(ms(40_000)).await;
    }
    assert_eq!(log.read().len(), 9);
    system.shutdown(LONG).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn siblings_do_not_notice_a_failure() {
    let (system, log) = (ActorSystem::new(), EventLog::new());
    let ada = spawn_test_actor(&system, &log, "ada", restarted_thrice("ada"));
    let bob = spawn_test_actor(&system, &log, "bob", restarted_thrice("bob"));
    ada.tell(TestMessage::Fail).await.unwrap();
    settle().await;
    bob.tell(TestMessage::Write("goes on")).await.unwrap();
    settle().await;
    assert_eq!(log.read(), ["ada started", "bob started", "bob goes on"]);
}

#[tokio::test(start_paused = true)]
async fn a_child_past_its_limit_ends_the_system_in_order_and_the_error_names_it() {
    let (system, log) = (ActorSystem::new(), EventLog::new());
    let parent = spawn_test_actor(&system, &log, "parent", restarted_thrice("parent"));
    let bad = parent.ask(|reply_to| TestMessage::SpawnChild("bad", reply_to)).await.unwrap();
    let good = parent.ask(|reply_to| TestMessage::SpawnChild("good", reply_to)).await.unwrap();
    bad.tell(TestMessage::Fail).await.unwrap();
    let error = system.run_until(pending(), LONG).await.unwrap_err();
    assert_eq!(error.source().unwrap().to_string(), "the disk failed");
    let ActorSystemError::RestartLimit { actor, .. } = error else { panic!("{error}") };
    assert_eq!(actor, "parent/bad");
    assert!(bad.is_closed() && good.is_closed() && parent.is_closed());
    let expected = ["parent started", "bad started", "good started", "good stopped", "parent stopped"];
    assert_eq!(log.read(), expected);
}

#[tokio::test(start_paused = true)]
async fn the_failure_of_an_essential_actor_ends_the_system_in_order() {
    let (system, log) = (ActorSystem::new(), EventLog::new());
    spawn_test_actor(&system, &log, "other", restarted_thrice("other"));
    let actor = TestActor { name: "driver", log: log.clone() };
    let driver = system.spawn_essential(ChildSpec::new("driver", 4), actor);
    let child = driver.ask(|reply_to| TestMessage::SpawnChild("child", reply_to)).await.unwrap();
    tell_all(&driver, [TestMessage::Fail, TestMessage::Write("never")]).await;
    let error = system.run_until(pending(), LONG).await.unwrap_err();
    assert_eq!(error.to_string(), "the essential actor `driver` failed");
    assert_eq!(error.source().unwrap().to_string(), "the disk failed");
    assert!(driver.is_closed() && child.is_closed());
    let expected = ["other started", "driver started", "child started", "child stopped", "other stopped"];
    assert_eq!(log.read(), expected);
}

#[tokio::test(start_paused = true)]
async fn an_essential_actor_that_stops_by_itself_ends_the_system() {
    let (system, log) = (ActorSystem::new(), EventLog::new());
    let driver = system.spawn_essential(ChildSpec::new("driver", 4), TestActor { name: "driver", log });
    driver.tell(TestMessage::Stop).await.unwrap();
    let error = system.run_until(pending(), LONG).await.unwrap_err();
    assert_eq!(error.to_string(), "the essential actor `driver` stopped");
}

#[tokio::test(start_paused = true)]
async fn an_actor_spawned_once_fails_alone() {
    let (system, log) = (ActorSystem::new(), EventLog::new());
    let actor = system.spawn_once(not_restarted("ada"), TestActor { name: "ada", log: log.clone() });
    tell_all(&actor, [TestMessage::Fail, TestMessage::Write("never")]).await;
    actor.closed().await;
    sleep(LONG).await;
    assert_eq!(log.read(), ["ada started"]);
    system.shutdown(LONG).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_a_side_task_fails_the_actor() {
    let (system, log) = (ActorSystem::new(), EventLog::new());
    let actor = spawn_test_actor(&system, &log, "ada", not_restarted("ada"));
    actor.tell(TestMessage::PanicInTask).await.unwrap();
    let error = system.run_until(pending(), LONG).await.unwrap_err();
    assert!(ActorFailure::from(error).to_string().ends_with("panicked: the task broke"));
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
    system.spawn(restarted_thrice("opener"), move || {
        built += 1;
        assert!(built != 2, "out of memory");
        NeverStarts
    });
    let error = system.run_until(pending(), LONG).await.unwrap_err();
    assert!(
        ActorFailure::from(error)
            .to_string()
            .ends_with("with 3 of its restarts used up within 60s: no such file")
    );
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_does_not_wait_for_the_restart_delay() {
    let (system, log) = (ActorSystem::new(), EventLog::new());
    let restart = RestartPolicy { first_delay: LONG, max_delay: LONG, ..RestartPolicy::default() };
    let actor = spawn_test_actor(&system, &log, "ada", ChildSpec { restart, ..ChildSpec::new("ada", 4) });
    actor.tell(TestMessage::Fail).await.unwrap();
    settle().await;
    system.shutdown(LONG).await.unwrap();
    log.write("done");
    assert_eq!(log.times(), [0, 1]);
}
