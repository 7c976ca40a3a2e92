//! The application of the tests of objects with real clusters: its first argument says what its `main` does.

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

/// A mebibyte, and the process that made it.
#[cohabit::task]
fn make(seed: u64) -> (u32, Buffer<u8>) {
    (std::process::id(), Buffer::from(noise(seed, MIB)))
}

/// How many of the bytes are as they should be. It needs the value, wherever it was made.
#[cohabit::task]
fn count_right(seed: u64, made: (u32, Buffer<u8>)) -> usize {
    made.1.iter().zip(noise(seed, MIB)).filter(|(byte, expected)| **byte == *expected).count()
}

#[cohabit::task]
async fn slow_sum(numbers: Vec<u64>, go: String) -> Result<u64> {
    until(&go).await;
    Ok(numbers.iter().sum())
}

/// Sums of sums, each of which waits for those before it.
#[cohabit::task]
fn sum(numbers: Vec<u64>) -> u64 {
    numbers.iter().sum()
}

#[cohabit::main(name = "objects", object_memory = "64M")]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["outlives", go] => outlives(go).await,
        ["spills", go] => spills(go).await,
        ["depends", go] => depends(go).await,
        _ => Err("there is no such program")?,
    }
}

/// The process that made an object is killed from outside.
async fn outlives(go: &str) -> Result<()> {
    let made: Ref<(u32, Buffer<u8>)> = make::remote(7).start().await?;
    say(&format!("right: {}", count_right::remote(7, &made).await?));
    say(&format!("maker {}", made.get().await?.0));
    until(go).await;
    say(&format!("right: {}", count_right::remote(7, &made).await?));
    Ok(())
}

/// Four times as much as the store may have in memory.
async fn spills(go: &str) -> Result<()> {
    let mut kept: Vec<Ref<Buffer<u8>>> = Vec::new();
    for seed in 0..16 {
        kept.push(cohabit::put(&Buffer::from(noise(seed, 16 * MIB - 4096))).await?);
    }
    say("all are there");
    until(go).await;
    let mut right = 0;
    for (seed, object) in (0..).zip(&kept) {
        right += usize::from(object.get().await?[..] == noise(seed, 16 * MIB - 4096));
    }
    say(&format!("right: {right}"));
    drop(kept);
    say("dropped");
    until(&format!("{go}.end")).await;
    Ok(())
}

/// A task needs the values of others that have not ended.
async fn depends(go: &str) -> Result<()> {
    let first: Ref<u64> = slow_sum::remote(vec![1, 2, 3], go.to_owned()).start().await?;
    let starting = (0..10).map(|_| sum::remote(vec![first.clone(), first.clone()]).start());
    let doubles: Vec<Ref<u64>> = try_join_all(starting).await?;
    let all = sum::remote(doubles).start().await?;
    say("started");
    say(&format!("sum: {}", all.await?));
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
