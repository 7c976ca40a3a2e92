//! A head and a worker in this process, with their state in a temporary directory.

use std::path::Path;

use cohabit_client::Client;
use cohabit_client::types::Span;
use cohabit_console::{CommandError, CommandErrorKind};
use cohabit_head::HeadDaemon;
use cohabit_worker_daemon::{WorkerDaemon, WorkerOptions};
use tempfile::TempDir;

use crate::commands::head;
use crate::commands::up::start_and_join_worker;
use crate::commands::worker::start as worker;
use crate::config::{RawSettings, SettingKey, Settings};
use crate::daemon::run_blocking;
use crate::endpoint::read_token;
use crate::worker_directory::WORKER_FOLDER;

/// Shorter than usual, because the progress is watched.
const HEARTBEAT: Span = Span::from_millis(500);

/// A running cluster.
pub(super) struct DemoCluster {
    pub(super) client: Client,
    worker: WorkerDaemon,
    /// None while it is started again.
    head: Option<HeadDaemon>,
    folder: TempDir,
    settings: RawSettings,
}

impl DemoCluster {
    /// Starts a head on a free port and a worker with `slots` host slots.
    pub(super) async fn start(slots: u32) -> Result<DemoCluster, CommandError> {
        let folder = run_blocking(|| TempDir::with_prefix("cohabit-demo-").map_err(folder_error)).await?;
        let mut written = settings(slots, folder.path())?;
        let settings = Settings::of_flags(written.clone());
        let head = HeadDaemon::start(head::options(&settings)?).await.map_err(head::failure)?;
        let token_file = head.worker_token_file();
        let token = run_blocking(move || read_token(&token_file)).await?;
        let state = folder.path().join(WORKER_FOLDER);
        let options = worker::options(&settings, head.address().to_string(), token, state)?;
        let worker = start_and_join_worker(WorkerOptions { heartbeat: HEARTBEAT, ..options }).await?;
        let client = Client::connect_local(folder.path()).await?;
        written.insert(SettingKey::Listen, head.address().to_string());
        Ok(DemoCluster { client, worker, head: Some(head), folder, settings: written })
    }

    /// Stops the head and starts one with these settings in its place. Running jobs go on.
    pub(super) async fn restart_head(&mut self, changed: RawSettings) -> Result<(), CommandError> {
        if let Some(head) = self.head.take() {
            head.stop().await.map_err(head::failure)?;
        }
        self.settings.extend(changed);
        let settings = Settings::of_flags(self.settings.clone());
        self.head = Some(HeadDaemon::start(head::options(&settings)?).await.map_err(head::failure)?);
        self.client = Client::connect_local(self.folder.path()).await?;
        Ok(())
    }

    /// A directory for the files of jobs.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Stops the daemons and removes the directory.
    pub(super) async fn stop(self) -> Result<(), CommandError> {
        let worker = self.worker.stop().await.map_err(worker::failure);
        let head = match self.head {
            Some(head) => head.stop().await.map_err(head::failure),
            None => Ok(()),
        };
        let folder = self.folder;
        let folder = run_blocking(move || folder.close().map_err(folder_error)).await;
        worker.and(head).and(folder)
    }
}

/// Flags only: the configuration of a real cluster must not affect the demo.
fn settings(slots: u32, folder: &Path) -> Result<RawSettings, CommandError> {
    let folder = folder
        .to_str()
        .ok_or_else(|| CommandError::configuration("TMPDIR is not valid UTF-8: set it to a path that is"))?;
    Ok([
        (SettingKey::Listen, "127.0.0.1:0".to_owned()),
        (SettingKey::State, folder.to_owned()),
        (SettingKey::Devices, format!("host:{slots}")),
        (SettingKey::Name, "demo".to_owned()),
    ]
    .into())
}

fn folder_error(error: std::io::Error) -> CommandError {
    CommandError::new(CommandErrorKind::InputOutput, format!("temporary directory of the demo: {error}"))
}
