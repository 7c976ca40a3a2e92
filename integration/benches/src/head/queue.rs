//! A head with 100,000 queued members: its memory, and how long people wait for it while members run.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use cohabit_net::{ClientServiceClient, context_for};
use cohabit_types::{Answer, Filter, JobId, JobRevision, Query};

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
    let questions = [
        ("list", Query::List(page)),
        ("list of members", Query::List(members)),
        ("show", Query::Show(vec![last, array])),
        ("explain", Query::Explain(last)),
        ("nodes", Query::Nodes),
        ("watch", Query::Watch(vec![JobRevision { job: array, revision: 0 }])),
    ];
    for (name, query) in questions {
        let begin = Instant::now();
        let answer = link.query(context_for(LIMIT), query).await.unwrap().unwrap();
        times.entry(name).or_default().push(begin.elapsed());
        assert!(!matches!(answer, Answer::Refused(_)), "{answer:?}");
    }
    let begin = Instant::now();
    submit(link, no_op_job()).await;
    times.entry("submit").or_default().push(begin.elapsed());
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
