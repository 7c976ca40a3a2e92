//! `head start`: runs the head in the foreground until it is told to end.

mod options;

#[cfg(feature = "worker")]
use std::net::IpAddr;
use std::net::SocketAddr;
use std::path::absolute;
use std::process::ExitCode;

use cohabit_head::{HeadDaemon, HeadError, HeadOptions};
use nix::unistd::gethostname;

pub(super) use self::options::{flags, options};
use crate::arguments::HeadVerb;
use crate::config::Settings;
use crate::daemon::{self, ShutdownSignals};
use crate::failure::{CommandError, CommandErrorKind};
use crate::output;

pub(super) fn head(verb: HeadVerb) -> Result<ExitCode, CommandError> {
    match verb {
        HeadVerb::Start(arguments) => {
            let settings = Settings::with_flags(flags(&arguments)?)?;
            daemon::start_logging(&settings)?;
            daemon::run(serve(options(&settings)?))
        }
    }
}

async fn serve(options: HeadOptions) -> Result<(), CommandError> {
    let mut signals = ShutdownSignals::watch()?;
    let mut head = HeadDaemon::start(options).await.map_err(failure)?;
    output::data(&ready(&head))?;
    tokio::select! {
        () = signals.wait() => {}
        error = head.failed() => return Err(failure(error)),
    }
    head.stop().await.map_err(failure)
}

/// The line that says where the head listens and how workers join.
pub(super) fn ready(head: &HeadDaemon) -> String {
    let token_file = head.worker_token_file();
    let token_file = absolute(&token_file).unwrap_or(token_file);
    format!(
        "ready: listening on {}; join with: cohabit worker start --join {} --token-file {}",
        head.address(),
        reachable(head.address()),
        shlex::try_quote(&token_file.display().to_string()).unwrap_or_default(),
    )
}

/// Where other machines reach this one: a head that listens everywhere is reached by the host's name.
fn reachable(address: SocketAddr) -> String {
    let host = gethostname().ok().and_then(|name| name.into_string().ok());
    match (address.ip().is_unspecified(), host) {
        (true, Some(host)) => format!("{host}:{}", address.port()),
        (true, None) | (false, _) => address.to_string(),
    }
}

/// Where this machine reaches its own head.
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

/// What keeps a head from starting, or ends it.
pub(super) fn failure(error: HeadError) -> CommandError {
    let trouble = match &error {
        HeadError::State { .. } | HeadError::Journal { .. } => CommandErrorKind::InputOutput,
        HeadError::Full { .. } => CommandErrorKind::TryLater,
        HeadError::NetworkFileSystem { .. }
        | HeadError::WritableByOthers { .. }
        | HeadError::InUse { .. }
        | HeadError::Corrupt { .. }
        | HeadError::Newer { .. }
        | HeadError::Listen(_)
        | HeadError::Secrets(_)
        | HeadError::Token(_)
        | HeadError::Policy(_)
        | HeadError::Interference { .. }
        | HeadError::NoModels { .. } => CommandErrorKind::Configuration,
        HeadError::Failed(_) => CommandErrorKind::Internal,
    };
    CommandError::from_error(trouble, &error)
}
