//! `forward`: a port of this machine that leads to one on which a job listens.

mod local_port;

use std::process::ExitCode;

use cohabit_client::types::{JobId, JobPhase};
use cohabit_console::{CommandError, CommandErrorKind, output};

pub(super) use local_port::LocalPort;

use super::job_reference::resolve_one;
use super::terminal::EndSignals;
use crate::arguments::ForwardArguments;
use crate::endpoint::connect_to_stay;

/// A port on which a job listens, on the node of one of its ranks.
#[derive(Debug, Clone, Copy)]
pub(super) struct JobPort {
    pub(super) job: JobId,
    pub(super) rank: u32,
    pub(super) port: u16,
}

pub(super) async fn forward(arguments: ForwardArguments) -> Result<ExitCode, CommandError> {
    let client = connect_to_stay(&arguments.connection).await?;
    let job = client.job(resolve_one(&client, &arguments.job).await?);
    let record = job.record().await?;
    if record.state.phase() != JobPhase::Placed {
        let message =
            format!("job {} is {}: only ports of a running job can be connected to", job.id(), record.state);
        return Err(CommandError::new(CommandErrorKind::Impossible("wrong_state"), message));
    }
    let ports = arguments.ports;
    let to = JobPort { job: job.id(), rank: arguments.rank.unwrap_or(0), port: ports.remote };
    let here = LocalPort::bind(ports.local).await.map_err(|error| {
        let message = format!(
            "cannot listen on 127.0.0.1:{} of this machine: {error}. Name another port before that of the job: \
             0:{} takes a free one",
            ports.local, ports.remote
        );
        CommandError::new(CommandErrorKind::InputOutput, message)
    })?;
    let mut signals = EndSignals::new()?;
    here.check(&client, to, record.attempt).await?;
    output::print_text(&format!("127.0.0.1:{}\n", here.port()))?;
    output::print_message(&format!("leads to port {} of job {}; Ctrl-C ends it", to.port, to.job));
    let ended = tokio::select! {
        ended = here.carry(&client, &job, to) => ended.map(Some),
        _ = signals.recv() => Ok(None),
    };
    here.close(&client).await;
    if let Some(ended) = ended? {
        output::print_message(&format!("job {} has ended ({})", ended.id, ended.state));
    }
    Ok(ExitCode::SUCCESS)
}
