//! Submits a command, prints what it prints and how far it is, and ends with its exit code.
//!
//! With a head and a worker running, and on the head's machine:
//!
//! ```sh
//! cargo build --release -p cohabit-examples --bins
//! cargo run --release -p cohabit-examples --example submit_and_follow -- target/release/digits --epochs 20
//! ```
//!
//! Elsewhere `COHABIT_HEAD=HOST:PORT` and `COHABIT_TOKEN_FILE=FILE` name the head and who asks.

use std::io::{self, Write};
use std::process::exit;

use anyhow::{Result, ensure};
use cohabit_client::{Client, Error, JobBuilder, JobHandle, LogOptions};
use futures::{TryStreamExt, try_join};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let command: Vec<String> = std::env::args().skip(1).collect();
    ensure!(!command.is_empty(), "which command? Write it after --");

    let client = Client::connect_from_environment().await?;
    let job = JobBuilder::command(command).submit(&client).await?;
    writeln!(io::stderr(), "job {}", job.id())?;

    let (_, _, ended) = try_join!(print_output(&job), print_progress(&job), job.wait())?;
    writeln!(io::stderr(), "{}: {}", ended.state, ended.reason)?;
    exit(ended.shell_code().unwrap_or(1));
}

async fn print_output(job: &JobHandle) -> Result<(), Error> {
    let mut output = job.logs(LogOptions::follow());
    while let Some(record) = output.try_next().await? {
        // Whoever reads the output may go away; the job goes on.
        let _ = io::stdout().write_all(&record.bytes).and_then(|()| io::stdout().flush());
    }
    Ok(())
}

async fn print_progress(job: &JobHandle) -> Result<(), Error> {
    let mut progress = job.progress();
    while let Some(now) = progress.try_next().await? {
        let left = now.remaining().map_or("some time".to_owned(), |left| left.to_string());
        let _ = writeln!(io::stderr(), "step {} {:?}, {left} left", now.step, now.metrics);
    }
    Ok(())
}
