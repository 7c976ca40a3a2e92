//! Throughput of the head alone: an array, and a scripted worker that ends each member as soon as it is
//! ordered.

use std::time::Instant;

use super::{array, submit};
use crate::daemon::HeadProcess;
use crate::figures::{print_figure, rate};
use crate::scripted_worker::ScriptedWorker;

const MEMBERS: u32 = 20_000;

pub(crate) async fn bench() {
    for policy in ["fifo", "hybrid"] {
        for slots in [4, 64] {
            let head = HeadProcess::with_policy(policy).await;
            let mut worker = ScriptedWorker::join(&head, 0, slots).await;
            let link = head.client().await;
            let before = head.usage().processor;
            let begin = Instant::now();
            submit(&link, array(MEMBERS)).await;
            worker.run_through(MEMBERS as usize).await;
            let time = begin.elapsed();
            let busy = (head.usage().processor - before).as_secs_f64();
            let value = format!(
                "{:.0}/s; {:.0} us of the head's processor for each",
                rate(MEMBERS as usize, time),
                busy / f64::from(MEMBERS) * 1e6
            );
            print_figure(
                "head-throughput",
                &format!("{policy}: no-op members through {slots} slots"),
                &value,
            );
        }
    }
}
