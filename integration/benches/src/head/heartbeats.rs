//! Two hundred workers on one head: real links that carry nothing but heartbeats.

use std::time::{Duration, Instant};

use cohabit_net::context_for;
use futures::future::join_all;

use super::LIMIT;
use crate::daemon::{Head, mebibytes};
use crate::figures::figure;
use crate::played::Worker;

const WORKERS: u64 = 200;
const HEARTBEAT: Duration = Duration::from_secs(1);
const SPAN: Duration = Duration::from_secs(20);

pub(crate) async fn bench() {
    let head = Head::start().await;
    let workers = join_all((0..WORKERS).map(|number| Worker::join(&head, number, 8))).await;
    let beating: Vec<_> =
        (0u32..).zip(workers).map(|(number, worker)| tokio::spawn(beat(number, worker))).collect();
    // What joining cost is over by then.
    tokio::time::sleep(2 * HEARTBEAT).await;
    let (before, begin) = (head.usage(), Instant::now());
    tokio::time::sleep(SPAN).await;
    let after = head.usage();
    let part = (after.processor - before.processor).as_secs_f64() / begin.elapsed().as_secs_f64();
    let value = format!("{:.2} % of a core; memory {}", part * 100.0, mebibytes(after.resident));
    figure("head-heartbeats", &format!("{WORKERS} links of workers, a heartbeat a second"), &value);
    beating.iter().for_each(tokio::task::JoinHandle::abort);
}

/// Beats once each interval, each worker at a moment of its own.
async fn beat(number: u32, worker: Worker) {
    tokio::time::sleep(HEARTBEAT * number / WORKERS as u32).await;
    loop {
        worker.head().heartbeat(context_for(LIMIT)).await.unwrap();
        tokio::time::sleep(HEARTBEAT).await;
    }
}
