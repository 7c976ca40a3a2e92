//! The program as somebody starts it by hand: it stores itself, starts or joins the application, and shows
//! what its `main` prints.

mod absence;
mod follow;
mod interrupts;
mod launched;
mod place;
mod submission;

use cohabit_client::Client;
use tokio::task::spawn_local;

use interrupts::Interrupts;
use launched::{FAILED, LaunchEnd, LaunchFailure};

use crate::start_entry::MainEntry;
use crate::terminal::say;

/// Launches the application; returns the exit code of its `main`.
pub(crate) async fn launch(entry: MainEntry) -> i32 {
    match run(entry).await {
        Ok(code) => code,
        Err(LaunchFailure { code, text }) => {
            say(&text);
            code
        }
    }
}

async fn run(entry: MainEntry) -> Result<i32, LaunchFailure> {
    let client = Client::connect_from_environment().await?;
    let program = submission::Program::read().await?;
    loop {
        let launched = place::start_or_join(&client, &program, entry).await?;
        let interrupts = Interrupts::listen().map_err(|error| LaunchFailure {
            code: FAILED,
            text: format!("cannot wait for signals: {error}; job {} goes on", launched.to_cancel()),
        })?;
        let cancelling = spawn_local(interrupts.cancel(client.clone(), launched.to_cancel()));
        match follow::follow(&client, launched).await? {
            LaunchEnd::Ended(code) => return Ok(code),
            LaunchEnd::NotBegun => say("the application ended before its new main began: launches it again"),
        }
        cancelling.abort();
    }
}
