//! Latency from the submission of a single job to the order that starts it.

use std::time::Instant;

use super::{no_op_job, submit};
use crate::daemon::HeadProcess;
use crate::figures::{format_percentiles, print_figure};
use crate::scripted_worker::{ScriptedWorker, ended, started};

const JOBS: usize = 1_000;
const SLOTS: usize = 4;

pub(crate) async fn bench() {
    for policy in ["fifo", "hybrid"] {
        let head = HeadProcess::with_policy(policy).await;
        let mut worker = ScriptedWorker::join(&head, 0, SLOTS).await;
        let link = head.client().await;
        let (mut accepted, mut ordered, mut reported) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..JOBS {
            let begin = Instant::now();
            let (accept, (at, run)) = tokio::join!(
                async {
                    submit(&link, no_op_job()).await;
                    begin.elapsed()
                },
                worker.next_run()
            );
            accepted.push(accept);
            ordered.push(at.duration_since(begin));
            let rank = run.attempt.rank(0);
            let begin = Instant::now();
            worker.report(vec![started(rank), ended(rank)]).await;
            reported.push(begin.elapsed());
        }
        print_figure("head-latency", &format!("{policy}: submit to accepted"), &format_percentiles(accepted));
        print_figure(
            "head-latency",
            &format!("{policy}: submit to the order at the worker"),
            &format_percentiles(ordered),
        );
        print_figure(
            "head-latency",
            &format!("{policy}: report of an end to its acknowledgement"),
            &format_percentiles(reported),
        );
    }
}
