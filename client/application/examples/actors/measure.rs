//! How long a call of an actor or a task takes, and how many there are in a second, beside bare Unix sockets
//! in the same run.

use std::future::Future;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use cohabit::Result;
use futures::future::try_join_all;
use futures::stream::{StreamExt, iter};

use crate::actors::Counter;
use crate::tasks;

/// Calls, and rounds on a socket, of which the times are taken.
const CALLS: usize = 20_000;

/// Calls that are made as fast as possible.
const BURST: usize = 400_000;

/// How many of them are on their way at a time.
const AT_ONCE: usize = 900;

/// Bytes of an argument.
const BYTES: usize = 64;

pub(crate) async fn measure_calls() -> Result<()> {
    let counter = Counter::remote(0).start().await?;
    counter.total().await?;
    measure("call", || counter.add(1), |text| counter.echo(text)).await
}

pub(crate) async fn measure_tasks() -> Result<()> {
    // Two that last have two runners started, which go on for some time.
    try_join_all((0..2).map(|_| tasks::nap::remote(1_000))).await?;
    measure("task", || tasks::echo::remote(String::new()), tasks::echo::remote).await
}

/// Takes the times of `one` after another, and of many of `echo` at once.
async fn measure<T, O, E>(what: &str, one: impl Fn() -> O, echo: impl Fn(String) -> E) -> Result<()>
where
    O: Future<Output = Result<T>>,
    E: Future<Output = Result<String>>,
{
    let socket = socket_rounds()?;
    println!("bare socket, round trip: p50 {:?}", socket[socket.len() / 2]);
    let mut times = one_after_another(one).await?;
    times.sort_unstable();
    println!("{what}, one after another: p50 {:?}, p99 {:?}", times[CALLS / 2], times[CALLS * 99 / 100]);
    let rate = many_at_once(echo).await?;
    println!("{what}s of {BYTES} bytes, {AT_ONCE} at once: {rate:.0}/s");
    Ok(())
}

async fn one_after_another<T, O: Future<Output = Result<T>>>(one: impl Fn() -> O) -> Result<Vec<Duration>> {
    let mut times = Vec::with_capacity(CALLS);
    for _ in 0..CALLS {
        let begun = Instant::now();
        one().await?;
        times.push(begun.elapsed());
    }
    Ok(times)
}

async fn many_at_once<E: Future<Output = Result<String>>>(echo: impl Fn(String) -> E) -> Result<f64> {
    let text = "x".repeat(BYTES);
    let begun = Instant::now();
    let mut answers = iter(0..BURST).map(|_| echo(text.clone())).buffered(AT_ONCE);
    while let Some(answer) = answers.next().await {
        assert_eq!(answer?.len(), BYTES);
    }
    Ok(BURST as f64 / begun.elapsed().as_secs_f64())
}

/// Round trips of 64 bytes between two threads, in ascending order.
fn socket_rounds() -> Result<Vec<Duration>> {
    let (mut near, mut far) = UnixStream::pair()?;
    let echo = std::thread::spawn(move || {
        let mut bytes = [0; BYTES];
        while far.read_exact(&mut bytes).is_ok() && far.write_all(&bytes).is_ok() {}
    });
    let mut times = Vec::with_capacity(CALLS);
    let mut bytes = [1; BYTES];
    for _ in 0..CALLS {
        let begun = Instant::now();
        near.write_all(&bytes)?;
        near.read_exact(&mut bytes)?;
        times.push(begun.elapsed());
    }
    drop(near);
    echo.join().map_err(|_| "the echo panicked")?;
    times.sort_unstable();
    Ok(times)
}
