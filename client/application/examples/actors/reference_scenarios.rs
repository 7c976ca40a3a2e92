//! What `main` does for each test of references and objects. Wrong results are panics, which end the
//! application with code 101.

use std::fs::write;
use std::path::Path;
use std::time::Duration;

use cohabit::{Buffer, Error, Ref, Result};
use futures::TryStreamExt;
use futures::future::try_join_all;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::actors::{Counter, Meeting};
use crate::references::{self as tasks, NumberAsText, Parcel, Shelf, pattern};
use crate::task_scenarios::until;
use crate::tasks::{echo, lines, sleep};

/// More than travels with a call.
const LARGE: usize = 1 << 20;

pub(crate) async fn references_are_arguments(folder: &Path) -> Result<()> {
    let seven = tasks::double::remote(3).start().await?;
    assert_eq!((seven.get().await?, seven.get().await?), (6, 6));
    // Of a call that has not ended, of a value that was put, and of both together.
    let mark = folder.join("mark");
    let late = tasks::when_there::remote(5, mark.clone()).start().await?;
    let twice = tasks::double::remote(&late).start().await?;
    let four_times = tasks::double::remote(&twice).start().await?;
    let put = cohabit::put(&100).await?;
    let sum = tasks::sum::remote(vec![late.clone(), twice, four_times.clone(), put]).start().await?;
    // An actor gets values, too, its constructor among them.
    let counter = Counter::remote(cohabit::put(&40).await?).start().await?;
    let added = counter.add(cohabit::put(&1).await?).start().await?;
    let echoed = echo::remote(counter.echo("said").start().await?).start().await?;
    write(&mark, "there")?;
    assert_eq!((sum.await?, four_times.await?), (5 + 10 + 20 + 100, 20));
    assert_eq!((added.await?, counter.add(1).await?, echoed.await?), (41, 42, "said".to_owned()));
    // The reference itself, through a process that only passes it on.
    let passed = tasks::pass_on::remote(late).await?;
    assert_eq!(tasks::double::remote(passed).await?, 10);
    let none: Vec<Ref<u64>> = Vec::new();
    assert_eq!(tasks::sum::remote(none).await?, 0);
    Ok(())
}

pub(crate) async fn a_task_returns_the_reference_of_its_call(folder: &Path) -> Result<()> {
    let mark = folder.join("mark");
    let reference = tasks::begin::remote(21, mark.clone()).await?;
    let twice = tasks::double::remote(&reference).start().await?;
    let shelf = Shelf::remote(pattern(0)).start().await?;
    shelf.keep(reference.clone()).await?;
    let known = shelf.wait_until_kept_is_known().start().await?;
    write(&mark, "there")?;
    assert_eq!((twice.await?, reference.await?), (42, 21));
    known.await?;
    assert_eq!(shelf.sum_of_kept().await?, 21);
    // Its maker has ended its task, and so has its reader.
    let all: Vec<Ref<u64>> = tasks::references::remote(20).try_collect().await?;
    assert_eq!(tasks::sum::remote(all).await?, 420);
    Ok(())
}

pub(crate) async fn a_process_with_calls_is_not_idle(folder: &Path) -> Result<()> {
    let mark = folder.join("mark");
    let reference = tasks::begin::remote(21, mark.clone()).await?;
    // Longer than a process without tasks waits for one.
    tokio::time::sleep(Duration::from_secs(7)).await;
    write(&mark, "there")?;
    assert_eq!(reference.await?, 21);
    Ok(())
}

pub(crate) async fn a_failed_dependency_is_told() -> Result<()> {
    let failed = tasks::fail::remote("no data").start().await?;
    let twice = tasks::double::remote(&failed).start().await?;
    let expected = Error::Dependency("an argument is missing: no data".into());
    assert_eq!(tasks::double::remote(&twice).await, Err(expected.clone()));
    assert_eq!(tasks::sum::remote(vec![twice, cohabit::put(&1).await?]).await, Err(expected.clone()));
    let counter = Counter::remote(0).start().await?;
    let number = cohabit::put(&1).await?;
    let (late, never) = (counter.add(number), counter.add(tasks_fail().await?));
    assert_eq!((never.await, late.await?), (Err(expected.clone()), 1));
    let Err(error) = Counter::remote(tasks_fail().await?).start().await else { panic!("no start") };
    assert_eq!(error, expected);
    assert_eq!(failed.get().await, Err(Error::Failed("no data".into())));
    Ok(())
}

