//! From the submission of a lonely job to the order that starts it.

use std::time::Instant;

use super::{nothing, submit};
use crate::daemon::Head;
use crate::figures::{figure, spread};
use crate::played::{Worker, ended, started};

const JOBS: usize = 1_000;
const SLOTS: usize = 4;

pub(crate) async fn bench() {
    for policy in ["fifo", "hybrid"] {
        let head = Head::with_policy(policy).await;
        let mut worker = Worker::join(&head, 0, SLOTS).await;
        let link = head.client().await;
        let (mut accepted, mut ordered, mut told) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..JOBS {
            let begin = Instant::now();
            let (accept, (at, run)) = tokio::join!(
                async {
                    submit(&link, nothing()).await;
                    begin.elapsed()
                },
                worker.next_run()
            );
            accepted.push(accept);
            ordered.push(at.duration_since(begin));
            let rank = run.attempt.rank(0);
            let begin = Instant::now();
            worker.report(vec![started(rank), ended(rank)]).await;
            told.push(begin.elapsed());
        }
        figure("head-latency", &format!("{policy}: submit to accepted"), &spread(accepted));
        figure("head-latency", &format!("{policy}: submit to the order at the worker"), &spread(ordered));
        figure("head-latency", &format!("{policy}: report of an end to its acknowledgement"), &spread(told));
    }
}
