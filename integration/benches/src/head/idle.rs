//! An idle head: memory and processor time, with one worker that sends heartbeats.

use std::time::{Duration, Instant};

use crate::daemon::{HeadProcess, mebibytes};
use crate::figures::print_figure;
use crate::scripted_worker::ScriptedWorker;

const SPAN: Duration = Duration::from_secs(30);

pub(crate) async fn bench() {
    let head = HeadProcess::start().await;
    let worker = ScriptedWorker::join(&head, 0, 4).await;
    let (before, begin) = (head.usage(), Instant::now());
    tokio::time::sleep(SPAN).await;
    let after = head.usage();
    print_figure("head-idle", "memory of an idle head with one worker", &mebibytes(after.resident));
    let minute = (after.processor - before.processor).as_secs_f64() * 60.0 / begin.elapsed().as_secs_f64();
    print_figure("head-idle", "its processor time", &format!("{minute:.2} s a minute"));
    drop(worker);
}
