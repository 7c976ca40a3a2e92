//! How long a call of an actor or a task takes, how many there are in a second, and how long an actor needs
//! to begin, beside bare Unix sockets and processes in the same run.

use std::future::Future;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::Command;
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

/// Actors that are created, one after another.
const ACTORS: usize = 30;

/// Bytes of an argument.
const BYTES: usize = 64;

pub(crate) async fn measure_calls() -> Result<()> {
    let counter = Counter::remote(0).start().await?;
    counter.total().await?;
    measure("call", || counter.add(1), |text| counter.echo(text)).await
}

/// From the creation of an actor to the answer to its first call, beside the start of a process that does
/// nothing.
pub(crate) async fn measure_actors() -> Result<()> {
    let (mut created, mut started) = (Vec::new(), Vec::new());
    for _ in 0..ACTORS {
        let begun = Instant::now();
        let counter = Counter::remote(0).start().await?;
        counter.total().await?;
        created.push(begun.elapsed());
        counter.stop().await?;
        let begun = Instant::now();
        Command::new("true").status()?;
        started.push(begun.elapsed());
    }
    created.sort_unstable();
    started.sort_unstable();
    println!("a process that does nothing: p50 {:?}", started[ACTORS / 2]);
    println!(
        "an actor, created and called: p50 {:?}, p90 {:?}",
        created[ACTORS / 2],
        created[ACTORS * 9 / 10]
    );
    Ok(())
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
