//! What `main` does for each test. Wrong results are panics, which end the application with code 101.

use std::collections::VecDeque;
use std::future::Future;
use std::path::PathBuf;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use cohabit::{Error, Ran, Result};
use futures::future::{join_all, try_join_all};

use crate::actors::{Broken, Counter, Keeper, List, Lopsided, Meeting, Mumbler, Saver, Sleeper};
use crate::connections;

pub(crate) async fn count() -> Result<()> {
    let counter = Counter::remote(5).start().await?;
    assert_eq!(counter.add(2).await?, 7);
    println!("total {}", counter.total().await?);
    eprintln!("counted");
    Ok(())
}

pub(crate) async fn a_restart_says_so() -> Result<()> {
    let counter = Counter::remote(0).start().await?;
    for expected in 1..=10 {
        assert_eq!(counter.add(1).await?, expected);
    }
    assert_eq!(counter.add_and_die(1).await, Err(Error::Restarted { ran: Ran::Unknown }));
    assert_eq!(counter.add(1).await?, 1);
    assert_eq!(counter.incarnation().await?, 2);
    Ok(())
}

pub(crate) async fn a_marked_call_is_sent_again(mark: &str) -> Result<()> {
    let counter = Counter::remote(0).start().await?;
    let repeated = counter.add_and_die_once(1, PathBuf::from(mark)).start().await?;
    let later = counter.add(10).start().await?;
    // The later call had been handed over when the process ended.
    assert_eq!(later.await, Err(Error::Restarted { ran: Ran::Unknown }));
    assert_eq!(repeated.await?, 1);
    assert_eq!(counter.incarnation().await?, 2);
    Ok(())
}

pub(crate) async fn an_actor_is_given_up() -> Result<()> {
    let counter = Counter::remote(0).restarts(1).start().await?;
    for _ in 0..2 {
        let died = counter.add_and_die(1).await;
        assert!(matches!(died, Err(Error::Restarted { .. } | Error::GivenUp(_))), "{died:?}");
    }
    let Err(Error::GivenUp(text)) = counter.total().await else { panic!("it was given up") };
    assert!(text.contains("FAILED"), "{text}");
    Ok(())
}

pub(crate) async fn calls_survive_cut_links() -> Result<()> {
    const ITEMS: u64 = 10_000;
    const CUTS: u64 = 20;
    /// So many calls are on their way when a connection breaks.
    const UNDER_WAY: usize = 200;
    let list = List::remote().start().await?;
    let mut calls = VecDeque::new();
    let mut answered = 0;
    for item in 0..ITEMS {
        calls.push_back(list.append(item).start().await?);
        if item % (ITEMS / CUTS) == ITEMS / CUTS - 1 {
            // Some of them were made after the last cut: their answers show that there is a connection again.
            for call in calls.drain(..calls.len() - UNDER_WAY) {
                answered += 1;
                assert_eq!(call.await?, answered);
            }
            assert!(connections::cut() >= 1, "the actor is connected");
        }
    }
    for call in calls {
        answered += 1;
        assert_eq!(call.await?, answered);
    }
    assert_eq!(list.all().await?, (0..ITEMS).collect::<Vec<_>>());
    Ok(())
}

pub(crate) async fn reads_overlap_writes_do_not() -> Result<()> {
    let meeting = Meeting::remote(8).start().await?;
    let mut calls = Vec::new();
    for wave in 0..2 {
        for _ in 0..8 {
            calls.push(meeting.read().start().await?);
        }
        if wave == 0 {
            calls.push(meeting.write().start().await?);
        }
    }
    try_join_all(calls).await?;
    assert_eq!(meeting.log().await?, "rrrrrrrrwrrrrrrrr");
    Ok(())
}

