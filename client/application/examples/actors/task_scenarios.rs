//! What `main` does for each test of tasks. Wrong results are panics, which end the application with code
//! 101.

use std::future::Future;
use std::path::Path;
use std::time::Duration;

use cohabit::{Error, Ref, Result};
use futures::future::{join_all, try_join_all};
use tokio::time::sleep;

use crate::actors::{Broken, Counter};
use crate::tasks::{self, lines};

/// Waits for something that comes in any case.
pub(crate) async fn until<F: Future<Output = Result<bool>>>(mut holds: impl FnMut() -> F) -> Result<()> {
    while !holds().await? {
        sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}

pub(crate) async fn a_killed_runner_costs_a_retry(folder: &Path) -> Result<()> {
    let (log, mark) = (folder.join("log"), folder.join("mark"));
    let squares = (0..100).map(|number| tasks::square::remote(number, log.clone(), mark.clone()));
    let squares = try_join_all(squares).await?;
    assert_eq!(squares, (0..100).map(|number| number * number).collect::<Vec<u64>>());
    let runs = lines(&log).len();
    assert!((101..=108).contains(&runs), "{runs}");
    Ok(())
}

pub(crate) async fn recursion_deeper_than_cores_ends() -> Result<()> {
    assert_eq!(tasks::fib::remote(12).await?, 144);
    // Numbers of 1, 2, 3 and 4 digits.
    assert_eq!(tasks::sum_of_children::remote(10_000).await?, 10 + 180 + 2_700 + 36_000);
    Ok(())
}

pub(crate) async fn dropping_a_ref_cancels_its_tree() -> Result<()> {
    let counter = Counter::remote(0).start().await?;
    let parent: Ref<()> = tasks::sleep_with_children::remote(counter.clone(), 3).start().await?;
    until(|| async { Ok(counter.total().await? == 4) }).await?;
    drop(parent);
    until(|| async { Ok(counter.total().await? == 404) }).await?;
    let limit = Duration::from_millis(200);
    let late = tasks::sleep::remote(counter.clone()).within(limit).await;
    assert_eq!(late, Err(Error::TimedOut(limit)));
    Ok(())
}

pub(crate) async fn tasks_get_and_give_handles() -> Result<()> {
    let counter = Counter::remote(5).start().await?;
    // The argument is the last handle of this process.
    let (counter, made) = tasks::add_to::remote(counter, 2).await?;
    assert_eq!((counter.add(1).await?, made.add(1).await?), (8, 8));
    assert_eq!(tasks::names::remote("a", 1, 2, 3).await?, "a 1 2 3");
    assert_eq!(tasks::echo("plain".into()), "plain");
    Ok(())
}

pub(crate) async fn errors_and_panics_of_tasks_are_told() -> Result<()> {
    let missing = tasks::open_missing::remote("/nowhere/weights").await;
    let expected = "no weights: No such file or directory (os error 2)";
    assert_eq!(missing, Err(Error::Failed(expected.into())));
    let panicked = tasks::panic_with::remote("out of order").await;
    assert_eq!(panicked, Err(Error::Panicked("out of order".into())));
    // A panic costs no process.
    let (process, attempt) = tasks::process::remote().await?;
    assert_eq!((tasks::process::remote().await?, attempt), ((process, 1), 1));

    let Err(Error::Refused(text)) = tasks::process::remote().gpus(1.5).await else { panic!("1.5") };
    assert!(text.contains("1.5 is not a number of GPUs"), "{text}");
    let Err(Error::Refused(text)) = tasks::process::remote().gpu_memory("8G").await else { panic!("8G") };
    assert!(text.contains("GPU memory but for no GPU"), "{text}");
    let Err(Error::NoRunner(text)) = tasks::process::remote().gpus(3.0).await else { panic!("3") };
    assert!(text.contains("needs 3 GPUs and the application may use 2: raise max_gpus of main"), "{text}");
    assert_eq!(tasks::process::remote().gpus(0.5).await?.1, 1);
    let Err(Error::Refused(text)) = tasks::echo::remote("a".repeat(16 << 20)).await else { panic!("16M") };
    assert!(text.contains("the arguments of echo: larger than 16 MiB"), "{text}");
    Ok(())
}

pub(crate) async fn retries_are_counted(folder: &Path) -> Result<()> {
    let log = |name: &str| folder.join(name);
    assert_eq!(tasks::fail_at_first::remote(log("twice"), 2).await?, 3);
    let failed = tasks::fail_at_first::remote(log("often"), 9).await;
    assert_eq!((failed, lines(&log("often")).len()), (Err(Error::Failed("run 3".into())), 3));
    let failed = tasks::fail_at_first::remote(log("once"), 1).retries(0).await;
    assert_eq!((failed, lines(&log("once")).len()), (Err(Error::Failed("run 1".into())), 1));

    let lost = tasks::die_in_a_task::remote(log("at most once")).retries(0).await;
    assert!(matches!(&lost, Err(Error::Lost(text)) if text.contains("ended 1 times")), "{lost:?}");
    assert_eq!(lines(&log("at most once")).len(), 1);
    let lost = tasks::die_in_a_task::remote(log("at most twice")).retries(1).await;
    assert!(matches!(&lost, Err(Error::Lost(text)) if text.contains("ended 2 times")), "{lost:?}");
    assert_eq!(lines(&log("at most twice")).len(), 2);
    Ok(())
}

pub(crate) async fn a_plain_task_asks_whether_it_is_cancelled(folder: &Path) -> Result<()> {
    let log = folder.join("log");
    let call = tasks::compute::remote(log.clone()).start().await?;
    until(|| async { Ok(lines(&log) == ["begun"]) }).await?;
    drop(call);
    until(|| async { Ok(lines(&log) == ["begun", "cancelled"]) }).await
}

pub(crate) async fn a_runner_that_is_told_to_end_gives_its_tasks_away(folder: &Path) -> Result<()> {
    let log = folder.join("log");
    assert_eq!(tasks::have_itself_told_to_end::remote(log.clone()).await?, "all");
    assert_eq!(lines(&log).len(), 2);
    Ok(())
}

pub(crate) async fn a_task_that_does_not_end_ends_its_process(folder: &Path) -> Result<()> {
    let log = folder.join("log");
    let call = tasks::compute_for_ever::remote(log.clone()).start().await?;
    until(|| async { Ok(lines(&log) == ["begun"]) }).await?;
    // It waits behind the other one, and goes to another process.
    let waiting = tasks::process::remote().start().await?;
    drop(call);
    waiting.await?;
    Ok(())
}

pub(crate) async fn tasks_are_bounded() -> Result<()> {
    let counter = Counter::remote(0).start().await?;
    let mut calls = join_all((0..10_000).map(|_| tasks::sleep::remote(counter.clone()).start())).await;
    assert!(calls.iter().all(Result::is_ok));
    assert_eq!(tasks::sleep::remote(counter.clone()).try_start().expect_err("no room"), Error::Full);
    calls.pop();
    until(|| async { Ok(tasks::sleep::remote(counter.clone()).try_start().is_ok()) }).await?;
    calls.clear();
    assert_eq!(tasks::echo::remote("still here").await?, "still here");
    Ok(())
}

pub(crate) async fn a_runner_ends_when_it_is_idle() -> Result<()> {
    let (first, _) = tasks::process::remote().await?;
    until(|| async { Ok(!Path::new(&format!("/proc/{first}")).exists()) }).await?;
    let (second, _) = tasks::process::remote().await?;
    assert_ne!(first, second);
    Ok(())
}

/// Leaves nothing but itself, until somebody ends the application.
pub(crate) async fn actors_end_in_good_order() -> Result<()> {
    let counter = Counter::remote(0).name("counter").start().await?;
    assert_eq!(counter.add(1).await?, 1);
    drop(counter);
    let broken = Broken::remote("none of 0").name("broken").start().await?;
    assert!(matches!(broken.nothing().await, Err(Error::ConstructorFailed(_))));
    std::future::pending().await
}
