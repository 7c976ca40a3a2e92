//! Prepares text for a training in a pipeline of streams, and trains with what has come out of it.
//!
//! For each file one task reads lines, a second one cleans them, and a third one packs them into sequences.
//! Each takes the items of the one before as they are made, and none is more than eight items ahead. Run it,
//! with a cluster on this machine:
//!
//! ```sh
//! cohabit up
//! cargo run --release -p cohabit-examples --example pipeline -- README.md CHANGELOG.md
//! ```
#![expect(clippy::print_stdout, reason = "what it has learned")]

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};

use cohabit::{Buffer, Error, RefStream, Result};
use futures::future::{ready, try_join_all};
use futures::stream::TryChunksError;
use futures::{Stream, StreamExt, TryStreamExt, stream};

/// Bytes in a sequence; the last one of a file may have fewer.
const LENGTH: usize = 256;

/// The lines of a file.
#[cohabit::task]
fn lines(path: String) -> impl Stream<Item = Result<String>> {
    let opened = File::open(&path).map_err(move |error| Error::from(format!("{path}: {error}")));
    let lines = |file| stream::iter(BufReader::new(file).lines()).map_err(Error::from);
    stream::once(ready(opened)).map_ok(lines).try_flatten()
}

/// Lines of lowercase words with single spaces between them. Those without a word are left out.
#[cohabit::task]
fn clean_lines(path: String) -> impl Stream<Item = Result<String>> {
    lines::remote(path).try_filter_map(|line| {
        let words = line.split(|letter: char| !letter.is_ascii_alphabetic()).filter(|word| !word.is_empty());
        let clean = words.map(str::to_lowercase).collect::<Vec<_>>().join(" ");
        ready(Ok(Some(clean).filter(|clean| !clean.is_empty())))
    })
}

/// The bytes of the clean lines, each ended by a line feed, in sequences of equal length.
#[cohabit::task]
fn sequences(path: String) -> impl Stream<Item = Result<Buffer<u8>>> {
    clean_lines::remote(path)
        .map_ok(|line| stream::iter((line + "\n").into_bytes()).map(Ok))
        .try_flatten()
        .try_chunks(LENGTH)
        .map_ok(Buffer::from)
        .map_err(|TryChunksError(_, error)| error)
}

/// Predicts a letter from the one before: how often each pair of them was seen.
#[derive(Default)]
struct Bigrams {
    counts: BTreeMap<u8, BTreeMap<u8, u64>>,
}

impl Bigrams {
    fn learn(&mut self, sequence: &[u8]) {
        for pair in sequence.windows(2) {
            *self.counts.entry(pair[0]).or_default().entry(pair[1]).or_default() += 1;
        }
    }

    /// The mean loss of a prediction in bits, for the text that was learned.
    fn loss(&self) -> f64 {
        let (mut bits, mut pairs) = (0.0, 0.0);
        for after in self.counts.values() {
            let all = after.values().sum::<u64>() as f64;
            pairs += all;
            bits -= after.values().map(|count| *count as f64 * (*count as f64 / all).log2()).sum::<f64>();
        }
        bits / pairs
    }
}

#[cohabit::main(name = "pipeline")]
async fn main() -> Result<()> {
    let paths: Vec<String> = std::env::args().skip(1).collect();
    if paths.is_empty() {
        Err("no files: name those to read")?;
    }
    // All files are read at the same time, and trained with in their order.
    let started = paths.into_iter().map(|path| sequences::remote(path).start());
    let started: Vec<RefStream<Buffer<u8>>> = try_join_all(started).await?;
    let mut sequences = stream::iter(started).flatten();
    let (mut model, mut count) = (Bigrams::default(), 0);
    while let Some(sequence) = sequences.try_next().await? {
        model.learn(&sequence);
        count += 1;
    }
    println!("{count} sequences, loss {:.4} bits", model.loss());
    Ok(())
}
