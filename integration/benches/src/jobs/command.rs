//! One job at a time, from the command line of its user.

use std::fs::File;
use std::io::Read;
use std::time::{Duration, Instant};

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use crate::baseline::one_program;
use crate::daemon::{HeadProcess, WorkerProcess};
use crate::figures::{format_percentiles, print_figure};

const TIMES: usize = 60;

pub(crate) async fn bench() {
    let head = HeadProcess::start().await;
    let _worker = WorkerProcess::start(&head, "host:4").await;
    let fifo = head.folder().join("started");
    mkfifo(&fifo, Mode::S_IRWXU).unwrap();
    let (mut accepted, mut started, mut ran, mut alone) = (vec![], vec![], vec![], vec![]);
    for _ in 0..TIMES {
        let path = fifo.clone();
        let begin = Instant::now();
        // Opening a FIFO for reading blocks until the job opens it for writing.
        let heard = tokio::task::spawn_blocking(move || {
            File::open(path).unwrap().read_to_end(&mut Vec::new()).unwrap();
            begin.elapsed()
        });
        let script = format!("echo > {}", fifo.display());
        let job = head.cohabit(&["submit", "--output", "quiet", "--", "sh", "-c", &script]).await;
        accepted.push(begin.elapsed());
        started.push(heard.await.unwrap());
        head.cohabit(&["wait", &job]).await;
        ran.push(timed(head.cohabit(&["run", "--", "true"])).await);
        alone.push(one_program());
    }
    print_figure(
        "jobs-command",
        "`cohabit submit` until the job's shell writes",
        &format_percentiles(started),
    );
    print_figure("jobs-command", "`cohabit submit`, the whole command", &format_percentiles(accepted));
    print_figure("jobs-command", "`cohabit run -- true`, the whole command", &format_percentiles(ran));
    print_figure("jobs-command", "`true` by posix_spawn", &format_percentiles(alone));
}

async fn timed(command: impl Future<Output = String>) -> Duration {
    let begin = Instant::now();
    command.await;
    begin.elapsed()
}