pub(crate) async fn names_are_unique_and_found() -> Result<()> {
    let first = Counter::remote(1).name("c").start().await?;
    let Err(Error::Refused(text)) = Counter::remote(2).name("c").start().await else {
        panic!("the name is taken")
    };
    assert!(text.contains("an actor named 'c' lives"), "{text}");
    assert_eq!(Counter::named("c").await?.add(1).await?, 2);
    // Another process finds it, too.
    let keeper = Keeper::remote(None).start().await?;
    assert_eq!(keeper.add_to("c", 1).await?, 3);
    assert_eq!(Counter::named("d").await.expect_err("no actor"), Error::NotFound("d".into()));
    let wrong = List::named("c").await?.append(1).await;
    let expected = "the actor is a Counter, and was called as a List: name the right type";
    assert_eq!(wrong, Err(Error::Refused(expected.into())));
    first.stop().await?;
    assert_eq!(first.total().await, Err(Error::Stopped));
    let again = Counter::remote(7).name("c").start().await?;
    assert_eq!(again.total().await?, 7);
    Ok(())
}

pub(crate) async fn leave_a_detached_actor() -> Result<()> {
    let Err(Error::Refused(text)) = Counter::remote(0).detached().start().await else {
        panic!("nobody could find it again")
    };
    assert!(text.contains("needs a name"), "{text}");
    let counter = Counter::remote(3).name("left").detached().start().await?;
    assert_eq!(counter.add(1).await?, 4);
    Ok(())
}

pub(crate) async fn stop_the_detached_actor() -> Result<()> {
    let counter = Counter::named("left").await?;
    assert_eq!(counter.total().await?, 4);
    counter.stop().await
}

pub(crate) async fn dropped_handles_end_actors() -> Result<()> {
    let counter = Counter::remote(3).name("dropped").start().await?;
    assert_eq!(counter.add(1).await?, 4);
    let other = counter.clone();
    drop(counter);
    assert_eq!(other.add(1).await?, 5);
    drop(other);
    assert_eq!(Counter::named("dropped").await.expect_err("no actor"), Error::NotFound("dropped".into()));
    Ok(())
}

pub(crate) async fn handles_are_passed_on() -> Result<()> {
    let counter = Counter::remote(0).name("passed").start().await?;
    let keeper = Keeper::remote(None).start().await?;
    // The argument is the last handle of this process.
    keeper.keep(counter).await?;
    assert_eq!(keeper.add(1).await?, 1);
    // It comes back with the value, and the keeper has none any more.
    let counter = keeper.give().await?.ok_or("it was kept")?;
    assert_eq!(counter.add(1).await?, 2);
    // In the arguments of a constructor, and through a process that only passes it on.
    let second = Keeper::remote(Some(counter.clone())).start().await?;
    assert_eq!(second.add(1).await?, 3);
    let passed = counter.restarts_of_another(counter.clone()).await?;
    assert_eq!(passed.total().await?, 3);
    drop((counter, passed, second));
    // The process of the second keeper gives its handle back when it ends.
    let made = keeper.make(40).await?;
    assert_eq!(made.add(2).await?, 42);
    keeper.stop().await?;
    // Its maker has ended.
    assert_eq!(made.total().await?, 42);
    Ok(())
}

pub(crate) async fn dropped_calls_are_cancelled() -> Result<()> {
    let sleeper = Sleeper::remote().start().await?;
    let sleeping = join_all((0..3).map(|_| sleeper.sleep().start())).await;
    assert_eq!(sleeper.begun().await?, 3);
    drop(sleeping);
    assert_eq!(sleeper.interrupted().await?, 3);
    let limit = Duration::from_millis(20);
    assert_eq!(sleeper.sleep().within(limit).await, Err(Error::TimedOut(limit)));
    assert_eq!(sleeper.interrupted().await?, 4);
    // One that goes on although nobody waits.
    let list = List::remote().start().await?;
    list.append(1).detach()?;
    drop(list.append(2));
    assert_eq!(list.all().await?, [1]);
    Ok(())
}

