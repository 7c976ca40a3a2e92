//! The tasks and actors of the tests that take, keep and give references.

use std::path::PathBuf;
use std::time::Duration;

use cohabit::{Buffer, Context, Ref, Result};
use futures::{Stream, StreamExt, stream};
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use crate::actors::{CounterHandle, die};
use crate::task_scenarios::until;
use crate::tasks::{CountsBoth, append};

#[cohabit::task]
pub(crate) fn double(number: u64) -> u64 {
    number * 2
}

/// As soon as this file is there.
#[cohabit::task(cpus = 0)]
pub(crate) async fn when_there(number: u64, mark: PathBuf) -> Result<u64> {
    while !mark.exists() {
        sleep(Duration::from_millis(2)).await;
    }
    Ok(number)
}

/// Until it is cancelled.
#[cohabit::task(cpus = 0)]
pub(crate) async fn never(counter: CounterHandle) -> Result<u64> {
    let _counts = CountsBoth::begin(counter).await?;
    std::future::pending().await
}

#[cohabit::task]
pub(crate) fn fail(text: String) -> Result<u64> {
    Err(text)?
}

#[cohabit::task]
pub(crate) fn fail_signed(text: String) -> Result<i64> {
    Err(text)?
}

#[cohabit::task]
pub(crate) fn note(number: u64, log: PathBuf) -> Result<()> {
    append(&log, &number.to_string())
}

#[cohabit::task]
pub(crate) fn sum(numbers: Vec<u64>) -> u64 {
    numbers.iter().sum()
}

/// Gets the reference itself, and gives it back.
#[cohabit::task]
pub(crate) fn pass_on(number: Ref<u64>) -> Ref<u64> {
    number
}

/// A reference of a call that has not ended.
#[cohabit::task]
pub(crate) async fn begin(number: u64, mark: PathBuf) -> Result<Ref<u64>> {
    when_there::remote(number, mark).start().await
}

/// As `begin`. Its process is told, too.
#[cohabit::task]
pub(crate) async fn begin_and_tell(number: u64, mark: PathBuf) -> Result<(u32, Ref<u64>)> {
    Ok((std::process::id(), when_there::remote(number, mark).start().await?))
}

/// Waits for a call of somebody else.
#[cohabit::task]
pub(crate) async fn wait_for(call: Ref<()>, log: PathBuf) -> Result<()> {
    append(&log, "begun")?;
    call.await?;
    append(&log, "ended")
}

/// 0, 1, 2, ... 250, 0, 1, ...
#[cohabit::task]
pub(crate) fn bytes(count: usize) -> Vec<u8> {
    pattern(count)
}

pub(crate) fn pattern(count: usize) -> Vec<u8> {
    (0..251).cycle().take(count).collect()
}

#[cohabit::task]
pub(crate) fn is_pattern(bytes: Vec<u8>) -> bool {
    bytes == pattern(bytes.len())
}

/// The sum, and whether it was read in place.
#[cohabit::task]
pub(crate) fn sum_in_place(numbers: Buffer<u64>) -> (u64, bool) {
    (numbers.iter().sum(), numbers.is_shared())
}

/// Puts bytes into the application. Its process is told, too.
#[cohabit::task]
pub(crate) async fn put_bytes(count: usize) -> Result<(u32, Ref<Vec<u8>>)> {
    Ok((std::process::id(), cohabit::put(&pattern(count)).await?))
}

/// Something large with handles in it.
#[derive(Serialize, Deserialize)]
pub(crate) struct Parcel {
    pub(crate) filling: Vec<u8>,
    pub(crate) counter: CounterHandle,
    pub(crate) number: Ref<u64>,
    pub(crate) letter: Option<Ref<Parcel>>,
}

/// Adds the numbers of all parcels to their counters.
#[cohabit::task]
pub(crate) async fn open(parcel: Parcel) -> Result<usize> {
    let (mut parcels, mut next) = (0, Some(parcel));
    while let Some(Parcel { filling, counter, number, letter }) = next {
        assert!(filling == pattern(filling.len()), "the filling is whole");
        let number = i64::try_from(number.await?)?;
        counter.add(number).await?;
        parcels += 1;
        next = match letter {
            Some(letter) => Some(letter.await?),
            None => None,
        };
    }
    Ok(parcels)
}

#[cohabit::task]
pub(crate) fn references(to: u64) -> impl Stream<Item = Result<Ref<u64>>> {
    stream::iter(1..=to).then(|number| async move { double::remote(number).start().await })
}

/// Waits for a number that may never come.
#[cohabit::task]
pub(crate) async fn wait_for_number(number: Ref<u64>, counter: CounterHandle) -> Result<u64> {
    let _counts = CountsBoth::begin(counter).await?;
    number.await
}

/// A reference of numbers, and one of texts: the two halves do not fit.
#[derive(Debug, Serialize)]
pub(crate) struct NumberAsText(pub(crate) Ref<u64>);

impl<'de> Deserialize<'de> for NumberAsText {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Ref::<String>::deserialize(deserializer)?;
        Err(serde::de::Error::custom(format!("it became {text:?}")))
    }
}

#[cohabit::task]
pub(crate) fn hear(_said: NumberAsText) {}

/// Holds a part of something large.
pub(crate) struct Shelf {
    bytes: Vec<u8>,
    kept: Vec<Ref<u64>>,
}

#[cohabit::actor(restarts = 3)]
impl Shelf {
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        Shelf { bytes, kept: Vec::new() }
    }

    pub(crate) fn is_whole(&self, context: &Context) -> (bool, u32) {
        (self.bytes == pattern(self.bytes.len()), context.incarnation())
    }

    pub(crate) fn die(&self) {
        die()
    }

    /// Larger than what travels with a call.
    pub(crate) fn all(&self) -> Vec<u8> {
        self.bytes.clone()
    }

    pub(crate) fn add(&mut self, bytes: Vec<u8>) -> usize {
        self.bytes.extend(bytes);
        self.bytes.len()
    }

    pub(crate) fn keep(&mut self, number: Ref<u64>) {
        self.kept.push(number);
    }

    pub(crate) async fn sum_of_kept(&self) -> Result<u64> {
        let mut sum = 0;
        for number in &self.kept {
            sum += number.get().await?;
        }
        Ok(sum)
    }

    pub(crate) fn drop_kept(&mut self) {
        self.kept.clear();
    }

    /// Waits for a value that somebody else makes.
    pub(crate) async fn wait_until_kept_is_known(&self) -> Result<()> {
        until(|| async { Ok(self.sum_of_kept().await? > 0) }).await
    }
}
