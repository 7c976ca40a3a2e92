//! A head and a worker in this process, with all that they keep in a temporary folder.

use std::path::Path;

use cohabit_client::Client;
use cohabit_client::proto::Span;
use cohabit_head::HeadDaemon;
use cohabit_worker_daemon::{WorkerDaemon, WorkerOptions};
use tempfile::TempDir;

use crate::commands::head;
use crate::commands::up::joined;
use crate::commands::worker::start as worker;
use crate::config::{RawSettings, SettingKey, Settings};
use crate::connect::read_token;
use crate::failure::{CommandError, CommandErrorKind};

/// People watch, so progress comes more often than it usually does.
const HEARTBEAT: Span = Span::from_millis(500);

/// A running cluster.
pub(super) struct DemoCluster {
    pub(super) client: Client,
    worker: WorkerDaemon,
    head: HeadDaemon,
    folder: TempDir,
}

impl DemoCluster {
    /// Starts a head on a free port and a worker with so many host slots.
    pub(super) async fn start(slots: u32) -> Result<DemoCluster, CommandError> {
        let folder = TempDir::with_prefix("cohabit-demo-").map_err(folder_trouble)?;
        let settings = settings(slots, folder.path())?;
        let head = HeadDaemon::start(head::options(&settings)?).await.map_err(head::failure)?;
        let token = read_token(&head.worker_token_file())?;
        let state = folder.path().join(worker::WORKER_FOLDER);
        let options = worker::options(&settings, head.address().to_string(), token, state)?;
        let worker = joined(WorkerOptions { heartbeat: HEARTBEAT, ..options }).await?;
        let client = Client::connect_local(folder.path()).await?;
        Ok(DemoCluster { client, worker, head, folder })
    }

    /// Where jobs may put their files.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Ends the daemons and removes the folder.
    pub(super) async fn stop(self) -> Result<(), CommandError> {
        let worker = self.worker.stop().await.map_err(worker::failure);
        let head = self.head.stop().await.map_err(head::failure);
        let folder = self.folder.close().map_err(folder_trouble);
        worker.and(head).and(folder)
    }
}

/// Flags alone: what is configured for a real cluster must not change the demo.
fn settings(slots: u32, folder: &Path) -> Result<Settings, CommandError> {
    let folder =
        folder.to_str().ok_or_else(|| CommandError::configuration("TMPDIR is not text: set another one"))?;
    let written: RawSettings = [
        (SettingKey::Listen, "127.0.0.1:0".to_owned()),
        (SettingKey::State, folder.to_owned()),
        (SettingKey::Devices, format!("host:{slots}")),
        (SettingKey::Name, "demo".to_owned()),
    ]
    .into();
    Ok(Settings::of_flags(written))
}

fn folder_trouble(error: std::io::Error) -> CommandError {
    CommandError::new(CommandErrorKind::InputOutput, format!("the temporary folder of the demo: {error}"))
}
