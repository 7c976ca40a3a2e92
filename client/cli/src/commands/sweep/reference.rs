//! The sweep that an argument names.

use cohabit_client::Client;
use cohabit_client::types::{Filter, JobId, JobRecord, JobRef, Sweep};
use cohabit_console::{CommandError, CommandErrorKind};
use futures::TryStreamExt as _;

use crate::clock::now;
use crate::commands::job_reference::resolve_one;
use crate::commands::list::LISTED_FOR;

/// The record of a sweep, and how its members are compared. `last` is the newest sweep of the user.
pub(super) async fn find(client: &Client, reference: &JobRef) -> Result<(JobRecord, Sweep), CommandError> {
    let id = match reference {
        JobRef::Last(0) => newest(client).await?,
        JobRef::Last(_) | JobRef::Id(_) | JobRef::Range(..) | JobRef::Name(_) => {
            // A member stands for its sweep.
            JobId::new(resolve_one(client, reference).await?.number)
        }
    };
    let record = client.show(&[id]).await?.pop();
    let missing = || CommandError::new(CommandErrorKind::NotFound, format!("there is no job {id}"));
    let record = record.ok_or_else(missing)?;
    match record.labels.sweep.clone() {
        Some(sweep) => Ok((record, sweep)),
        None => Err(CommandError::invalid(format!(
            "job {id} is no sweep of yours: `cohabit show {id}` and `cohabit metrics {id}` show other jobs"
        ))),
    }
}

async fn newest(client: &Client) -> Result<JobId, CommandError> {
    let user = Some(client.accepted().await?.by.user);
    let all = Filter { user, ..Filter::default() };
    let recent = Filter { ended_after: Some(now() - LISTED_FOR), ..all.clone() };
    for filter in [recent, all] {
        let sweeps = client.list(filter).try_filter(|job| std::future::ready(job.labels.sweep.is_some()));
        // The newest comes last.
        let last = sweeps.try_fold(None, |_, job| std::future::ready(Ok(Some(job.id)))).await?;
        if let Some(id) = last {
            return Ok(id);
        }
    }
    let message = "you have no sweep: submit one, such as cohabit sweep --grid lr=0.1,0.01 -- python train.py --lr {lr}";
    Err(CommandError::new(CommandErrorKind::NotFound, message))
}