pub(crate) async fn queues_are_bounded() -> Result<()> {
    let sleeper = Sleeper::remote().start().await?;
    let mut calls = join_all((0..1_000).map(|_| sleeper.sleep().start())).await;
    assert!(calls.iter().all(Result::is_ok));
    assert_eq!(sleeper.interrupted().try_start().expect_err("no room"), Error::Full);
    let mut waiting = Box::pin(sleeper.interrupted().start());
    let mut context = Context::from_waker(Waker::noop());
    assert!(matches!(waiting.as_mut().poll(&mut context), Poll::Pending), "there is no room");
    calls.clear();
    // Those that slept were interrupted, at most as many as run at once; those behind them never began.
    let interrupted = waiting.await?.await?;
    assert!(interrupted <= 4, "{interrupted}");
    Ok(())
}

pub(crate) async fn errors_and_panics_are_told() -> Result<()> {
    let counter = Counter::remote(0).start().await?;
    let missing = counter.open_missing("/nowhere/weights").await;
    let expected = "no weights: No such file or directory (os error 2)";
    assert_eq!(missing, Err(Error::Failed(expected.into())));
    assert_eq!(counter.add(1).await?, 1);
    assert_eq!(counter.add(i64::MAX).await, Err(Error::Failed("the total is too large".into())));
    assert_eq!(counter.panic().await, Err(Error::Panicked("out of order".into())));
    assert_eq!((counter.total().await?, counter.incarnation().await?), (0, 2));

    let broken = Broken::remote("none of 0").start().await?;
    let expected = Error::ConstructorFailed("no device: none of 0".into());
    assert_eq!(broken.nothing().await, Err(expected));
    Ok(())
}

pub(crate) async fn values_that_do_not_travel_are_refused() -> Result<()> {
    let refused = |result: Result<()>| match result {
        Err(Error::Refused(text)) => text,
        other => panic!("{other:?}"),
    };
    let mumbler = Mumbler::remote().start().await?;
    let text = refused(mumbler.hear(Lopsided(5)).await);
    assert!(text.contains("the arguments: cannot be decoded"), "{text}");
    let text = refused(mumbler.say().await.map(drop));
    assert!(text.contains("the value of the call: cannot be decoded"), "{text}");
    assert_eq!(mumbler.well().await?, "well");

    let counter = Counter::remote(0).start().await?;
    let text = refused(counter.echo("a".repeat(16 << 20)).await.map(drop));
    assert!(text.contains("the arguments of Counter::echo: larger than 16 MiB"), "{text}");
    let most = "a".repeat((16 << 20) - 8);
    assert!(counter.echo(most.clone()).await? == most, "what fits comes back");
    let Err(Error::Refused(text)) = Counter::remote(0).gpus(1.5).start().await else { panic!("1.5") };
    assert!(text.contains("1.5 is not a number of GPUs"), "{text}");
    let Err(Error::Refused(text)) = Counter::remote(0).gpu_memory("8G").start().await else { panic!("8G") };
    assert!(text.contains("GPU memory but for no GPU"), "{text}");
    let Err(Error::Refused(text)) = Counter::remote(0).gpus(3.0).start().await else { panic!("3") };
    assert!(text.contains("raise max_gpus of main"), "{text}");
    Ok(())
}

pub(crate) async fn an_actor_saves_its_work() -> Result<()> {
    let saver = Saver::remote().start().await?;
    assert_eq!((saver.step().await?, saver.step().await?), (1, 2));
    saver.stop().await?;
    // In the tests all actors of an application have one directory for checkpoints.
    let saver = Saver::remote().start().await?;
    assert_eq!(saver.step().await?, 3);
    Ok(())
}

/// Until somebody ends the application.
pub(crate) async fn wait() -> Result<()> {
    let counter = Counter::remote(0).name("waits").restarts(0).start().await?;
    println!("waits with {}", counter.add(1).await?);
    std::future::pending().await
}

pub(crate) async fn fail() -> Result<()> {
    Err("nothing to do")?
}
