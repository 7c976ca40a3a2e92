//! The application of the tests of several nodes: its first argument says what its `main` does.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use cohabit::{Buffer, Ref, Result};
use futures::future::try_join_all;

const MIB: usize = 1 << 20;

/// Bytes that follow from a seed.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    (0..length).map(|_| next()).collect()
}

/// Holds the only device of the first node, so that others go elsewhere.
struct Keeper {
    calls: u64,
}

#[cohabit::actor(gpus = 1, restarts = 3)]
impl Keeper {
    fn new() -> Self {
        Keeper { calls: 0 }
    }

    fn call(&mut self) -> (u32, u64) {
        self.calls += 1;
        (std::process::id(), self.calls)
    }
}

/// Three mebibytes, made where there is a device. Each run leaves a line in the file.
#[cohabit::task(gpus = 1)]
fn make(seed: u64, runs: String) -> Result<Buffer<u8>> {
    let mut file =
        OpenOptions::new().create(true).append(true).open(runs).map_err(|error| error.to_string())?;
    writeln!(file, "{seed}").map_err(|error| error.to_string())?;
    Ok(Buffer::from(noise(seed, 3 * MIB)))
}

/// A reference of a value that the process of this task has put.
#[cohabit::task(gpus = 1)]
async fn put_there(seed: u64) -> Result<Ref<Buffer<u8>>> {
    cohabit::put(&Buffer::from(noise(seed, 3 * MIB))).await
}

/// How many of the bytes are as they should be, counted where there is a device.
#[cohabit::task(gpus = 1)]
fn count_right(seed: u64, made: Buffer<u8>) -> usize {
    right(seed, &made)
}

fn right(seed: u64, made: &[u8]) -> usize {
    made.iter().zip(noise(seed, 3 * MIB)).filter(|(byte, expected)| **byte == *expected).count()
}

#[cohabit::main(name = "nodes")]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["travels", go] => travels(go).await,
        ["lost", go] => lost(go).await,
        ["actor", go] => actor(go).await,
        ["everywhere"] => everywhere().await,
        _ => Err("there is no such program")?,
    }
}

/// Holds the device of the first node, and waits until there is a second one.
async fn keep_first(go: &str) -> Result<KeeperHandle> {
    let keeper = Keeper::remote().start().await?;
    keeper.call().await?;
    say("kept");
    until(go).await;
    Ok(keeper)
}

/// Values go to another node and come back, and actors there are called.
async fn travels(go: &str) -> Result<()> {
    let _keeper = keep_first(go).await?;
    let there = Keeper::remote().start().await?;
    say(&format!("calls: {}", there.call().await?.1));
    let calls = try_join_all((0..1_000).map(|_| there.call())).await?;
    let in_order = calls.iter().map(|(_, call)| *call).eq(2..=1_001);
    say(&format!("in order: {in_order}"));
    there.stop().await?;
    let here: Ref<Buffer<u8>> = cohabit::put(&Buffer::from(noise(5, 3 * MIB))).await?;
    say(&format!("right there: {}", count_right::remote(5, &here).await?));
    let made: Ref<Buffer<u8>> = make::remote(6, format!("{go}.runs")).start().await?;
    say(&format!("right here: {}", right(6, &made.get().await?)));
    Ok(())
}

/// The other node is lost with all that was made there.
async fn lost(go: &str) -> Result<()> {
    let _keeper = keep_first(go).await?;
    let runs = format!("{go}.runs");
    let first: Ref<Buffer<u8>> = make::remote(1, runs.clone()).start().await?;
    let second: Ref<Buffer<u8>> = make::remote(2, runs).start().await?;
    let put = put_there::remote(3).await?;
    say("put");
    until(&format!("{go}.lost")).await;
    for (seed, made) in [(1, &first), (2, &second)] {
        say(&format!("right: {}", right(seed, &made.get().await?)));
    }
    match put.get().await {
        Ok(_) => say("it is there"),
        Err(error) => say(&error.to_string()),
    }
    Ok(())
}

/// The process of an actor on the other node goes with its node, and comes again on a third one.
async fn actor(go: &str) -> Result<()> {
    let _keeper = keep_first(go).await?;
    let there = Keeper::remote().start().await?;
    say(&format!("calls: {}", there.call().await?.1));
    until(&format!("{go}.lost")).await;
    // The call under way, if there is one, may have run.
    loop {
        match there.call().await {
            Ok((_, calls)) => break say(&format!("calls: {calls}")),
            Err(cohabit::Error::Restarted { .. }) => {}
            Err(error) => Err(error)?,
        }
    }
    Ok(())
}

/// Actors on three nodes with one device each.
async fn everywhere() -> Result<()> {
    let keepers = try_join_all((0..3).map(|_| Keeper::remote().start())).await?;
    try_join_all(keepers.iter().map(|keeper| keeper.call())).await?;
    say("kept");
    Ok(())
}

async fn until(file: &str) {
    while !Path::new(file).exists() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[expect(clippy::print_stdout, reason = "it is what the tests read")]
fn say(text: &str) {
    println!("{text}");
}
