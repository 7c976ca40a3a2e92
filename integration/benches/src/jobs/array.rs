//! An array of programs that do nothing, on a worker with four slots.

use std::time::{Duration, Instant};

use crate::baseline::spawns_per_second;
use crate::daemon::{HeadProcess, WorkerProcess};
use crate::figures::{median, print_figure, rate};

const MEMBERS: usize = 5_000;
const RUNS: usize = 3;

pub(crate) async fn bench() {
    let head = HeadProcess::start().await;
    let worker = WorkerProcess::start(&head, "host:4").await;
    let mut ratios = Vec::new();
    for _ in 0..RUNS {
        let (head_before, worker_before) = (head.usage(), worker.usage());
        let alone_before = spawns_per_second();
        let begin = Instant::now();
        let array = format!("1-{MEMBERS}");
        let job = head.cohabit(&["submit", "--array", &array, "--output", "quiet", "--", "true"]).await;
        head.cohabit(&["wait", &job]).await;
        let reached = rate(MEMBERS, begin.elapsed());
        let alone = f64::midpoint(alone_before, spawns_per_second());
        ratios.push(reached / alone);
        let each = |span: Duration| span.as_micros() / MEMBERS as u128;
        let of_head = each(head.usage().processor - head_before.processor);
        let of_worker = each(worker.usage().processor - worker_before.processor);
        print_figure("jobs-array", &format!("{MEMBERS} x true, four slots"), &format!("{reached:.0}/s"));
        print_figure("jobs-array", "one after the other by posix_spawn", &format!("{alone:.0}/s"));
        print_figure(
            "jobs-array",
            "processor time of head and worker daemon",
            &format!("{of_head}, {of_worker} us each"),
        );
    }
    print_figure("jobs-array", "of the machine's own rate, median", &format!("{:.2}", median(ratios)));
}
