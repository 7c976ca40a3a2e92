//! A worker that has nothing to do: its memory and its processor time, and its executor's.

use std::time::{Duration, Instant};

use crate::daemon::{Head, Worker, mebibytes};
use crate::figures::figure;

const SPAN: Duration = Duration::from_secs(30);

pub(crate) async fn bench() {
    let head = Head::start().await;
    let worker = Worker::start(&head, "host:4").await;
    head.cohabit(&["run", "--", "true"]).await;
    let (before, begin) = (worker.usage(), Instant::now());
    tokio::time::sleep(SPAN).await;
    let after = worker.usage();
    let minute = (after.processor - before.processor).as_secs_f64() * 60.0 / begin.elapsed().as_secs_f64();
    figure("jobs-idle", "memory of an idle worker", &mebibytes(after.resident));
    figure("jobs-idle", "its processor time", &format!("{minute:.2} s a minute"));
    figure("jobs-idle", "memory of the executor that waits", &mebibytes(worker.usage_of_executor().resident));
}
