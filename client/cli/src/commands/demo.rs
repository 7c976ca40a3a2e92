//! `demo`: a small cluster in this process, real training jobs on it, shown live, and what sharing gained.
//!
//! Jobs ask for half a host slot each, so two share one. Everything lies in a temporary folder, and whatever
//! happens, Ctrl-C included, no process and no file is left.

mod cluster;
mod display;
mod jobs;
mod report;

use std::process::ExitCode;
use std::thread::available_parallelism;

use cohabit_client::proto::{JobChange, JobId, JobRecord, JobState};
use cohabit_client::{Client, Error, JobHandle};
use cohabit_console::{CommandError, CommandErrorKind, output};
use futures::TryStreamExt as _;
use futures::stream::select_all;

use self::cluster::DemoCluster;
use self::display::DemoDisplay;
use self::jobs::{DemoTraining, trainings};
use crate::arguments::DemoArguments;
use crate::config::{SettingKey, Settings};
use crate::daemon::{self, ShutdownSignals};

/// What daemons say would disturb the display, unless asked for.
const DEMO_LOG_LEVEL: &str = "error";

pub(super) fn demo(arguments: DemoArguments) -> Result<ExitCode, CommandError> {
    let mut flags = daemon::logging_flags(&arguments.logging);
    flags.entry(SettingKey::LogLevel).or_insert_with(|| DEMO_LOG_LEVEL.to_owned());
    daemon::start_logging(&Settings::with_flags(flags)?)?;
    let slots = arguments.slots.unwrap_or_else(slots_for_this_machine);
    daemon::run(show(slots))
}

/// One slot for every two cores: two jobs share a slot, so each job has a core.
fn slots_for_this_machine() -> u32 {
    let cores = available_parallelism().map_or(2, |count| count.get());
    u32::try_from(cores / 2).unwrap_or(1).clamp(1, 3)
}

/// The whole demo; the cluster is taken down on every way out.
async fn show(slots: u32) -> Result<(), CommandError> {
    let mut signals = ShutdownSignals::watch()?;
    let cluster = DemoCluster::start(slots).await?;
    let shown = tokio::select! {
        shown = on(&cluster, slots) => shown,
        () = signals.wait() => Err(CommandError::new(CommandErrorKind::Interrupted, "interrupted: everything was cleaned up")),
    };
    if shown.is_err() {
        cancel_all(&cluster.client).await;
    }
    shown.and(cluster.stop().await)
}

async fn on(cluster: &DemoCluster, slots: u32) -> Result<(), CommandError> {
    let trainings = trainings();
    output::print_text(&introduction(slots, trainings.len()))?;
    let mut jobs = Vec::new();
    for training in &trainings {
        jobs.push(training.submit(&cluster.client, cluster.folder()).await?);
    }
    follow(&jobs, &trainings).await?;
    let ids: Vec<JobId> = jobs.iter().map(JobHandle::id).collect();
    let ended = cluster.client.show(&ids).await?;
    let report = report::report(&cluster.client, &ended).await?;
    output::print_text(&report)?;
    all_completed(&ended)
}

fn introduction(slots: u32, jobs: usize) -> String {
    let (slots, is) = if slots == 1 {
        ("1 host slot".to_owned(), "is a pseudo-device")
    } else {
        (format!("{slots} host slots"), "are pseudo-devices")
    };
    format!(
        "A head and a worker run in this process; the worker offers {slots}, which {is}: no GPU is used.\n\
         {jobs} training jobs ask for half a slot each, so two share one slot. They are real: small networks that learn\n\
         handwritten digits and English letters, each on one core.\n"
    )
}

/// Shows all jobs until the last has ended.
async fn follow(jobs: &[JobHandle], trainings: &[DemoTraining]) -> Result<(), CommandError> {
    let names = jobs.iter().map(JobHandle::id).zip(trainings.iter().map(DemoTraining::name));
    let mut display = DemoDisplay::new(names.collect());
    let mut changes = select_all(jobs.iter().map(JobHandle::watch));
    while let Some(record) = changes.try_next().await? {
        display.show(&record)?;
    }
    display.end();
    Ok(())
}

fn all_completed(ended: &[JobRecord]) -> Result<(), CommandError> {
    match ended.iter().find(|job| job.state != JobState::Completed) {
        None => Ok(()),
        Some(job) => {
            let message = format!("job {} of the demo ended as {}: {}", job.id, job.state, job.reason);
            Err(CommandError::new(CommandErrorKind::Internal, message))
        }
    }
}

/// Ends what still runs. If that cannot be done, the worker's end has to do.
async fn cancel_all(client: &Client) {
    let cancelled = async {
        let live = client.list_all(Default::default()).await?;
        let live: Vec<JobId> = live.iter().filter(|job| !job.state.is_terminal()).map(|job| job.id).collect();
        client.change(JobChange::Cancel, &live).await?;
        client.wait(&live).await?;
        Ok::<(), Error>(())
    };
    if let Err(error) = cancelled.await {
        output::print_message(&format!("jobs of the demo could not be cancelled: {error}"));
    }
}
