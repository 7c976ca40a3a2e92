//! The program as somebody starts it by hand: it stores itself, starts or joins the application, and shows
//! what its `main` prints.

mod follow;
mod launched;
mod place;
mod submission;

use cohabit_client::Client;
use cohabit_types::JobId;
use tokio::task::spawn_local;

use launched::LaunchFailure;

use crate::start_entry::MainEntry;
use crate::terminal::{exit, say};

/// The exit code after a second Ctrl-C.
const INTERRUPTED: i32 = 130;

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
    let launched = place::start_or_join(&client, &program, entry).await?;
    spawn_local(cancel_on_interrupt(client.clone(), launched.to_cancel()));
    follow::follow(&client, launched).await
}

/// The first Ctrl-C cancels what was launched, the second leaves it alone.
async fn cancel_on_interrupt(client: Client, job: JobId) {
    if tokio::signal::ctrl_c().await.is_err() {
        return;
    }
    say(&format!("cancels job {job}; press Ctrl-C again to leave without waiting for its end"));
    let cancelling = async {
        match client.job(job).cancel().await {
            Ok(()) => std::future::pending().await,
            Err(error) => say(&format!("job {job} cannot be cancelled: {error}")),
        }
    };
    tokio::select! {
        () = cancelling => {}
        _ = tokio::signal::ctrl_c() => exit(INTERRUPTED),
    }
    // It could not be cancelled: the next one leaves.
    if tokio::signal::ctrl_c().await.is_ok() {
        exit(INTERRUPTED);
    }
}
