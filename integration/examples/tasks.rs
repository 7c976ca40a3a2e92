//! The application of the tests of tasks with real clusters: its first argument says what its `main` does.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::pin::pin;
use std::time::Duration;

use cohabit::{Error, Ref, Result};
use futures::StreamExt;
use futures::future::{try_join, try_join_all};
use futures::stream::FuturesUnordered;

#[cohabit::task]
fn square(number: u64) -> u64 {
    number * number
}

/// Writes down that it runs, and takes its time.
#[cohabit::task]
fn slow_square(number: u64, record: String) -> Result<u64> {
    append(&record, &format!("{number} {}", std::process::id()))?;
    std::thread::sleep(Duration::from_millis(50));
    Ok(number * number)
}

#[cohabit::task]
async fn fibonacci(number: u32) -> Result<u64> {
    if number < 2 {
        return Ok(number.into());
    }
    let (one, two) = try_join(fibonacci::remote(number - 1), fibonacci::remote(number - 2)).await?;
    Ok(one + two)
}

/// Writes down that a task began, and that it ended, when it is dropped.
struct Written<'a> {
    name: &'a str,
    record: &'a str,
}

impl Written<'_> {
    fn begin<'a>(name: &'a str, record: &'a str) -> Result<Written<'a>> {
        append(record, &format!("{name} began"))?;
        Ok(Written { name, record })
    }
}

impl Drop for Written<'_> {
    fn drop(&mut self) {
        let _written = append(self.record, &format!("{} ended", self.name));
    }
}

/// Waits for a file that never comes. It needs no core: as many run as are called.
#[cohabit::task(cpus = 0)]
async fn sleeper(name: String, record: String) -> Result<()> {
    let _written = Written::begin(&name, &record)?;
    until(&format!("{record}.never")).await
}

/// Three sleepers.
#[cohabit::task]
async fn parent(record: String) -> Result<()> {
    let _written = Written::begin("parent", &record)?;
    let sleepers = ["one", "two", "three"].map(|name| sleeper::remote(name.to_owned(), record.clone()));
    try_join_all(sleepers).await.map(drop)
}

#[cohabit::task(gpus = 1)]
async fn nested_gpu(depth: u32) -> Result<u32> {
    match depth {
        0 => Ok(0),
        depth => Ok(1 + nested_gpu::remote(depth - 1).await?),
    }
}

/// Holds a GPU for a while.
#[cohabit::task(gpus = 1)]
fn short_gpu() -> u32 {
    std::thread::sleep(Duration::from_millis(50));
    std::process::id()
}

struct GpuHolder;

#[cohabit::actor(gpus = 1)]
impl GpuHolder {
    fn new() -> Self {
        GpuHolder
    }

    fn process(&self) -> u32 {
        std::process::id()
    }
}

#[cohabit::task(retries = 0)]
fn fails(text: String) -> Result<()> {
    Err(text.into())
}

#[cohabit::task]
fn panics() {
    panic!("it was told to");
}

#[cohabit::main(name = "tasks")]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["squares", count] => squares(count.parse()?).await,
        ["many", go] => many(go).await,
        ["slow", record] => slow(record).await,
        ["fibonacci", number] => {
            say(&fibonacci::remote(number.parse::<u32>()?).await?.to_string());
            Ok(())
        }
        ["crowd"] => crowd().await,
        ["drop", record] => drop_a_tree(record).await,
        ["errors"] => errors().await,
        ["gpu", depth] => {
            say(&format!("{:?}", nested_gpu::remote(depth.parse::<u32>()?).await));
            Ok(())
        }
        _ => Err(format!("{words:?} says nothing that this program does").into()),
    }
}

async fn squares(count: u64) -> Result<()> {
    let squares = try_join_all((0..count).map(square::remote)).await?;
    say(&format!("{squares:?}"));
    Ok(())
}

/// One task, and when it is told to, 10,000; then it waits until it is told to end.
async fn many(go: &str) -> Result<()> {
    say(&square::remote(3).await?.to_string());
    until(go).await?;
    let mut calls = Vec::new();
    for number in 0..10_000 {
        calls.push(square::remote(number).start().await?);
    }
    let squares = try_join_all(calls).await?;
    say(&format!("in order: {}", squares.into_iter().eq((0..10_000).map(|number| number * number))));
    until(&format!("{go}.end")).await
}

async fn slow(record: &str) -> Result<()> {
    let squares = try_join_all((0..100).map(|number| slow_square::remote(number, record.to_owned()))).await?;
    say(&format!("exact: {}", squares.into_iter().eq((0..100).map(|number| number * number))));
    Ok(())
}

/// Tasks without end hold two GPUs when an actor wants one of them.
async fn crowd() -> Result<()> {
    let mut running = FuturesUnordered::new();
    let mut processes = BTreeSet::new();
    (0..8).for_each(|_| running.push(short_gpu::remote().into_future()));
    while processes.len() < 2 {
        processes.extend(running.next().await.transpose()?);
        running.push(short_gpu::remote().into_future());
    }
    say("tasks hold both");
    let holder = GpuHolder::remote().start().await?;
    let mut holds = pin!(holder.process().into_future());
    let holder = loop {
        tokio::select! {
            process = &mut holds => break process?,
            Some(task) = running.next() => drop(task?),
        }
        running.push(short_gpu::remote().into_future());
    };
    let mut left = BTreeSet::new();
    while let Some(task) = running.next().await {
        left.insert(task?);
    }
    say(&format!("the actor has one: {}", !left.contains(&holder) && !left.is_empty()));
    Ok(())
}

/// Begins a tree of tasks, drops its reference when all of it runs, and waits until all of it has ended.
async fn drop_a_tree(record: &str) -> Result<()> {
    let tree: Ref<()> = parent::remote(record.to_owned()).start().await?;
    lines(record, 4).await;
    say("all began");
    drop(tree);
    lines(record, 8).await;
    say("all ended");
    Ok(())
}

async fn errors() -> Result<()> {
    match fails::remote("no such model".to_owned()).await {
        Err(Error::Failed(text)) => say(&format!("failed: {text}")),
        other => say(&format!("{other:?}")),
    }
    match panics::remote().await {
        Err(Error::Panicked(text)) => say(&format!("panicked: {text}")),
        other => say(&format!("{other:?}")),
    }
    match square::remote(2).gpus(64.0).await {
        Err(Error::NoRunner(_)) => say("no node has 64 GPUs"),
        other => say(&format!("{other:?}")),
    }
    say(&square::remote(12).retries(1).await?.to_string());
    Ok(())
}

fn append(file: &str, line: &str) -> Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).open(file)?;
    Ok(file.write_all(format!("{line}\n").as_bytes())?)
}

async fn until(file: &str) -> Result<()> {
    while !Path::new(file).exists() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

async fn lines(file: &str, count: usize) {
    while std::fs::read_to_string(file).map_or(0, |text| text.lines().count()) < count {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[expect(clippy::print_stdout, reason = "it is what the tests read")]
fn say(text: &str) {
    println!("{text}");
}
