//! What workers keep of jobs: files and metrics.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use cohabit_client::types::{
    Bytes, CopyDepth, CopyId, CopyRead, FollowMode, JobId, JobRecord, MetricSeries, RankId, RefusalCode,
};
use cohabit_client::{Client, Error, while_away};
use cohabit_console::{CommandError, CommandErrorKind};
use cohabit_documents::metrics::MetricsDocument;
use cohabit_transfer::{ReceiveError, ReceiveLimits, Receiver, Target, TransferFailure};
use futures::stream::TryStreamExt;
use tokio::time::sleep;

/// How long copies of the same user that go on may delay one.
const ROOM_WITHIN: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(100);

/// The contents of a file, as they arrive.
#[derive(Clone, Default)]
struct Contents(Arc<Mutex<Vec<u8>>>);

impl Write for Contents {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The contents of a file of one rank of a job's latest attempt, of at most so many bytes.
pub(crate) async fn read_file(
    client: &Client,
    job: JobId,
    path: &str,
    rank: u32,
    limit: Bytes,
) -> Result<Vec<u8>, CommandError> {
    let id = start(client, job, path, rank, limit).await?;
    let contents = receive(client, job, id, limit).await;
    // Its worker would notice by itself, but later.
    let _ = client.end_copy(id).await;
    contents
}

/// Starts a copy, once the node has room for one more.
async fn start(client: &Client, job: JobId, path: &str, rank: u32, limit: Bytes) -> Result<CopyId, Error> {
    let begun = Instant::now();
    loop {
        match client.job(job).start_copy(path, rank, CopyDepth::File, limit).await {
            Err(Error::Refused(refusal))
                if refusal.code == RefusalCode::Limit && begun.elapsed() < ROOM_WITHIN =>
            {
                sleep(PAUSE).await;
            }
            started => return started,
        }
    }
}

async fn receive(client: &Client, job: JobId, id: CopyId, limit: Bytes) -> Result<Vec<u8>, CommandError> {
    let contents = Contents::default();
    let target = Target::Stream(Box::new(contents.clone()));
    let mut receiver = Receiver::new(target, ReceiveLimits { bytes: limit });
    let mut from = 0;
    loop {
        let read = CopyRead { id, from, at_end: FollowMode::Wait };
        let piece = while_away(|| client.read_copy(read)).await?;
        from += piece.bytes.len() as u64;
        receiver.take(&piece.bytes).map_err(|error| of_receiving(job, &error))?;
        if piece.is_last {
            break;
        }
    }
    receiver.finish().map_err(|error| of_receiving(job, &error))?;
    Ok(std::mem::take(&mut contents.0.lock().unwrap_or_else(PoisonError::into_inner)))
}

fn of_receiving(job: JobId, error: &ReceiveError) -> CommandError {
    let kind = match error {
        ReceiveError::Sender { kind, .. } => match kind {
            TransferFailure::NotFound => CommandErrorKind::NotFound,
            TransferFailure::NotAllowed => CommandErrorKind::NotAllowed,
            TransferFailure::Directory | TransferFailure::SpecialFile | TransferFailure::TooLarge => {
                CommandErrorKind::Usage
            }
            TransferFailure::Failed => CommandErrorKind::InputOutput,
        },
        ReceiveError::TooLarge(_) => CommandErrorKind::Usage,
        ReceiveError::Write { .. } | ReceiveError::Stream(_) | ReceiveError::CutOff => {
            CommandErrorKind::InputOutput
        }
        ReceiveError::Invalid(_) => CommandErrorKind::Protocol,
    };
    CommandError::new(kind, format!("job {job}: {error}"))
}

/// The metrics of rank 0 of a job, or of all members of an array, of each attempt.
pub(crate) async fn metrics_of(client: &Client, job: JobId) -> Result<MetricsDocument, CommandError> {
    let record = client.job(job).record().await?;
    let jobs = match record.array {
        None => vec![record],
        Some(_) => {
            let members: Vec<JobRecord> = client.job(job).members().try_collect().await?;
            let started: Vec<JobId> = members.iter().filter(|it| it.attempt > 0).map(|it| it.id).collect();
            client.show(&started).await?
        }
    };
    let mut all: Vec<(RankId, MetricSeries)> = Vec::new();
    for job in &jobs {
        for (attempt, series) in client.job(job.id).metrics().await? {
            all.push((job.id.attempt(attempt).rank(0), series));
        }
    }
    Ok(MetricsDocument::new(all.iter().map(|(rank, series)| (*rank, series))))
}
