//! Counts the words of many files (map-reduce) with less memory than the counts need.
//!
//! A map task counts the words of one file, and puts its counts into the application in four parts, by
//! word. A reduce task adds up one part of all files. What lies between them may have 2 MiB of memory here;
//! the rest is on disk until it is read, which `cohabit objects word-count` shows. Run it, with a cluster on
//! this machine:
//!
//! ```sh
//! cohabit up
//! cargo run --release -p cohabit-examples --example word_count -- counts.txt docs/*.md
//! ```
#![expect(clippy::print_stdout, reason = "the sums of its counts")]

use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use cohabit::{Ref, Result};
use futures::future::try_join_all;

type Counts = HashMap<String, u64>;

const PARTS: usize = 4;

/// The counts of one file, in parts.
#[cohabit::task]
async fn map(path: String) -> Result<Vec<Ref<Counts>>> {
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    let mut parts = vec![Counts::new(); PARTS];
    for word in text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty()) {
        let word = word.to_lowercase();
        *parts[part_of(&word)].entry(word).or_default() += 1;
    }
    // The parts stay where they are: references of them are returned.
    try_join_all(parts.iter().map(cohabit::put)).await
}

/// The sums of counts. It takes references, and not the values, so that one of them at a time has to be in
/// memory.
#[cohabit::task]
async fn reduce(parts: Vec<Ref<Counts>>) -> Result<Counts> {
    let mut sums = Counts::new();
    for part in parts {
        for (word, count) in part.await? {
            *sums.entry(word).or_default() += count;
        }
    }
    Ok(sums)
}

/// The part that counts a word, the same in each process.
fn part_of(word: &str) -> usize {
    let mut hasher = DefaultHasher::new();
    word.hash(&mut hasher);
    hasher.finish() as usize % PARTS
}

#[cohabit::main(name = "word-count", object_memory = "2M")]
async fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let output = arguments.next().ok_or("no files: name one for the counts, and then those to read")?;

    let files: Vec<Vec<Ref<Counts>>> = try_join_all(arguments.map(map::remote)).await?;
    let part_of_files = |part: usize| files.iter().map(|parts| parts[part].clone()).collect::<Vec<_>>();
    let sums = try_join_all((0..PARTS).map(|part| reduce::remote(part_of_files(part)))).await?;

    let mut sums: Vec<(String, u64)> = sums.into_iter().flatten().collect();
    sums.sort();
    // The most frequent first; those of equal counts stay in the order of the alphabet.
    sums.sort_by_key(|(_, count)| Reverse(*count));
    let lines: String = sums.iter().map(|(word, count)| format!("{count} {word}\n")).collect();
    std::fs::write(&output, lines)?;
    let words: u64 = sums.iter().map(|(_, count)| count).sum();
    println!("{words} words, {} different ones: see {output}", sums.len());
    Ok(())
}
