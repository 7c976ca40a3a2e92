//! Two hundred workers on one head: real links that carry nothing but heartbeats.

use std::time::{Duration, Instant};

use futures::future::join_all;

use crate::daemon::{HeadProcess, mebibytes};
use crate::figures::print_figure;
use crate::scripted_worker::ScriptedWorker;

const WORKERS: u64 = 200;
/// Time for the cost of joining to pass.
const SETTLED: Duration = Duration::from_secs(2);
const SPAN: Duration = Duration::from_secs(20);

pub(crate) async fn bench() {
    let head = HeadProcess::start().await;
    let workers = join_all((0..WORKERS).map(|number| ScriptedWorker::join(&head, number, 8))).await;
    tokio::time::sleep(SETTLED).await;
    let (before, begin) = (head.usage(), Instant::now());
    tokio::time::sleep(SPAN).await;
    let after = head.usage();
    let part = (after.processor - before.processor).as_secs_f64() / begin.elapsed().as_secs_f64();
    let value = format!("{:.2} % of a core; memory {}", part * 100.0, mebibytes(after.resident));
    print_figure("head-heartbeats", &format!("{WORKERS} links of workers, a heartbeat a second"), &value);
    drop(workers);
}
