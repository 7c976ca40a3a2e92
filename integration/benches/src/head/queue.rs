//! A head with 100,000 queued members: its memory, and how long people wait for it while members run.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use cohabit_net::{ClientServiceClient, context_for};
use cohabit_types::{Filter, JobId, JobRevision};

use super::{LIMIT, array, no_op_job, submit};
use crate::daemon::{HeadProcess, mebibytes};
use crate::figures::{format_percentiles, print_figure};
use crate::scripted_worker::{ScriptedWorker, ended, ranks_of, started};

const MEMBERS: u32 = 100_000;
const SLOTS: usize = 8;
/// For how long people ask.
const SPAN: Duration = Duration::from_secs(15);
/// How long each member runs.
const RUNS: Duration = Duration::from_millis(10);
/// Between two rounds of questions.
const PAUSE: Duration = Duration::from_millis(20);

pub(crate) async fn bench() {
    let head = HeadProcess::start().await;
    let link = head.client().await;
    let queued = submit(&link, array(MEMBERS)).await;
    let usage = head.usage();
    let memory = format!("{} (most: {})", mebibytes(usage.resident), mebibytes(usage.peak));
    print_figure("head-queue", &format!("memory with {MEMBERS} members queued"), &memory);
    let worker = tokio::spawn(run(ScriptedWorker::join(&head, 0, SLOTS).await));
    let mut times: BTreeMap<&str, Vec<Duration>> = BTreeMap::new();
    let begin = Instant::now();
    while begin.elapsed() < SPAN {
        ask_all(&link, queued, &mut times).await;
        tokio::time::sleep(PAUSE).await;
    }
    worker.abort();
    for (what, times) in times {
        print_figure("head-queue", &format!("{what} meanwhile"), &format_percentiles(times));
    }
    let usage = head.usage();
    let memory = format!("{} (most: {})", mebibytes(usage.resident), mebibytes(usage.peak));
    print_figure("head-queue", "memory after that", &memory);
}

/// One request of each kind.
async fn ask_all(
    link: &ClientServiceClient,
    array: JobId,
    times: &mut BTreeMap<&'static str, Vec<Duration>>,
) {
    let last = JobId::member(array.number, MEMBERS - 1);
    let page = Filter { limit: 500, ..Filter::default() };
    let members = Filter { members_of: Some(array.number), ..page.clone() };
    let mut record = |name, begin: Instant| times.entry(name).or_default().push(begin.elapsed());
    let begin = Instant::now();
    link.list(context_for(LIMIT), page).await.unwrap().unwrap();
    record("list", begin);
    let begin = Instant::now();
    link.list(context_for(LIMIT), members).await.unwrap().unwrap();
    record("list of members", begin);
    let begin = Instant::now();
    link.show(context_for(LIMIT), vec![last, array]).await.unwrap().unwrap();
    record("show", begin);
    let begin = Instant::now();
    link.explain(context_for(LIMIT), last).await.unwrap().unwrap();
    record("explain", begin);
    let begin = Instant::now();
    link.nodes(context_for(LIMIT)).await.unwrap().unwrap();
    record("nodes", begin);
    let begin = Instant::now();
    let unseen = vec![JobRevision { job: array, revision: 0 }];
    link.watch(context_for(LIMIT), unseen).await.unwrap().unwrap();
    record("watch", begin);
    let begin = Instant::now();
    submit(link, no_op_job()).await;
    record("submit", begin);
}

/// Runs members, each for a while.
async fn run(mut worker: ScriptedWorker) {
    loop {
        let orders = worker.next_orders().await;
        let ranks: Vec<_> = orders.iter().flat_map(|it| ranks_of(&it.order)).collect();
        worker.report(ranks.iter().copied().map(started).collect()).await;
        tokio::time::sleep(RUNS).await;
        worker.report(ranks.into_iter().map(ended).collect()).await;
    }
}
