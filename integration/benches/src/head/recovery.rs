//! Recovery time of a killed head with 100,000 single jobs in its journal.

use std::time::Duration;

use cohabit_net::ClientServiceClient;
use futures::future::join_all;

use super::{no_op_job, submit};
use crate::daemon::{HeadProcess, mebibytes};
use crate::figures::{median, millis, print_figure};
use crate::scripted_worker::{ScriptedWorker, ranks_of, started};

const JOBS: usize = 100_000;
/// Jobs that ended, and jobs that run; all others are pending.
const ENDED: usize = 60_000;
const RUNNING: usize = 64;
const LINKS: usize = 8;
const IN_FLIGHT: usize = 25;
const ROUNDS: usize = 3;

pub(crate) async fn bench() {
    let mut head = HeadProcess::with_policy("fifo").await;
    let mut worker = ScriptedWorker::join(&head, 0, RUNNING).await;
    let links = join_all((0..LINKS).map(|_| head.client())).await;
    let submitted = tokio::spawn(async move { join_all(links.iter().map(submit_many)).await });
    worker.run_through(ENDED).await;
    submitted.await.unwrap();
    let mut running = 0;
    while running < RUNNING {
        let begun: Vec<_> = worker.next_orders().await.iter().flat_map(|it| ranks_of(&it.order)).collect();
        running += begun.len();
        worker.report(begun.into_iter().map(started).collect()).await;
    }
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        times.push(head.crash_and_start().await.as_secs_f64());
    }
    let time = Duration::from_secs_f64(median(times));
    let journal = std::fs::metadata(head.folder().join("head/journal.sqlite")).unwrap().len();
    let what = format!("start to ready: {JOBS} jobs, {ENDED} ended, {RUNNING} running");
    let value = format!(
        "{} ms; a journal of {}; memory {}",
        millis(time),
        mebibytes(journal),
        mebibytes(head.usage().resident)
    );
    print_figure("head-recovery", &what, &value);
}

/// Submits this link's share of the jobs.
async fn submit_many(link: &ClientServiceClient) {
    let one = |_| async {
        for _ in 0..JOBS / LINKS / IN_FLIGHT {
            submit(link, no_op_job()).await;
        }
    };
    join_all((0..IN_FLIGHT).map(one)).await;
}
