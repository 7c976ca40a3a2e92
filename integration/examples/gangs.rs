//! The application of the tests of gangs: its first argument says what its `main` does.

use std::path::Path;
use std::time::Duration;

use cohabit::{Context, Gang, GangMember, Result};
use futures::future::try_join_all;

struct Shard {
    member: GangMember,
    incarnation: u32,
}

#[cohabit::actor(gpus = 1, restarts = 3)]
impl Shard {
    fn new(member: GangMember, context: &Context) -> Self {
        Shard { member, incarnation: context.incarnation() }
    }

    fn process(&self) -> u32 {
        std::process::id()
    }

    #[retry]
    fn incarnation(&self) -> (usize, u32) {
        (self.member.rank, self.incarnation)
    }

    /// What the process knows of its gang.
    fn surroundings(&self) -> Vec<String> {
        let names = ["RANK", "WORLD_SIZE", "COHABIT_SHARE", "MASTER_ADDR", "MASTER_PORT"];
        let value = |name| std::env::var(name).unwrap_or_else(|_| "none".to_owned());
        names.map(value).into()
    }

    fn panic(&mut self) {
        panic!("on purpose")
    }
}

#[cohabit::main(name = "gangs")]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["restarts", go] => restarts(go).await,
        ["waits", members] => waits(members.parse().map_err(|_| "no number")?).await,
        ["beside"] => beside().await,
        _ => Err("there is no such program")?,
    }
}

/// A process of four is killed from outside, then a method of another one panics.
async fn restarts(go: &str) -> Result<()> {
    let gang = Gang::of(4).gpus(1).start().await?;
    let shards = gang.spawn(Shard::remote).await?;
    let processes = try_join_all(shards.iter().map(ShardHandle::process)).await?;
    say(&format!("{processes:?}"));
    until(go).await;
    say(&incarnations(&shards, 2).await?);
    say(&error_of(shards[1].panic().await));
    say(&incarnations(&shards, 3).await?);
    Ok(())
}

/// The ranks and incarnations of all, once the first has this one.
async fn incarnations(shards: &[ShardHandle], next: u32) -> Result<String> {
    while shards[0].incarnation().await?.1 < next {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let all = try_join_all(shards.iter().map(ShardHandle::incarnation)).await?;
    Ok(format!("{all:?}"))
}

/// A gang waits until all of it have room.
async fn waits(members: usize) -> Result<()> {
    let shards = Gang::of(members).spawn(Shard::remote).await?;
    say("created");
    for shard in &shards {
        say(&shard.surroundings().await?.join(" "));
    }
    Ok(())
}

/// Members without GPUs, on one node.
async fn beside() -> Result<()> {
    let shards = Gang::of(3).gpus(0).spawn(Shard::remote).await?;
    let mut processes = try_join_all(shards.iter().map(ShardHandle::process)).await?;
    processes.sort_unstable();
    processes.dedup();
    say(&format!("{} processes", processes.len()));
    say(&shards[2].surroundings().await?[..2].join(" of "));
    say(&incarnations(&shards, 1).await?);
    shards[2].stop().await?;
    say(&error_of(shards[0].incarnation().await));
    Ok(())
}

fn error_of<T>(result: Result<T>) -> String {
    result.map_or_else(|error| error.to_string(), |_| "it did not fail".to_owned())
}

#[expect(clippy::print_stdout, reason = "it is what the tests read")]
fn say(text: &str) {
    println!("{text}");
}

async fn until(path: &str) {
    while !Path::new(path).exists() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
