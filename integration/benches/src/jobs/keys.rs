//! A key typed into `cohabit run --pty`, until its echo is shown. The job and the person are on one machine.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};

use crate::daemon::{HeadProcess, WorkerProcess, binary};
use crate::figures::{format_percentiles, print_figure};

const TIMES: usize = 300;
/// About as fast as people type.
const PAUSE: Duration = Duration::from_millis(50);
/// Echoes each byte as it is, once it has said so.
const ECHO: &str = "stty raw -echo; printf %s ready; exec cat";

pub(crate) async fn bench() {
    let head = HeadProcess::start().await;
    let _worker = WorkerProcess::start(&head, "host:1").await;
    let state = head.folder().join("head");
    let program = binary().display().to_string();
    let ran = tokio::task::spawn_blocking(move || {
        let there = echo_times(&[&program, "run", "--pty", "--", "sh", "-c", ECHO], &state);
        (there, echo_times(&["sh", "-c", ECHO], &state))
    });
    let (there, here) = ran.await.unwrap();
    print_figure("jobs-keys", "a key of `cohabit run --pty` until its echo", &format_percentiles(there));
    print_figure("jobs-keys", "the same in a terminal without cohabit", &format_percentiles(here));
}

/// How long each key takes.
fn echo_times(command: &[&str], state: &Path) -> Vec<Duration> {
    let (mut child, mut terminal) = start(command, state);
    let mut shown = Vec::new();
    while !shown.ends_with(b"ready") {
        let mut piece = [0; 4096];
        let length = terminal.read(&mut piece).unwrap();
        shown.extend(&piece[..length]);
    }
    let mut times = Vec::with_capacity(TIMES);
    for _ in 0..TIMES {
        sleep(PAUSE);
        let begin = Instant::now();
        terminal.write_all(b"x").unwrap();
        terminal.read_exact(&mut [0]).unwrap();
        times.push(begin.elapsed());
    }
    child.kill().unwrap();
    child.wait().unwrap();
    times
}

/// Starts a command with a terminal of its own.
fn start(command: &[&str], state: &Path) -> (Child, File) {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let master = openpt(flags).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let slave = ioctl_tiocgptpeer(&master, flags).unwrap();
    let mut process = Command::new("setsid");
    process.args(["--ctty", "--wait"]).args(command).env("COHABIT_STATE", state);
    process.stdin(slave.try_clone().unwrap()).stdout(slave.try_clone().unwrap()).stderr(slave);
    (process.spawn().unwrap(), File::from(master))
}
