//! The job that an argument of a command names.

use cohabit_client::Client;
use cohabit_client::types::{JobId, JobRef};
use cohabit_console::{CommandError, CommandErrorKind};

/// The job that a reference names.
pub(super) async fn resolve_one(client: &Client, reference: &JobRef) -> Result<JobId, CommandError> {
    match client.resolve(std::slice::from_ref(reference)).await?.as_slice() {
        [job] => Ok(*job),
        jobs => Err(CommandError::new(
            CommandErrorKind::Impossible("ambiguous"),
            format!("'{reference}' matches {} jobs: name one of them", jobs.len()),
        )),
    }
}
