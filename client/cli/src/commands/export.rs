//! `export`: serves metrics of the cluster for Prometheus, until SIGTERM or SIGINT.

use std::path::Path;
use std::process::ExitCode;

use cohabit_client::Client;
use cohabit_console::{CommandError, CommandErrorKind, output};
use cohabit_export::{ExportError, ExportOptions, ExportServer};
use cohabit_settings::FileSecret;

use crate::arguments::ExportArguments;
use crate::config::Settings;
use crate::daemon::{self, ShutdownSignals};
use crate::endpoint::{connection_flags, resolve_endpoint};

pub(super) fn export(arguments: ExportArguments) -> Result<ExitCode, CommandError> {
    let token = arguments.scrape_token_file.as_deref().map(read_token).transpose()?;
    let mut flags = connection_flags(&arguments.connection)?;
    flags.extend(daemon::logging_flags(&arguments.logging));
    let settings = Settings::with_flags(flags)?;
    daemon::start_logging(&settings)?;
    // A head that is not there yet is waited for: scrapes fail meanwhile.
    let client = Client::disconnected(resolve_endpoint(&settings)?);
    let options = ExportOptions { listen: arguments.listen, token, tls: arguments.tls.files() };
    daemon::run(async move {
        let mut signals = ShutdownSignals::watch()?;
        let server = ExportServer::bind(options, client).await.map_err(failure)?;
        output::print_text(&format!("Serving metrics on {}\n", server.url()))?;
        server.serve(async move { signals.wait().await }).await;
        Ok(())
    })
}

/// The token in this file, as it can stand in a header.
fn read_token(path: &Path) -> Result<FileSecret, CommandError> {
    let unusable = |why: String| {
        CommandError::new(CommandErrorKind::Configuration, format!("--scrape-token-file: {why}"))
    };
    let token = FileSecret::read(path).map_err(unusable)?;
    match token.reveal().bytes().all(|byte| byte.is_ascii_graphic()) {
        true => Ok(token),
        false => {
            Err(unusable("the token has to consist of printable ASCII characters, without spaces".into()))
        }
    }
}

fn failure(error: ExportError) -> CommandError {
    let kind = match &error {
        ExportError::Open(_) => CommandErrorKind::Usage,
        ExportError::TlsFile(_) => CommandErrorKind::Configuration,
        ExportError::Listen(_) => CommandErrorKind::InputOutput,
    };
    CommandError::new(kind, error.to_string())
}
