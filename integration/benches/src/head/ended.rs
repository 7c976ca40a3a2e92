//! Memory of a head through which single jobs go, with their ends in memory and in the archive.

use std::time::Duration;

use cohabit_net::ClientServiceClient;
use futures::future::join_all;

use super::{no_op_job, submit};
use crate::daemon::{HeadProcess, mebibytes};
use crate::figures::print_figure;
use crate::scripted_worker::ScriptedWorker;

/// Jobs between two looks at the memory.
const JOBS: usize = 20_000;
const LOOKS: usize = 5;
const IN_FLIGHT: usize = 50;
const SLOTS: usize = 64;
/// Longer than the shortest time to the archive, in which all jobs of a round get there.
const SETTLING: Duration = Duration::from_secs(5);

pub(crate) async fn bench() {
    for (what, archive_after) in [("in memory", "1h"), ("archived", "1s")] {
        let setting = Some(("COHABIT_ARCHIVE_AFTER", archive_after));
        let head = HeadProcess::with_setting("fifo", setting).await;
        let mut worker = ScriptedWorker::join(&head, 0, SLOTS).await;
        let link = head.client().await;
        let mut resident = vec![mebibytes(head.usage().resident)];
        for _ in 0..LOOKS {
            tokio::join!(submit_many(&link), worker.run_through(JOBS));
            tokio::time::sleep(SETTLING).await;
            resident.push(mebibytes(head.usage().resident));
        }
        let what = format!("memory after each {JOBS} single jobs, {what}");
        print_figure("head-ended", &what, &resident.join(", "));
    }
}

async fn submit_many(link: &ClientServiceClient) {
    let one = |_| async {
        for _ in 0..JOBS / IN_FLIGHT {
            submit(link, no_op_job()).await;
        }
    };
    join_all((0..IN_FLIGHT).map(one)).await;
}
