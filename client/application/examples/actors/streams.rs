//! The tasks of the tests that return streams.

use std::fs::write;
use std::path::PathBuf;
use std::time::Duration;

use cohabit::{Context, Error, Result};
use futures::{Stream, StreamExt, TryStreamExt, stream};

use crate::actors::{Counter, CounterHandle, die};
use crate::tasks::{CountsBoth, append};

/// 1 to `to`, each of which is noted before it is sent.
#[cohabit::task]
pub(crate) fn numbers(to: u64, log: PathBuf) -> impl Stream<Item = Result<u64>> {
    stream::iter(1..=to).map(move |number| {
        append(&log, &number.to_string())?;
        Ok(number)
    })
}

/// Adds them up, perhaps in the process that makes them.
#[cohabit::task]
pub(crate) async fn sum_of_numbers(to: u64, log: PathBuf) -> Result<u64> {
    numbers::remote(to, log).try_fold(0, async |sum, number| Ok(sum + number)).await
}

/// As `numbers`. The first process that makes number 5 is killed.
#[cohabit::task(retries = 1)]
pub(crate) fn numbers_of_two_processes(
    to: u64,
    log: PathBuf,
    mark: PathBuf,
) -> impl Stream<Item = Result<u64>> {
    numbers(to, log).inspect_ok(move |number| {
        if *number == 5 && !mark.exists() {
            write(&mark, "was here").expect("a folder of the tests");
            die();
        }
    })
}

/// Totals of a counter, each with its handle and a new one.
#[cohabit::task]
pub(crate) async fn totals(
    counter: CounterHandle,
    context: &Context,
) -> impl Stream<Item = Result<(CounterHandle, CounterHandle, u32)>> {
    let attempt = context.attempt().attempt;
    stream::repeat(counter).take(20).then(move |counter: CounterHandle| async move {
        let total = counter.add(1).await?;
        Ok((counter, Counter::remote(total).start().await?, attempt))
    })
}

/// Goes on until it is dropped, which a counter sees.
#[cohabit::task]
pub(crate) fn for_ever(counter: CounterHandle) -> impl Stream<Item = Result<u64>> {
    stream::try_unfold(None, move |counts| {
        let counter = counter.clone();
        async move {
            let counts = match counts {
                None => CountsBoth::begin(counter).await?,
                Some(counts) => counts,
            };
            Ok::<_, Error>(Some((7, Some(counts))))
        }
    })
}

/// As many items, and then an error and more items, which nobody gets.
#[cohabit::task]
pub(crate) fn fail_after(items: usize) -> impl Stream<Item = Result<String, anyhow::Error>> {
    let ok = stream::iter((0..items).map(|item| Ok(item.to_string())));
    let failed = stream::once(async { Err(anyhow::anyhow!("no disk").context("no more")) });
    ok.chain(failed).chain(stream::repeat_with(|| Ok("more".to_owned())))
}

/// An item, and then a panic.
#[cohabit::task]
pub(crate) async fn panic_after(text: String) -> impl Stream<Item = Result<String>> {
    tokio::time::sleep(Duration::from_millis(1)).await;
    stream::iter(0..2).map(move |item| if item == 0 { Ok(text.clone()) } else { panic!("{text}") })
}

/// An item of so many bytes.
#[cohabit::task]
pub(crate) fn large(bytes: usize) -> impl Stream<Item = Result<String>> {
    stream::once(async move { Ok("a".repeat(bytes)) })
}
