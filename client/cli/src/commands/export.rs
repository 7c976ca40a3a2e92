//! `export`: serves metrics of the cluster for Prometheus, until SIGTERM or SIGINT.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use cohabit_client::Client;
use cohabit_console::{CommandError, CommandErrorKind, output};
use cohabit_export::{ExportError, ExportOptions, ExportServer, TlsFiles};

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
    let tls = arguments.tls_cert.zip(arguments.tls_key);
    let tls = tls.map(|(certificate, key)| TlsFiles { certificate, key });
    let options = ExportOptions { listen: arguments.listen, token, tls };
    daemon::run(async move {
        let mut signals = ShutdownSignals::watch()?;
        let server = ExportServer::bind(options, client).await.map_err(failure)?;
        output::print_text(&format!("Serving metrics on {}\n", server.url()))?;
        server.serve(async move { signals.wait().await }).await;
        Ok(())
    })
}

/// The token in this file. An empty one would let in whoever sends none.
fn read_token(path: &Path) -> Result<String, CommandError> {
    let unusable = |why: String| {
        let message = format!("--scrape-token-file {}: {why}", path.display());
        CommandError::new(CommandErrorKind::Configuration, message)
    };
    let text = fs::read_to_string(path).map_err(|error| unusable(error.to_string()))?;
    let token = text.trim();
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(unusable(
            "the file has to hold one token of printable ASCII characters, without spaces".into(),
        ));
    }
    Ok(token.to_owned())
}

fn failure(error: ExportError) -> CommandError {
    let kind = match &error {
        ExportError::Open(_) => CommandErrorKind::Usage,
        ExportError::TlsFile(_) => CommandErrorKind::Configuration,
        ExportError::Listen { .. } => CommandErrorKind::InputOutput,
    };
    CommandError::new(kind, error.to_string())
}