/// The reference of a number that there will not be.
async fn tasks_fail() -> Result<Ref<i64>> {
    tasks::fail_signed::remote("no data").start().await
}

pub(crate) async fn dropping_the_last_reference_cancels(folder: &Path) -> Result<()> {
    let counter = Counter::remote(0).start().await?;
    let total = async |expected| until(|| async { Ok(counter.total().await? == expected) }).await;
    let first = tasks::never::remote(counter.clone()).start().await?;
    let second = first.clone();
    total(1).await?;
    drop(first);
    drop(second);
    total(101).await?;
    // One of two is enough, and so is the argument of a call that waits; that call was let go.
    let (log, mark) = (folder.join("log"), folder.join("mark"));
    let number = tasks::when_there::remote(1, mark.clone()).start().await?;
    let other = number.clone();
    tasks::note::remote(&number, log.clone()).start().await?.detach();
    drop(number);
    let twice = tasks::double::remote(other).start().await?;
    write(&mark, "there")?;
    assert_eq!(twice.await?, 2);
    until(|| async { Ok(lines(&log) == ["1"]) }).await?;
    // The last ones are in other processes.
    let never = tasks::never::remote(counter.clone()).start().await?;
    let shelf = Shelf::remote(pattern(0)).start().await?;
    shelf.keep(never.clone()).await?;
    let waits = tasks::wait_for_number::remote(never, counter.clone()).start().await?;
    total(103).await?;
    shelf.drop_kept().await?;
    drop(waits);
    total(303).await
}

pub(crate) async fn a_limit_holds_for_what_nobody_awaits() -> Result<()> {
    let counter = Counter::remote(0).start().await?;
    let limit = Duration::from_millis(200);
    let late = sleep::remote(counter.clone()).within(limit).start().await?;
    until(|| async { Ok(counter.total().await? == 101) }).await?;
    assert_eq!(late.get().await, Err(Error::TimedOut(limit)));
    let hour = Duration::from_secs(3_600);
    let early = tasks::double::remote(4).within(hour).start().await?;
    assert_eq!((early.await?, tasks::double::remote(5).within(hour).await?), (8, 10));
    Ok(())
}

pub(crate) async fn who_waits_for_a_reference_gives_its_core_back(folder: &Path) -> Result<()> {
    let meeting = Meeting::remote(2).start().await?;
    let log = folder.join("log");
    let met = meeting.read().start().await?;
    let waits = tasks::wait_for::remote(met, log.clone()).start().await?;
    until(|| async { Ok(lines(&log) == ["begun"]) }).await?;
    // There is one process for both.
    assert_eq!(echo::remote("beside").await?, "beside");
    assert_eq!(lines(&log), ["begun"]);
    meeting.read().await?;
    waits.await?;
    assert_eq!(lines(&log), ["begun", "ended"]);
    Ok(())
}

pub(crate) async fn large_values_travel() -> Result<()> {
    assert!(tasks::bytes::remote(LARGE).await? == pattern(LARGE), "an awaited value");
    let bytes = tasks::bytes::remote(LARGE).start().await?;
    assert!(bytes.get().await? == pattern(LARGE), "the value of a reference");
    assert!(tasks::is_pattern::remote(&bytes).await?, "an argument of a task");
    let shelf = Shelf::remote(&bytes).start().await?;
    assert_eq!(shelf.is_whole().await?, (true, 1));
    assert!(shelf.all().await? == pattern(LARGE), "the value of a method");
    assert_eq!(shelf.add(&bytes).await?, 2 * LARGE);
    let all = shelf.all().start().await?;
    drop((shelf, bytes));
    assert_eq!(all.await?.len(), 2 * LARGE);
    Ok(())
}

