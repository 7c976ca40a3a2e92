//! `up`: runs a head and a worker in one process, for a laptop or a single machine.

use std::net::Ipv4Addr;
use std::process::ExitCode;

use cohabit_client::types::Span;
use cohabit_console::{CommandError, output};
use cohabit_head::{HeadDaemon, HeadOptions};
use cohabit_worker_daemon::{WorkerDaemon, WorkerOptions};

use super::head::{self, local_address};
use super::worker::start as worker;
use crate::arguments::UpArguments;
use crate::config::{SettingKey, Settings, read_settings};
use crate::daemon::{self, ShutdownSignals};
use crate::endpoint::read_token;
use crate::worker_directory::create_within;

pub(super) fn up(arguments: UpArguments) -> Result<ExitCode, CommandError> {
    let mut flags = head::flags(&arguments.head)?;
    flags.extend(worker::device_flags(&arguments.worker)?);
    let settings = read_settings(flags)?;
    daemon::start_logging(&settings)?;
    daemon::run(serve(head_options(&settings)?, settings))
}

/// The options of a head for this machine alone, unless a setting says where it listens.
fn head_options(settings: &Settings) -> Result<HeadOptions, CommandError> {
    let mut options = head::options(settings)?;
    if settings.find(SettingKey::Listen).is_none() {
        options.listen.set_ip(Ipv4Addr::LOCALHOST.into());
    }
    Ok(options)
}

async fn serve(options: HeadOptions, settings: Settings) -> Result<(), CommandError> {
    let mut signals = ShutdownSignals::watch()?;
    let state = options.state_dir.clone();
    let mut head = HeadDaemon::start(options).await.map_err(head::failure)?;
    let token_file = head.worker_token_file();
    let (token, state) =
        daemon::run_blocking(move || Ok((read_token(&token_file)?, create_within(&state)?))).await?;
    let options = worker::options(&settings, local_address(&head).to_string(), token, state)?;
    let orphan_grace = options.orphan_grace;
    let mut worker = start_and_join_worker(options).await?;
    let (line, name) = (head::ready_line(&head), worker.name());
    daemon::print_ready(&format!("{line}; worker {name} is running on this machine")).await?;
    let failed = tokio::select! {
        () = signals.wait() => None,
        error = head.failed() => Some(head::failure(error)),
        error = worker.failed() => Some(worker::failure(error)),
    };
    if let Some(failure) = failed {
        return Err(failure);
    }
    worker.stop().await.map_err(worker::failure)?;
    head.stop().await.map_err(head::failure)?;
    output::print_message(&farewell(orphan_grace));
    Ok(())
}

/// What becomes of the jobs when the two daemons have ended.
fn farewell(orphan_grace: Span) -> String {
    format!(
        "The head and the worker have ended. Running jobs go on for {orphan_grace} and are then stopped, unless \
         `cohabit up` runs again with the same state directory; waiting jobs are kept"
    )
}

/// Starts a worker and waits until it has joined the head.
pub(super) async fn start_and_join_worker(options: WorkerOptions) -> Result<WorkerDaemon, CommandError> {
    let mut worker = WorkerDaemon::start(options).await.map_err(worker::failure)?;
    worker.joined().await.map_err(worker::failure)?;
    Ok(worker)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listens(written: &[(SettingKey, &str)]) -> String {
        let state = [(SettingKey::State, "/state")];
        let written = state.iter().chain(written).map(|(key, text)| (*key, (*text).to_owned())).collect();
        head_options(&Settings::of_flags(written)).unwrap().listen.to_string()
    }

    #[test]
    fn whoever_ends_it_is_told_how_long_jobs_go_on() {
        assert!(
            farewell(Span::from_secs(120)).contains("Running jobs go on for 2 min 0 s and are then stopped")
        );
    }

    #[test]
    fn the_head_of_one_machine_listens_to_that_machine_unless_told_otherwise() {
        assert_eq!(listens(&[]), "127.0.0.1:7070");
        assert_eq!(listens(&[(SettingKey::Listen, "0.0.0.0:7171")]), "0.0.0.0:7171");
    }
}
