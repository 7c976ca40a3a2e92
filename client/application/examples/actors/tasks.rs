//! The tasks of the tests.

use std::fs::{OpenOptions, read_to_string, write};
use std::future::pending;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cohabit::{Context, Result, cancelled};
use futures::future::{try_join, try_join_all};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::actors::{Counter, CounterHandle, die};

/// Appends a line to a file that several processes write.
pub(crate) fn append(log: &Path, line: &str) -> Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).open(log)?;
    Ok(file.write_all(format!("{line}\n").as_bytes())?)
}

/// The lines of such a file.
pub(crate) fn lines(log: &Path) -> Vec<String> {
    read_to_string(log).unwrap_or_default().lines().map(str::to_owned).collect()
}

/// Squares a number. The first execution for 50 is killed.
#[cohabit::task]
pub(crate) fn square(number: u64, log: PathBuf, mark: PathBuf) -> Result<u64> {
    append(&log, &number.to_string())?;
    if number == 50 && !mark.exists() {
        write(&mark, "was here")?;
        die();
    }
    std::thread::sleep(Duration::from_millis(2));
    Ok(number * number)
}

/// Calls itself twice, down to 1.
#[cohabit::task]
pub(crate) async fn fib(n: u64) -> Result<u64> {
    if n < 2 {
        return Ok(n);
    }
    let (first, second) = try_join(fib::remote(n - 1), fib::remote(n - 2)).await?;
    Ok(first + second)
}

/// Counts 1 when it begins and 100 when it is dropped.
pub(crate) struct CountsBoth(CounterHandle);

impl CountsBoth {
    pub(crate) async fn begin(counter: CounterHandle) -> Result<CountsBoth> {
        // Made first, for whoever has seen the 1 may cancel it before the answer is here.
        let counts = CountsBoth(counter);
        counts.0.add(1).await?;
        Ok(counts)
    }
}

impl Drop for CountsBoth {
    fn drop(&mut self) {
        // The counter may have ended.
        let _counted = self.0.add(100).detach();
    }
}

#[cohabit::task]
pub(crate) async fn sleep(counter: CounterHandle) -> Result<()> {
    let _counts = CountsBoth::begin(counter).await?;
    pending().await
}

#[cohabit::task]
pub(crate) async fn sleep_with_children(counter: CounterHandle, children: usize) -> Result<()> {
    let _counts = CountsBoth::begin(counter.clone()).await?;
    try_join_all((0..children).map(|_| sleep::remote(counter.clone()))).await?;
    Ok(())
}

/// Adds to a counter, and gives its handle back, with a new one.
#[cohabit::task]
pub(crate) async fn add_to(counter: CounterHandle, by: i64) -> Result<(CounterHandle, CounterHandle)> {
    let total = counter.add(by).await?;
    Ok((counter, Counter::remote(total).start().await?))
}

/// Until it is cancelled.
#[cohabit::task]
pub(crate) fn compute(log: PathBuf) -> Result<()> {
    append(&log, "begun")?;
    while !cancelled() {
        std::thread::sleep(Duration::from_millis(1));
    }
    append(&log, "cancelled")
}

/// Has its process told to end the first time, and returns too early then.
#[cohabit::task]
pub(crate) fn have_itself_told_to_end(log: PathBuf) -> Result<String> {
    append(&log, "here")?;
    if lines(&log).len() > 1 {
        return Ok("all".into());
    }
    kill(Pid::this(), Signal::SIGTERM)?;
    while !cancelled() {
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok("a part".into())
}

/// Until its process ends.
#[cohabit::task]
pub(crate) fn compute_for_ever(log: PathBuf) -> Result<()> {
    append(&log, "begun")?;
    loop {
        std::thread::park();
    }
}

#[cohabit::task]
pub(crate) fn open_missing(path: String) -> Result<u64, anyhow::Error> {
    let file = std::fs::File::open(path).map_err(|error| anyhow::Error::new(error).context("no weights"))?;
    Ok(file.metadata()?.len())
}

#[cohabit::task]
pub(crate) async fn panic_with(text: String) {
    panic!("{text}");
}

/// Fails, by turns with an error and a panic, as long as the log is shorter than this; returns its length.
#[cohabit::task(retry_errors, retries = 2)]
pub(crate) fn fail_at_first(log: PathBuf, failures: usize) -> Result<usize> {
    append(&log, "here")?;
    let runs = lines(&log).len();
    match runs <= failures {
        true if runs.is_multiple_of(2) => panic!("run {runs}"),
        true => Err(format!("run {runs}"))?,
        false => Ok(runs),
    }
}

#[cohabit::task]
pub(crate) fn die_in_a_task(log: PathBuf) -> Result<()> {
    append(&log, "here")?;
    die()
}

/// The process that runs it, and its attempt.
#[cohabit::task]
pub(crate) fn process(context: &Context) -> (u32, u32) {
    (std::process::id(), context.attempt().attempt)
}

/// Has parameters of names that the attribute could use itself.
#[cohabit::task(cpus = 0)]
pub(crate) async fn names(names: String, context: u32, arguments: u32, called: u32) -> String {
    format!("{names} {context} {arguments} {called}")
}

#[cohabit::task]
pub(crate) fn echo(text: String) -> String {
    text
}

#[cohabit::task]
pub(crate) async fn nap(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}

/// Waits for as many children as a caller may have.
#[cohabit::task]
pub(crate) async fn sum_of_children(children: u64) -> Result<u64> {
    let lengths = try_join_all((0..children).map(|child| echo::remote(child.to_string()))).await?;
    Ok(lengths.iter().map(|text| text.len() as u64).sum())
}
