//! The application of the tests with real clusters: its first argument says what its `main` does.

use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

use cohabit::{Error, Result};
use futures::future::try_join_all;

/// Adds numbers.
struct Counter {
    total: i64,
}

#[cohabit::actor(restarts = 3)]
impl Counter {
    fn new(start: i64) -> Self {
        Counter { total: start }
    }

    fn add(&mut self, by: i64) -> i64 {
        self.total += by;
        self.total
    }

    fn process(&self) -> u32 {
        std::process::id()
    }

    /// Adds, and waits in between until a file is there.
    async fn add_when(&mut self, by: i64, file: String) -> i64 {
        self.total += by;
        std::fs::write(format!("{file}.waits"), "").unwrap_or_default();
        while !Path::new(&file).exists() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        self.total
    }
}

/// Holds a quarter of a GPU, and runs the program that is given on it.
struct Quarter {
    _program: Option<Child>,
}

#[cohabit::actor(gpus = 0.25, gpu_memory = "8G")]
impl Quarter {
    fn new(program: Option<String>) -> Result<Self> {
        let start = |program| Command::new(program).args(["--steps", "1000000", "--rate", "50"]).spawn();
        Ok(Quarter { _program: program.map(start).transpose()? })
    }

    fn job(&self) -> String {
        std::env::var("COHABIT_JOB_ID").unwrap_or_default()
    }
}

/// Remembers what it was told, in order.
struct List {
    items: Vec<u64>,
}

#[cohabit::actor]
impl List {
    fn new() -> Self {
        List { items: Vec::new() }
    }

    fn append(&mut self, item: u64) {
        self.items.push(item);
    }

    fn items(&self) -> Vec<u64> {
        self.items.clone()
    }

    /// Has another actor add, whose handle comes with the call.
    async fn add_by(&self, counter: CounterHandle, by: i64) -> Result<i64> {
        counter.add(by).await
    }
}

#[cohabit::main(name = "test")]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["count", to] => count(to.parse()?).await,
        ["restart", go] => restart(go).await,
        ["steady", go] => steady(go).await,
        ["keep", name] => keep(name).await,
        ["find", name] => find(name).await,
        ["stop", name] => Ok(Counter::named(name).await?.stop().await?),
        ["quarters", count, go] => quarters(count.parse()?, go, None).await,
        ["quarters", count, go, program] => quarters(count.parse()?, go, Some(program)).await,
        ["pass"] => pass().await,
        ["wait", go] => wait(go).await,
        ["fail"] => Err("it was told to fail".into()),
        _ => Err(format!("{words:?} says nothing that this program does").into()),
    }
}

async fn wait(file: &str) -> Result<()> {
    say("waiting");
    until(file).await
}

/// Waits until a file is there.
async fn until(file: &str) -> Result<()> {
    while !Path::new(file).exists() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

async fn count(to: i64) -> Result<()> {
    let counter = Counter::remote(0).start().await?;
    let sums = try_join_all((0..to).map(|_| counter.add(1))).await?;
    say(&format!("{sums:?}"));
    Ok(())
}

/// Ten calls, an eleventh within which the process of the actor is killed, and one more.
async fn restart(go: &str) -> Result<()> {
    let counter = Counter::remote(0).start().await?;
    let mut sums = Vec::new();
    for _ in 0..10 {
        sums.push(counter.add(1).await?);
    }
    say(&format!("{sums:?}"));
    say(&format!("process {}", counter.process().await?));
    let eleventh = counter.add_when(1, go.to_owned()).await;
    say(&format!("{eleventh:?}"));
    say(&format!("then {}", counter.add(1).await?));
    Ok(())
}

/// Calls all the time until a file is there, and says whether one of the calls failed.
async fn steady(go: &str) -> Result<()> {
    let counter = Counter::remote(0).start().await?;
    let (mut calls, first) = (0, counter.process().await?);
    say("calling");
    while !Path::new(go).exists() {
        calls += 1;
        let sum = counter.add(1).await?;
        if sum != calls {
            return Err(format!("call {calls} returned {sum}").into());
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    say(&format!("the same process: {}", first == counter.process().await?));
    Ok(())
}

/// Leaves a counter behind that another launch finds.
async fn keep(name: &str) -> Result<()> {
    let counter = Counter::remote(40).name(name).detached().start().await?;
    counter.add(1).await?;
    say("kept");
    Ok(())
}

async fn find(name: &str) -> Result<()> {
    let counter = Counter::named(name).await?;
    say(&format!("found {}", counter.add(1).await?));
    Ok(())
}

async fn quarters(count: usize, go: &str, program: Option<&str>) -> Result<()> {
    let starts = (0..count).map(|_| Quarter::remote(program.map(str::to_owned)).start());
    let quarters = try_join_all(starts).await?;
    let jobs = futures::future::join_all(quarters.iter().map(|quarter| quarter.job()));
    tokio::select! {
        jobs = jobs => say(&format!("jobs {}", jobs.into_iter().collect::<Result<Vec<_>>>()?.join(" "))),
        result = until(go) => result?,
    }
    until(go).await
}

async fn pass() -> Result<()> {
    let (counter, list) = (Counter::remote(1).start().await?, List::remote().start().await?);
    try_join_all((0..1_000).map(|item| list.append(item))).await?;
    let in_order = list.items().await?.into_iter().eq(0..1_000);
    say(&format!("in order: {in_order}"));
    let sum = list.add_by(counter.clone(), 5).await?;
    say(&format!("passed {sum} {}", counter.add(0).await?));
    match Counter::named("nobody").await {
        Err(Error::NotFound(name)) => say(&format!("not found {name}")),
        other => say(&format!("{:?}", other.map(drop))),
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "it is what the tests read")]
fn say(text: &str) {
    println!("{text}");
}