pub(crate) async fn objects_are_read_in_place() -> Result<()> {
    let numbers: Buffer<u64> = (0..500_000).collect();
    let put = cohabit::put(&numbers).await?;
    let sum = (0..500_000).sum();
    let sums = try_join_all((0..2).map(|_| tasks::sum_in_place::remote(&put))).await?;
    assert_eq!(sums, [(sum, true), (sum, true)]);
    let (first, second) = (put.get().await?, put.get().await?);
    assert!(first.is_shared() && first == numbers);
    assert_eq!(first.as_ptr(), second.as_ptr(), "both are the same memory");
    // It lives as long as who reads it.
    drop((put, second));
    assert_eq!(first.iter().sum::<u64>(), sum);
    let small: Buffer<u64> = (0..10).collect();
    let put = cohabit::put(&small).await?;
    assert_eq!(tasks::sum_in_place::remote(&put).await?, (45, false));
    assert_eq!(tasks::sum_in_place::remote(small).await?, (45, false));
    Ok(())
}

pub(crate) async fn references_lie_in_objects() -> Result<()> {
    let counter = Counter::remote(0).start().await?;
    let mut letter = None;
    for number in 1..=3_u64 {
        let number = tasks::double::remote(number).start().await?;
        let filling = pattern(if letter.is_none() { 10 } else { LARGE });
        let parcel = Parcel { filling, counter: counter.clone(), number, letter };
        letter = Some(cohabit::put(&parcel).await?);
    }
    let parcel = letter.ok_or("three were made")?;
    let opened = tasks::open::remote(&parcel).start().await?;
    drop(parcel);
    assert_eq!((opened.await?, counter.total().await?), (3, 2 + 4 + 6));
    Ok(())
}

/// Ends a process as a crash would.
async fn end(process: u32) -> Result<()> {
    kill(Pid::from_raw(i32::try_from(process)?), Signal::SIGKILL)?;
    until(|| async { Ok(!Path::new(&format!("/proc/{process}")).exists()) }).await
}

pub(crate) async fn an_object_outlives_its_maker(folder: &Path) -> Result<()> {
    let (maker, put) = tasks::put_bytes::remote(LARGE).await?;
    let returned = tasks::bytes::remote(LARGE).start().await?;
    // It is known then, and here and there.
    assert!(tasks::is_pattern::remote(&returned).await?);
    end(maker).await?;
    assert!(put.get().await? == pattern(LARGE), "what was put is whole");
    assert!(returned.await? == pattern(LARGE), "what was returned is whole");
    assert!(tasks::is_pattern::remote(put).await?, "and others read it");
    // A call ends with the process that made it.
    let (maker, call) = tasks::begin_and_tell::remote(1, folder.join("never")).await?;
    end(maker).await?;
    let lost = call.await;
    assert!(matches!(lost, Err(Error::ObjectLost(_))), "{lost:?}");
    Ok(())
}

pub(crate) async fn an_actor_keeps_its_arguments() -> Result<()> {
    for count in [10, LARGE] {
        let bytes = tasks::bytes::remote(count).start().await?;
        let shelf = Shelf::remote(bytes).start().await?;
        assert_eq!(shelf.is_whole().await?, (true, 1));
        assert!(matches!(shelf.die().await, Err(Error::Restarted { .. })));
        assert_eq!(shelf.is_whole().await?, (true, 2));
    }
    Ok(())
}

pub(crate) async fn references_that_do_not_travel_are_refused() -> Result<()> {
    let number = cohabit::put(&1_u64).await?;
    let Err(Error::Refused(text)) = tasks::hear::remote(NumberAsText(number.clone())).await else {
        panic!("a number is no text")
    };
    let expected = "this is a reference of a u64, and not of a alloc::string::String";
    assert!(text.contains(expected), "{text}");
    let stored = serde_json::to_string(&number).map_err(|error| error.to_string());
    let expected = "handles and references travel in arguments and values of calls and in objects";
    assert!(stored.as_ref().is_err_and(|text| text.starts_with(expected)), "{stored:?}");
    let read = serde_json::from_str::<Ref<u64>>(r#"["u64", {"maker": "9#1/0", "number": 1}]"#);
    let text = read.expect_err("nobody holds it").to_string();
    assert!(text.contains("this process holds no reference of object"), "{text}");
    let Err(Error::Refused(text)) = tasks::sum::remote(vec![number.clone(); 10_001]).await else {
        panic!("too many")
    };
    assert!(text.contains("more than 10000 handles and references"), "{text}");
    assert_eq!(tasks::sum::remote(vec![number; 10_000]).await?, 10_000);
    Ok(())
}
