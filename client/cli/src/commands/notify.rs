//! `notify`: tells people what happens on the cluster, until SIGTERM or SIGINT.

use std::process::ExitCode;

use cohabit_client::Client;
use cohabit_console::{CommandError, CommandErrorKind, output};
use cohabit_notify::{NotifyConfig, NotifyError, TestMessage, run, send_test};

use crate::arguments::NotifyArguments;
use crate::config::Settings;
use crate::daemon::{self, ShutdownSignals};
use crate::endpoint::{connection_flags, resolve_endpoint};

pub(super) fn notify(arguments: NotifyArguments) -> Result<ExitCode, CommandError> {
    let config = NotifyConfig::read(&arguments.config).map_err(failure)?;
    if arguments.check {
        return output::print_text(&config.summary()).map(|()| ExitCode::SUCCESS);
    }
    if let Some(channel) = arguments.test {
        let test = TestMessage { channel: channel.clone(), user: arguments.user };
        return daemon::run(async move {
            send_test(&config, test).await.map_err(failure)?;
            output::print_text(&format!("the channel '{channel}' has taken a test message\n"))
        });
    }
    let mut flags = connection_flags(&arguments.connection)?;
    flags.extend(daemon::logging_flags(&arguments.logging));
    let settings = Settings::with_flags(flags)?;
    daemon::start_logging(&settings)?;
    // A head that is not there yet is waited for.
    let client = Client::disconnected(resolve_endpoint(&settings)?);
    daemon::run(async move {
        let mut signals = ShutdownSignals::watch()?;
        run(config, client, async move { signals.wait().await }).await.map_err(failure)
    })
}

fn failure(error: NotifyError) -> CommandError {
    let kind = match &error {
        NotifyError::Config { .. } | NotifyError::InUse { .. } | NotifyError::NoSuchChannel { .. } => {
            CommandErrorKind::Configuration
        }
        NotifyError::State { .. } => CommandErrorKind::InputOutput,
        NotifyError::NotDelivered { .. } => CommandErrorKind::Unreachable,
    };
    CommandError::new(kind, error.to_string())
}
