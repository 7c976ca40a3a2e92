//! An idle worker: memory and processor time of the daemon and of its waiting executor.

use std::time::{Duration, Instant};

use crate::daemon::{HeadProcess, WorkerProcess, mebibytes};
use crate::figures::print_figure;

const SPAN: Duration = Duration::from_secs(30);

pub(crate) async fn bench() {
    let head = HeadProcess::start().await;
    let worker = WorkerProcess::start(&head, "host:4").await;
    head.cohabit(&["run", "--", "true"]).await;
    let (before, begin) = (worker.usage(), Instant::now());
    tokio::time::sleep(SPAN).await;
    let after = worker.usage();
    let minute = (after.processor - before.processor).as_secs_f64() * 60.0 / begin.elapsed().as_secs_f64();
    print_figure("jobs-idle", "memory of an idle worker", &mebibytes(after.resident));
    print_figure("jobs-idle", "its processor time", &format!("{minute:.2} s a minute"));
    let [watchdog, executor] = worker.usage_of_executor();
    print_figure("jobs-idle", "memory of the executor that waits", &mebibytes(executor.resident));
    print_figure("jobs-idle", "memory of its watchdog, most of it shared", &mebibytes(watchdog.resident));
}
