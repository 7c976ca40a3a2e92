//! One job at a time, from the command line of its user.

use std::fs::File;
use std::io::Read;
use std::time::{Duration, Instant};

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use crate::daemon::{Head, Worker};
use crate::figures::{figure, spread};
use crate::yardstick::one_program;

const TIMES: usize = 60;

pub(crate) async fn bench() {
    let head = Head::start().await;
    let _worker = Worker::start(&head, "host:4").await;
    let fifo = head.folder().join("started");
    mkfifo(&fifo, Mode::S_IRWXU).unwrap();
    let (mut accepted, mut started, mut ran, mut alone) = (vec![], vec![], vec![], vec![]);
    for _ in 0..TIMES {
        let path = fifo.clone();
        let begin = Instant::now();
        // To be opened, a pipe waits for its other end: for the job.
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
    figure("jobs-command", "`cohabit submit` until the job's shell writes", &spread(started));
    figure("jobs-command", "`cohabit submit`, the whole command", &spread(accepted));
    figure("jobs-command", "`cohabit run -- true`, the whole command", &spread(ran));
    figure("jobs-command", "`true` by posix_spawn", &spread(alone));
}

async fn timed(command: impl Future<Output = String>) -> Duration {
    let begin = Instant::now();
    command.await;
    begin.elapsed()
}
