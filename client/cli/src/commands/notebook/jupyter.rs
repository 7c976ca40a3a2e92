//! The server of Jupyter on its node: where it listens, and its token.

use std::collections::BTreeMap;

use cohabit_client::types::{ExecId, ExecRequest, LogPosition, LogStream, Outcome, RankId};
use cohabit_client::{Client, while_away};
use cohabit_console::{CommandError, CommandErrorKind};
use serde::Deserialize;

use crate::commands::terminal::{random_number, read_present_exec};

/// Prints what Jupyter has written about itself, once it has.
const FIND: &str = include_str!("find.sh");
/// More is not about a server.
const MOST_BYTES: usize = 64 << 10;

/// How long to wait until Jupyter is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Patience {
    /// As long as its job runs: it ends if Jupyter does not start.
    OfTheJob,
    /// Some seconds: it may be a job without Jupyter.
    Short,
}

/// What Jupyter writes into the file about itself that is needed here.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct JupyterServer {
    port: u16,
    token: String,
    #[serde(default = "root")]
    base_url: String,
}

fn root() -> String {
    "/".to_owned()
}

impl JupyterServer {
    /// # Errors
    /// What is wrong with the text.
    fn parse(text: &[u8]) -> Result<JupyterServer, String> {
        let server: JupyterServer = serde_json::from_slice(text).map_err(|error| error.to_string())?;
        // They become a part of an address that people click on.
        let is_plain =
            |text: &str| text.chars().all(|it| it.is_ascii_alphanumeric() || "/-_.~%".contains(it));
        if !is_plain(&server.token) || !is_plain(&server.base_url) || !server.base_url.starts_with('/') {
            return Err("its token or address has characters that no address has".into());
        }
        Ok(server)
    }

    pub(super) const fn port(&self) -> u16 {
        self.port
    }

    pub(super) const fn has_token(&self) -> bool {
        !self.token.is_empty()
    }

    /// Its address at this port of this machine.
    pub(super) fn url(&self, port: u16) -> String {
        let base = &self.base_url;
        match self.has_token() {
            true => format!("http://127.0.0.1:{port}{base}?token={}", self.token),
            false => format!("http://127.0.0.1:{port}{base}"),
        }
    }
}

/// Asks a process beside the notebook where it listens.
///
/// # Errors
/// When it is not there in time, or its job has ended.
pub(super) async fn find_server(
    client: &Client,
    rank: RankId,
    patience: Patience,
) -> Result<JupyterServer, CommandError> {
    let tries = match patience {
        Patience::OfTheJob => "0",
        Patience::Short => "30",
    };
    let id = ExecId { rank, number: random_number() };
    let argv = ["/bin/sh", "-c", FIND, "cohabit-notebook", tries].map(str::to_owned).into();
    let request = ExecRequest { id, argv, environment: BTreeMap::new(), terminal: None };
    // The job has its place, but its process may be about to start.
    while_away(|| client.start_exec(request.clone())).await?;
    let (mut text, mut from) = (Vec::new(), LogPosition::Start);
    let outcome = loop {
        let read = read_present_exec(client, id, from).await?;
        from = LogPosition::At(read.chunk.next);
        let printed = read.chunk.records.into_iter().filter(|record| record.stream == LogStream::Stdout);
        text.extend(printed.flat_map(|record| record.bytes).take(MOST_BYTES.saturating_sub(text.len())));
        if let Some(outcome) = read.outcome {
            break outcome;
        }
    };
    client.end_exec(id).await?;
    let job = rank.attempt.job;
    if outcome != Outcome::Exited(0) {
        let message =
            format!("job {job} has no notebook that answers: cohabit logs {job} shows what it says");
        return Err(CommandError::new(CommandErrorKind::Impossible("wrong_state"), message));
    }
    JupyterServer::parse(&text).map_err(|why| {
        let message = format!("what the notebook of job {job} says of itself cannot be understood: {why}");
        CommandError::new(CommandErrorKind::Internal, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_has_the_port_of_this_machine_and_the_token() {
        let text =
            r#"{"base_url": "/lab/", "port": 9, "token": "a1", "url": "http://127.0.0.1:9/lab/", "pid": 3}"#;
        let server = JupyterServer::parse(text.as_bytes()).unwrap();
        assert_eq!(server.port(), 9);
        assert_eq!(server.url(70), "http://127.0.0.1:70/lab/?token=a1");
        let open = JupyterServer::parse(br#"{"port": 9, "token": ""}"#).unwrap();
        assert_eq!((open.url(70), open.has_token()), ("http://127.0.0.1:70/".to_owned(), false));
    }

    #[test]
    fn what_is_no_server_is_refused() {
        for text in [
            "",
            "{}",
            r#"{"port": 70000, "token": ""}"#,
            r#"{"port": 9, "token": "a\nb"}"#,
            r#"{"port": 9, "token": "a", "base_url": "//evil.example@x"}"#,
            r#"{"port": 9, "token": "a", "base_url": ".example"}"#,
        ] {
            assert!(JupyterServer::parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}
