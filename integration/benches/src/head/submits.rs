//! Durable submissions: single jobs per second, and the time for a large array.

use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::future::join_all;
use futures::stream::FuturesUnordered;

use super::{array as array_of, no_op_job, submit};
use crate::baseline::flushes_per_second;
use crate::daemon::HeadProcess;
use crate::figures::{format_percentiles, median, millis, print_figure, rate};

const CONNECTIONS: usize = 8;
const EACH: usize = 4_000;
const ROUNDS: usize = 3;
const MEMBERS: u32 = 100_000;

/// Single jobs over eight connections, with this many calls in flight on each.
pub(crate) async fn single() {
    for in_flight in [1, 8, 32] {
        let mut rates = Vec::new();
        let mut times = Vec::new();
        let mut flushes = Vec::new();
        for _ in 0..ROUNDS {
            let head = HeadProcess::start().await;
            flushes.push(flushes_per_second(head.folder()));
            let links = join_all((0..CONNECTIONS).map(|_| head.client())).await;
            let begin = Instant::now();
            let tasks = links.into_iter().map(|link| {
                tokio::spawn(async move {
                    let one = || async {
                        let begin = Instant::now();
                        submit(&link, no_op_job()).await;
                        begin.elapsed()
                    };
                    pipelined(EACH, in_flight, one).await
                })
            });
            for task in join_all(tasks).await {
                times.extend(task.unwrap());
            }
            rates.push(rate(CONNECTIONS * EACH, begin.elapsed()));
        }
        let what = format!("durable submits, {CONNECTIONS} links, {in_flight} in flight on each");
        let (per_second, flushes) = (median(rates), median(flushes));
        let value = format!(
            "{per_second:.0}/s; {}; the disk flushes {flushes:.0} times/s",
            format_percentiles(times)
        );
        print_figure("head-submits", &what, &value);
    }
}

/// Makes `count` calls, `in_flight` at a time. Returns the duration of each.
async fn pipelined<C: Future<Output = Duration>>(
    count: usize,
    in_flight: usize,
    call: impl Fn() -> C,
) -> Vec<Duration> {
    let mut under_way = FuturesUnordered::new();
    let mut times = Vec::with_capacity(count);
    for _ in 0..count {
        if under_way.len() == in_flight {
            times.extend(under_way.next().await);
        }
        under_way.push(call());
    }
    times.extend(under_way.collect::<Vec<_>>().await);
    times
}

/// One array with 100,000 members.
pub(crate) async fn array() {
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let head = HeadProcess::start().await;
        let link = head.client().await;
        let begin = Instant::now();
        submit(&link, array_of(MEMBERS)).await;
        times.push(begin.elapsed().as_secs_f64());
    }
    let time = Duration::from_secs_f64(median(times));
    print_figure(
        "head-array",
        &format!("an array of {MEMBERS} members, durable"),
        &format!("{} ms", millis(time)),
    );
}
