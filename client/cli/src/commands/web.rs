//! `web`: serves pages about the cluster to a browser on this machine, or a wall screen, until Ctrl-C.

use std::io::{self, BufRead as _, IsTerminal as _};
use std::process::ExitCode;
use std::thread;

use cohabit_console::{CommandError, CommandErrorKind, output};
use cohabit_web::{WebError, WebOptions, WebServer};
use nix::unistd::{getpgrp, tcgetpgrp};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

use crate::arguments::WebArguments;
use crate::endpoint::connect;

pub(super) async fn web(arguments: WebArguments) -> Result<ExitCode, CommandError> {
    let options = WebOptions { listen: arguments.listen, tls: arguments.tls.files() };
    let (mut interrupt, mut terminate) = (watch(SignalKind::interrupt())?, watch(SignalKind::terminate())?);
    let client = connect(&arguments.connection).await?;
    let server = WebServer::bind(options, client).await.map_err(failure)?;
    let addresses = server.entry_addresses();
    output::print_text(&format!("Open {}\n", addresses.issue()))?;
    output::print_message(
        "The address opens the pages once, within a minute. Press Enter for another one, and Ctrl-C to end.",
    );
    let mut requests = read_requests();
    let shutdown = async {
        loop {
            tokio::select! {
                _ = interrupt.recv() => return Ok(()),
                _ = terminate.recv() => return Ok(()),
                Some(()) = requests.recv() => output::print_text(&format!("Open {}\n", addresses.issue()))?,
            }
        }
    };
    let mut ended = Ok(());
    server.serve(async { ended = shutdown.await }).await;
    ended.map(|()| ExitCode::SUCCESS)
}

fn watch(kind: SignalKind) -> Result<Signal, CommandError> {
    signal(kind).map_err(|error| {
        CommandError::new(CommandErrorKind::InputOutput, format!("cannot handle signals: {error}"))
    })
}

/// A message for each line of standard input: a request for another address. A program in the background of
/// a terminal must not read it, or the terminal stops the program.
fn read_requests() -> mpsc::Receiver<()> {
    let (send, receive) = mpsc::channel(1);
    let input = io::stdin();
    let may_read = !input.is_terminal() || tcgetpgrp(&input).is_ok_and(|group| group == getpgrp());
    if may_read {
        thread::spawn(move || {
            let lines = input.lock().lines().map_while(Result::ok);
            for _ in lines {
                if send.blocking_send(()).is_err() {
                    return;
                }
            }
        });
    }
    receive
}

fn failure(error: WebError) -> CommandError {
    let message = error.to_string();
    match error {
        WebError::Head(error) => error.into(),
        WebError::WithoutTls(_) | WebError::NotViewer { .. } => {
            CommandError::new(CommandErrorKind::Usage, message)
        }
        WebError::TlsFile(_) => CommandError::new(CommandErrorKind::Configuration, message),
        WebError::Listen(_) => CommandError::new(CommandErrorKind::InputOutput, message),
    }
}
