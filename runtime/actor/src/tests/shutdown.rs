//! The order of the end, and its deadlines.

use super::kit::{Diary, LONG, Say, hire, ms, never, settle, tell_all};
use crate::{Actor, ActorFailure, ActorSystem, ActorSystemError, Address, Context};
use tokio::time::sleep;

#[tokio::test(start_paused = true)]
async fn actors_stop_in_reverse_order_and_children_before_their_parent() {
    let (system, diary) = (ActorSystem::new(), Diary::begin());
    let ada = hire(system.root(), &diary, "ada", never("ada"));
    hire(system.root(), &diary, "zoe", never("zoe"));
    for child in ["bob", "cyd"] {
        ada.ask(|reply_to| Say::Hire(child, reply_to)).await.unwrap();
    }
    settle().await;
    diary.read();
    system.run_until(sleep(ms(10)), LONG).await.unwrap();
    assert_eq!(diary.read(), ["zoe stopped", "cyd stopped", "bob stopped", "ada stopped"]);
}

#[tokio::test(start_paused = true)]
async fn what_is_in_the_mailbox_is_handled_before_the_end() {
    let (system, diary) = (ActorSystem::new(), Diary::begin());
    let scribe = hire(system.root(), &diary, "ada", never("ada"));
    tell_all(&scribe, [Say::Work(ms(100)), Say::Write("a"), Say::Write("b")]).await;
    system.shutdown(LONG).await.unwrap();
    assert_eq!(diary.read(), ["ada started", "ada begins", "ada ends", "ada a", "ada b", "ada stopped"]);
    assert!(scribe.is_closed());
}

#[tokio::test(start_paused = true)]
async fn an_actor_that_stops_itself_drops_the_rest_and_its_children() {
    let (system, diary) = (ActorSystem::new(), Diary::begin());
    let scribe = hire(system.root(), &diary, "ada", never("ada"));
    scribe.ask(|reply_to| Say::Hire("bob", reply_to)).await.unwrap();
    settle().await;
    tell_all(&scribe, [Say::Stop, Say::Write("never")]).await;
    scribe.closed().await;
    settle().await;
    assert_eq!(diary.read(), ["ada started", "bob started", "bob stopped", "ada stopped"]);
    system.shutdown(LONG).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_actor_that_hangs_is_dropped_after_its_grace_and_the_others_end_in_order() {
    let (system, diary) = (ActorSystem::new(), Diary::begin());
    hire(system.root(), &diary, "ada", never("ada"));
    let bad = hire(system.root(), &diary, "bad", never("bad").grace(ms(300)));
    bad.tell(Say::Hang).await.unwrap();
    settle().await;
    diary.read();
    let error = system.shutdown(ms(500)).await.unwrap_err();
    assert!(matches!(&error, ActorSystemError::Overdue { actors } if actors == &["bad"]), "{error}");
    diary.write("done");
    assert_eq!(diary.times(), [301, 301]);
}

#[tokio::test(start_paused = true)]
async fn a_child_that_hangs_leaves_its_parent_time_to_end_in_order() {
    let (system, diary) = (ActorSystem::new(), Diary::begin());
    let parent = hire(system.root(), &diary, "parent", never("parent").grace(ms(400)));
    let child = parent.ask(|reply_to| Say::Hire("child", reply_to)).await.unwrap();
    child.tell(Say::Hang).await.unwrap();
    settle().await;
    parent.tell(Say::Write("last words")).await.unwrap();
    diary.read();
    system.shutdown(LONG).await.unwrap();
    diary.write("done");
    assert_eq!(diary.times(), [1, 201, 201]);
    assert!(child.is_closed());
}

#[tokio::test(start_paused = true)]
async fn a_long_handle_can_watch_for_the_shutdown() {
    let (system, diary) = (ActorSystem::new(), Diary::begin());
    let scribe = hire(system.root(), &diary, "ada", never("ada"));
    scribe.tell(Say::WorkUntilShutdown).await.unwrap();
    sleep(LONG).await;
    system.shutdown(ms(10)).await.unwrap();
    assert_eq!(diary.read(), ["ada started", "ada begins", "ada ends", "ada stopped"]);
}

#[tokio::test(start_paused = true)]
async fn dropping_the_system_drops_its_actors() {
    let (system, diary) = (ActorSystem::new(), Diary::begin());
    let parent = hire(system.root(), &diary, "parent", never("parent"));
    let child = parent.ask(|reply_to| Say::Hire("child", reply_to)).await.unwrap();
    settle().await;
    drop(system);
    parent.closed().await;
    child.closed().await;
    assert_eq!(diary.read(), ["parent started", "child started"], "and no orderly end");
}

/// Tells its parent something more than the parent has room for, when it stops.
struct Chatty(Address<&'static str>);

impl Actor for Chatty {
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

struct Listener(Diary);

impl Actor for Listener {
    type Message = &'static str;

    async fn started(&mut self, context: &mut Context<Self>) -> Result<(), ActorFailure> {
        context.spawn_once(never("chatty"), Chatty(context.address().clone()));
        Ok(())
    }

    async fn handle(&mut self, word: &'static str, context: &mut Context<Self>) -> Result<(), ActorFailure> {
        self.0.write(format!("{} heard {word}", context.path()));
        let late = context.spawn_once(never("late"), Chatty(context.address().clone()));
        assert!(late.is_closed(), "nothing starts under an actor that stops");
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_parent_listens_until_its_children_are_gone() {
    let (system, diary) = (ActorSystem::new(), Diary::begin());
    let spec = crate::ChildSpec::new("listener", 1);
    system.root().spawn_once(spec, Listener(diary.clone()));
    settle().await;
    system.shutdown(LONG).await.unwrap();
    let expected = ["listener heard good", "listener heard bye", "listener heard now"];
    assert_eq!(diary.read(), expected);
}
