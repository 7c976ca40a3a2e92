//! `demo`: runs real training jobs on a small cluster in this process and shows what sharing gains.
//!
//! Each job asks for half a host slot, so two share one. All files are in a temporary directory. However the
//! demo ends, Ctrl-C included, no process and no file remains.

mod cluster;
mod cpu_time;
mod display;
mod jobs;
mod report;
mod speeds;
mod tuning;

use std::process::ExitCode;
use std::thread::available_parallelism;

use cohabit_client::types::{JobChange, JobId, JobRecord, JobState};
use cohabit_client::{Client, Error, JobHandle};
use cohabit_console::{CommandError, CommandErrorKind, output};
use futures::TryStreamExt as _;
use futures::stream::select_all;

use self::cluster::DemoCluster;
use self::display::DemoDisplay;
use self::jobs::{DemoTraining, trainings};
use crate::arguments::DemoArguments;
use crate::config::{SettingKey, read_settings};
use crate::daemon::{self, ShutdownSignals};

/// Lower levels would disturb the display.
const DEMO_LOG_LEVEL: &str = "error";

/// One for each of the jobs that exchange cores.
const TUNED_SLOTS: u32 = 2;

pub(super) fn demo(arguments: DemoArguments) -> Result<ExitCode, CommandError> {
    let mut flags = daemon::logging_flags(&arguments.logging);
    flags.entry(SettingKey::LogLevel).or_insert_with(|| DEMO_LOG_LEVEL.to_owned());
    daemon::start_logging(&read_settings(flags)?)?;
    let slots = match arguments.tune {
        true => TUNED_SLOTS,
        false => arguments.slots.unwrap_or_else(slots_for_this_machine),
    };
    daemon::run(show(slots, arguments.tune))
}

/// One slot per two cores: two jobs share a slot, so each job has a core.
fn slots_for_this_machine() -> u32 {
    let cores = available_parallelism().map_or(2, |count| count.get());
    u32::try_from(cores / 2).unwrap_or(1).clamp(1, 3)
}

/// Runs the demo and stops the cluster, however the demo ends.
async fn show(slots: u32, is_tuned: bool) -> Result<(), CommandError> {
    let mut signals = ShutdownSignals::watch()?;
    let mut cluster = DemoCluster::start(slots).await?;
    let run = async {
        match is_tuned {
            true => tuning::show(&mut cluster).await,
            false => run_jobs(&cluster, slots).await,
        }
    };
    let shown = tokio::select! {
        shown = run => shown,
        () = signals.wait() => Err(CommandError::new(CommandErrorKind::Interrupted, "interrupted; all processes and files of the demo are removed")),
    };
    if shown.is_err() || is_tuned {
        cancel_all(&cluster.client).await;
    }
    shown.and(cluster.stop().await)
}

/// Submits the jobs, shows them until they have ended, and prints the report.
async fn run_jobs(cluster: &DemoCluster, slots: u32) -> Result<(), CommandError> {
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
        "A head and a worker are running in this process. The worker offers {slots}, which {is}: no GPU is used.\n\
         {jobs} training jobs ask for half a slot each, so two jobs share a slot. The jobs are real: they train small\n\
         networks on handwritten digits and on English text, each on one core.\n"
    )
}

/// Shows all jobs until the last one has ended.
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
            let message =
                format!("job {} of the demo ended with state {}: {}", job.id, job.state, job.reason);
            Err(CommandError::new(CommandErrorKind::Internal, message))
        }
    }
}

/// Cancels running jobs. If that fails, the end of the worker stops them.
async fn cancel_all(client: &Client) {
    let cancelled = async {
        let live = client.list_all(Default::default()).await?;
        let live: Vec<JobId> = live.iter().filter(|job| !job.state.is_terminal()).map(|job| job.id).collect();
        client.change(JobChange::Cancel, &live).await?;
        client.wait(&live).await?;
        Ok::<(), Error>(())
    };
    if let Err(error) = cancelled.await {
        output::print_message(&format!("cannot cancel the jobs of the demo: {error}"));
    }
}
