//! How long a call takes, and how many there are in a second, beside bare Unix sockets in the same run.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use cohabit::Result;
use futures::stream::{StreamExt, iter};

use crate::actors::{Counter, CounterHandle};

/// Calls, and rounds on a socket, of which the times are taken.
const CALLS: usize = 20_000;

/// Calls that are made as fast as possible.
const BURST: usize = 400_000;

/// How many of them are on their way at a time.
const AT_ONCE: usize = 900;

/// Bytes of an argument.
const BYTES: usize = 64;

pub(crate) async fn measure() -> Result<()> {
    let counter = Counter::remote(0).start().await?;
    counter.total().await?;
    let socket = socket_rounds()?;
    let mut calls = one_after_another(&counter).await?;
    calls.sort_unstable();
    println!("bare socket, round trip: p50 {:?}", socket[socket.len() / 2]);
    println!("call, one after another: p50 {:?}, p99 {:?}", calls[CALLS / 2], calls[CALLS * 99 / 100]);
    let rate = many_at_once(&counter).await?;
    println!("calls of {BYTES} bytes, {AT_ONCE} at once: {rate:.0}/s");
    Ok(())
}

async fn one_after_another(counter: &CounterHandle) -> Result<Vec<Duration>> {
    let mut times = Vec::with_capacity(CALLS);
    for _ in 0..CALLS {
        let begun = Instant::now();
        counter.add(1).await?;
        times.push(begun.elapsed());
    }
    Ok(times)
}

async fn many_at_once(counter: &CounterHandle) -> Result<f64> {
    let text = "x".repeat(BYTES);
    let begun = Instant::now();
    let mut answers = iter(0..BURST).map(|_| counter.echo(text.clone())).buffered(AT_ONCE);
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
