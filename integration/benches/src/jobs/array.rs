//! Arrays of programs that do nothing, on a worker with few or many slots, with and without output.

use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::baseline::spawns_per_second;
use crate::daemon::{HeadProcess, WorkerProcess};
use crate::figures::{median, print_figure, rate};

const MEMBERS: usize = 5_000;
const RUNS: usize = 3;

/// An array to run.
struct Array {
    slots: usize,
    /// Whether each member prints a line.
    prints: bool,
}

const ARRAYS: [Array; 4] = [
    Array { slots: 4, prints: false },
    Array { slots: 64, prints: false },
    Array { slots: 4, prints: true },
    Array { slots: 64, prints: true },
];

/// What one array leaves is removed after the last one: some file systems make files slowly where many were
/// removed shortly before.
pub(crate) async fn bench() {
    let mut left = Vec::new();
    for array in ARRAYS {
        left.push(array.bench().await);
    }
}

impl Array {
    /// Each run is compared with the machine's own rate just before and after it. Returns the folder that it
    /// used.
    async fn bench(&self) -> TempDir {
        let head = HeadProcess::start().await;
        let worker = WorkerProcess::start(&head, &format!("host:{}", self.slots)).await;
        let what = format!("{MEMBERS} x {}, {} slots", self.program().join(" "), self.slots);
        let mut ratios = Vec::new();
        for _ in 0..RUNS {
            let (head_before, worker_before) = (head.usage(), worker.usage());
            let alone_before = spawns_per_second();
            let begin = Instant::now();
            let members = format!("1-{MEMBERS}");
            let submit = ["submit", "--array", &members, "--output", "quiet", "--"];
            let job = head.cohabit(&[&submit, self.program()].concat()).await;
            head.cohabit(&["wait", &job]).await;
            let reached = rate(MEMBERS, begin.elapsed());
            let alone = f64::midpoint(alone_before, spawns_per_second());
            ratios.push(reached / alone);
            let each = |span: Duration| span.as_micros() / MEMBERS as u128;
            let of_head = each(head.usage().processor - head_before.processor);
            let of_worker = each(worker.usage().processor - worker_before.processor);
            print_figure(
                "jobs-array",
                &what,
                &format!(
                    "{reached:.0}/s of {alone:.0}/s by posix_spawn, head {of_head} us, worker {of_worker} us each"
                ),
            );
        }
        print_figure(
            "jobs-array",
            &format!("{what}: of the machine's own rate, median"),
            &format!("{:.2}", median(ratios)),
        );
        drop(worker);
        head.into_folder()
    }

    fn program(&self) -> &'static [&'static str] {
        if self.prints { &["echo", "one line"] } else { &["true"] }
    }
}
