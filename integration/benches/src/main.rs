//! Benchmarks of real daemons on this machine, measured from outside and run by hand.
//!
//! ```text
//! cargo build --release -p cohabit-cli -p cohabit-benches
//! target/release/cohabit-benches jobs-array head-submits
//! ```
//!
//! Each bench starts its own head in its own directory under `TMPDIR` and prints one line for each figure.
//! Without names, all benches run one after the other. The baseline of a figure, such as how often the disk
//! can flush, is measured in the same run and printed beside it. Nothing here is a test: no figure fails.
#![expect(clippy::unwrap_used, reason = "a bench that cannot go on ends here")]

mod baseline;
mod daemon;
mod figures;
mod head;
mod jobs;
mod scripted_worker;
mod web;

use std::process::ExitCode;

use figures::print_error;
use futures::future::BoxFuture;

/// A bench's name, and what it does.
type Bench = (&'static str, fn() -> BoxFuture<'static, ()>);

const BENCHES: [Bench; 15] = [
    ("jobs-command", || Box::pin(jobs::command::bench())),
    ("jobs-array", || Box::pin(jobs::array::bench())),
    ("jobs-idle", || Box::pin(jobs::idle::bench())),
    ("jobs-keys", || Box::pin(jobs::keys::bench())),
    ("head-submits", || Box::pin(head::submits::single())),
    ("head-array", || Box::pin(head::submits::array())),
    ("head-latency", || Box::pin(head::latency::bench())),
    ("head-throughput", || Box::pin(head::throughput::bench())),
    ("head-queue", || Box::pin(head::queue::bench())),
    ("head-ended", || Box::pin(head::ended::bench())),
    ("head-idle", || Box::pin(head::idle::bench())),
    ("head-recovery", || Box::pin(head::recovery::bench())),
    ("head-hostile", || Box::pin(head::hostile::bench())),
    ("head-heartbeats", || Box::pin(head::heartbeats::bench())),
    ("web-pages", || Box::pin(web::bench())),
];

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [head::hostile::ATTACK, ..] = &*arguments.iter().map(String::as_str).collect::<Vec<_>>() {
        head::hostile::attack(&arguments[1..]).await;
        return ExitCode::SUCCESS;
    }
    let wanted: Vec<String> = arguments.into_iter().filter(|it| it != "--bench").collect();
    let names = BENCHES.map(|(name, _)| name);
    if let Some(unknown) = wanted.iter().find(|it| !names.contains(&it.as_str())) {
        print_error(&format!("there is no bench '{unknown}': choose from {}", names.join(", ")));
        return ExitCode::from(2);
    }
    for (name, run) in BENCHES {
        if wanted.is_empty() || wanted.iter().any(|it| it == name) {
            run().await;
        }
    }
    ExitCode::SUCCESS
}
