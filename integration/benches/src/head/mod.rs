//! The head's figures, one bench in each file.

pub(crate) mod ended;
pub(crate) mod heartbeats;
pub(crate) mod hostile;
pub(crate) mod idle;
pub(crate) mod latency;
pub(crate) mod queue;
pub(crate) mod recovery;
pub(crate) mod submits;
pub(crate) mod throughput;

use cohabit_net::{ClientServiceClient, context_for};
use cohabit_types::{Array, JobId, JobSpec, Span};

/// Time limit of a call.
const LIMIT: Span = Span::from_secs(60);

/// A job that does nothing.
fn no_op_job() -> JobSpec {
    JobSpec::command(vec!["/bin/true".to_owned()], "/tmp".to_owned())
}

/// An array of them.
fn array(members: u32) -> JobSpec {
    JobSpec { array: Some(Array::from(0..=members - 1)), ..no_op_job() }
}

/// Submits a job; comes back when it is durable.
async fn submit(client: &ClientServiceClient, spec: JobSpec) -> JobId {
    client.submit(context_for(LIMIT), Box::new(spec), None).await.unwrap().unwrap().job
}
