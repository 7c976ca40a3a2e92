//! Starts the application, or joins the one of this name that is live.

use std::time::Duration;

use cohabit_client::{Client, Error};
use cohabit_types::{ApplicationRecord, RefusalCode};
use tokio::time::sleep;

use super::launched::{ANOTHER_BUILD, LaunchFailure, Launched};
use super::submission::Program;
use crate::start_entry::MainEntry;
use crate::terminal::say;

/// Pause before the head is asked again for an application that begins or ends.
const PAUSE: Duration = Duration::from_millis(500);

/// Where the launched main runs.
pub(super) async fn start_or_join(
    client: &Client,
    program: &Program,
    entry: MainEntry,
) -> Result<Launched, LaunchFailure> {
    let mut told = false;
    loop {
        let live = client.applications().await?.into_iter().find(|it| it.name == entry.name);
        let launched = match live {
            None => start(client, program, entry).await,
            Some(live) => {
                check_build(&live, program)?;
                join(client, program, entry, &live).await
            }
        };
        match launched {
            Ok(Some(launched)) => return Ok(launched),
            Ok(None) => {
                if !told {
                    say(&format!("waits for application '{}', which begins or ends", entry.name));
                }
                told = true;
                sleep(PAUSE).await;
            }
            Err(failure) => return Err(failure),
        }
    }
}

async fn start(
    client: &Client,
    program: &Program,
    entry: MainEntry,
) -> Result<Option<Launched>, LaunchFailure> {
    match client.submit_with_code(&program.root(entry)?, &program.code).await {
        Ok((root, _)) => {
            say(&format!("application '{}' is job {}", entry.name, root.id()));
            Ok(Some(Launched::Root(root.id())))
        }
        Err(error) => unless_changed(error),
    }
}

async fn join(
    client: &Client,
    program: &Program,
    entry: MainEntry,
    live: &ApplicationRecord,
) -> Result<Option<Launched>, LaunchFailure> {
    let (Some(attempt), Some(code)) = (live.attempt, live.code.clone()) else { return Ok(None) };
    match client.submit(&program.main(entry, attempt, code)?).await {
        Ok(main) => {
            let (root, main) = (live.job, main.id());
            say(&format!("joins application '{}', job {root}, as job {main}", entry.name));
            Ok(Some(Launched::Main(main)))
        }
        Err(error) => unless_changed(error),
    }
}

/// An application began or ended since it was asked for: nothing was launched.
fn unless_changed(error: Error) -> Result<Option<Launched>, LaunchFailure> {
    let changed = matches!(&error, Error::Refused(refusal) if refusal.code == RefusalCode::WrongState);
    if changed { Ok(None) } else { Err(error.into()) }
}

/// All processes of an application run the same program.
fn check_build(live: &ApplicationRecord, program: &Program) -> Result<(), LaunchFailure> {
    let own = program.code.snapshot().manifest;
    match &live.code {
        Some(code) if code.manifest != own => Err(LaunchFailure {
            code: ANOTHER_BUILD,
            text: format!(
                "application '{}' (job {}) runs another build: {} there, {own} here. Start that build to join it, or \
                 end it with `cohabit cancel {}`",
                live.name, live.job, code.manifest, live.job
            ),
        }),
        Some(_) | None => Ok(()),
    }
}
