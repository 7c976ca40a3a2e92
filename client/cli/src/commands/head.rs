//! `head`: runs the head in the foreground until it receives SIGTERM or SIGINT, repairs its journal, or
//! saves and restores its state.

mod backup;
mod failure;
mod options;
mod recover;
mod restore;

#[cfg(feature = "worker")]
use std::net::IpAddr;
use std::net::SocketAddr;
use std::path::absolute;
use std::process::ExitCode;

use cohabit_client::types::quoted_command;
use cohabit_console::{CommandError, output};
use cohabit_head::{HeadDaemon, HeadOptions, RecoveryMode};
use nix::unistd::gethostname;

pub(super) use self::failure::failure;
pub(super) use self::options::{flags, options};
use crate::arguments::HeadVerb;
use crate::config::read_settings;
use crate::daemon::{self, ShutdownSignals};

pub(super) fn head(verb: HeadVerb) -> Result<ExitCode, CommandError> {
    match verb {
        HeadVerb::Start(arguments) => {
            let settings = read_settings(flags(&arguments)?)?;
            daemon::start_logging(&settings)?;
            let options = HeadOptions { new_cluster: arguments.new_cluster, ..options(&settings)? };
            daemon::run(serve(options))
        }
        HeadVerb::Recover(arguments) => recover::recover(&arguments),
        HeadVerb::Backup(arguments) => backup::backup(&arguments),
        HeadVerb::Restore(arguments) => restore::restore(&arguments),
    }
}

async fn serve(options: HeadOptions) -> Result<(), CommandError> {
    let mut signals = ShutdownSignals::watch()?;
    let mut head = loop {
        let error = match HeadDaemon::start(options.clone()).await {
            Ok(head) => break head,
            Err(error) => error,
        };
        let Some(recovery) = RecoveryMode::start(&options, &error).await.map_err(failure)? else {
            return Err(failure(error));
        };
        output::print_message(&format!("recovery mode at {}: {error}", recovery.address()));
        tokio::select! {
            () = signals.wait() => return Ok(()),
            () = recovery.until_resolved() => {}
        }
    };
    daemon::print_ready(&ready_line(&head)).await?;
    tokio::select! {
        () = signals.wait() => {}
        error = head.failed() => return Err(failure(error)),
    }
    head.stop().await.map_err(failure)
}

/// The line that tells the address of the head and how workers join it.
pub(super) fn ready_line(head: &HeadDaemon) -> String {
    let token_file = head.worker_token_file();
    let token_file = absolute(&token_file).unwrap_or(token_file);
    format!(
        "ready: listening on {}; join with: cohabit worker start --join {} --token-file {}",
        head.address(),
        reachable(head.address()),
        quoted_command([token_file.display().to_string().as_str()]),
    )
}

/// The address for other machines; the host name for a head that listens on all addresses.
fn reachable(address: SocketAddr) -> String {
    let host = gethostname().ok().and_then(|name| name.into_string().ok());
    match (address.ip().is_unspecified(), host) {
        (true, Some(host)) => format!("{host}:{}", address.port()),
        (true, None) | (false, _) => address.to_string(),
    }
}

/// The address for clients on this machine.
#[cfg(feature = "worker")]
pub(super) fn local_address(head: &HeadDaemon) -> SocketAddr {
    let address = head.address();
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::from(std::net::Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::from(std::net::Ipv6Addr::LOCALHOST),
        ip @ (IpAddr::V4(_) | IpAddr::V6(_)) => ip,
    };
    SocketAddr::new(ip, address.port())
}
