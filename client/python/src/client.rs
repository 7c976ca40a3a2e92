//! The client of a cluster: each method of [`Client`] that Python needs, as a call or a stream.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use cohabit_client::types::{
    Bytes, ChangeResult, Filter, FollowMode, JobChange, JobId, JobRecord, JobRef, JobState, LogPosition, Time,
};
use cohabit_client::{Client, ConnectOptions, LogOptions};
use cohabit_console::CommandError;
use cohabit_documents::explanation::ExplanationDocument;
use cohabit_documents::jobs::{JobDocument, JobListDocument};
use cohabit_documents::nodes::NodeDocument;
use cohabit_settings::{RawSettings, SettingKey, Settings};
use futures::stream::{StreamExt, TryStreamExt};
use pyo3::prelude::*;
use serde::Serialize;

use crate::answer::NativeAnswer;
use crate::call::NativeCall;
use crate::connecting;
use crate::errors::exception;
use crate::reading::{self, metrics_of};
use crate::stream::{Answers, NativeStream};
use crate::submission;
use crate::watcher::NativeWatcher;

/// How long calls try to reach a head that is gone: longer than a restart for an upgrade takes.
const HEAD_ABSENCE: Duration = Duration::from_secs(60);

/// A client. It connects with its first call; the link is opened again when it breaks.
#[pyclass(frozen, name = "Client", module = "cohabit._native")]
pub(crate) struct NativeClient {
    client: Client,
    settings: Arc<Settings>,
}

/// Who this client is to the head.
#[derive(Debug, Serialize)]
struct IdentityDocument {
    head: String,
    user: String,
    role: String,
}

#[pymethods]
impl NativeClient {
    /// A client of the head that these flags name, or else variables and configuration files.
    #[new]
    #[pyo3(signature = (head=None, token_file=None, state=None))]
    fn new(
        head: Option<String>,
        token_file: Option<String>,
        state: Option<String>,
    ) -> PyResult<NativeClient> {
        let mut flags = RawSettings::new();
        flags.extend(head.map(|head| (SettingKey::Head, head)));
        flags.extend(token_file.map(|file| (SettingKey::TokenFile, file)));
        flags.extend(state.map(|directory| (SettingKey::State, directory)));
        let settings = Settings::with_flags(flags).map_err(|error| exception(error.into()))?;
        let settings = Arc::new(settings);
        let known = Arc::clone(&settings);
        let client = Client::finding(move || ConnectOptions::from_settings(&known));
        let client = client.map_err(|error| exception(error.into()))?.with_retry_timeout(HEAD_ABSENCE);
        Ok(NativeClient { client, settings })
    }

    /// Who this client is to the head: the first thing to ask, since it fails at once where no head answers.
    fn identity(&self) -> NativeCall {
        self.call(|client| async move {
            // A head that was never reached is not waited for.
            let by = client.clone().with_retry_timeout(Duration::ZERO).accepted().await?.by;
            NativeAnswer::document(&IdentityDocument {
                head: client.head().to_owned(),
                user: by.user,
                role: by.role.to_string(),
            })
        })
    }

    /// Submits the job that these flags and this command describe.
    fn submit(&self, arguments: Vec<String>) -> NativeCall {
        let settings = Arc::clone(&self.settings);
        self.call(|client| async move { submission::submit(&client, &settings, arguments).await })
    }

    /// The records of jobs.
    fn show(&self, references: Vec<String>) -> NativeCall {
        self.call(|client| async move {
            let jobs = resolve(&client, &references).await?;
            job_list(client.show(&jobs).await?)
        })
    }

    /// The records of the jobs that pass a filter, without attempts; the newest ones with a limit.
    #[pyo3(signature = (states, user, name, ended_after, limit))]
    fn jobs(
        &self,
        states: Vec<String>,
        user: Option<String>,
        name: Option<String>,
        ended_after: Option<f64>,
        limit: u32,
    ) -> NativeCall {
        self.call(move |client| async move {
            let states = states.iter().map(|state| parse_state(state)).collect::<Result<_, _>>()?;
            let ended_after = ended_after.map(|at| Time::from_micros((at.max(0.0) * 1e6) as u64));
            let filter = Filter { states, user, name, ended_after, ..Filter::default() };
            let mut found = client.list(filter);
            let mut newest = VecDeque::new();
            while let Some(record) = found.try_next().await? {
                newest.push_back(record);
                if limit > 0 && newest.len() > limit as usize {
                    newest.pop_front();
                }
            }
            job_list(newest.into())
        })
    }

    /// The records of the members of an array, without attempts.
    fn members(&self, reference: String) -> NativeCall {
        self.call(|client| async move {
            let job = resolve_one(&client, &reference).await?;
            job_list(client.job(job).members().try_collect().await?)
        })
    }

    /// Waits for the end of jobs; their last records.
    fn wait(&self, references: Vec<String>) -> NativeCall {
        self.call(|client| async move {
            let jobs = resolve(&client, &references).await?;
            job_list(client.wait(&jobs).await?)
        })
    }

    /// Follows jobs that are added by and by.
    fn watcher(&self) -> NativeWatcher {
        NativeWatcher::new(self.client.watch_jobs())
    }

    /// A job's record now and after each change.
    fn watch(&self, reference: String) -> NativeStream {
        self.stream(reference, |client, job| {
            client.watch(job).map(|record| NativeAnswer::document(&JobDocument::from(&record?))).boxed()
        })
    }

    /// The output of one rank: pairs of a stream's name and bytes.
    #[pyo3(signature = (reference, rank, attempt, tail, follow))]
    fn logs(
        &self,
        reference: String,
        rank: u32,
        attempt: Option<u32>,
        tail: Option<u64>,
        follow: bool,
    ) -> NativeStream {
        let from = tail.map_or(LogPosition::Start, LogPosition::Tail);
        let at_end = if follow { FollowMode::Wait } else { FollowMode::Return };
        let options = LogOptions { rank, attempt, from, at_end };
        self.stream(reference, move |client, job| {
            let printed = client.logs(job, options);
            printed
                .map(|record| record.map(|it| NativeAnswer::Output(it.stream, it.bytes)).map_err(Into::into))
                .boxed()
        })
    }

    /// The metrics of rank 0 of a job, or of all members of an array, over the steps of each attempt.
    fn metrics(&self, reference: String) -> NativeCall {
        self.call(|client| async move {
            let job = resolve_one(&client, &reference).await?;
            NativeAnswer::document(&metrics_of(&client, job).await?)
        })
    }

    /// Makes one change to some jobs: cancel, kill, hold, release or requeue. Fails with the first refusal,
    /// after all were tried.
    fn change(&self, change: String, references: Vec<String>) -> NativeCall {
        self.call(|client| async move {
            let change = parse_change(&change)?;
            let jobs = resolve(&client, &references).await?;
            let refusal = |(_, result)| match result {
                ChangeResult::Done | ChangeResult::Already => None,
                ChangeResult::Refused(refusal) => Some(refusal),
            };
            let refused = client.change(change, &jobs).await?.into_iter().find_map(refusal);
            refused.map_or(Ok(NativeAnswer::Done), |refusal| Err(refusal.into()))
        })
    }

    /// Why a job waits, or how it ended.
    fn explain(&self, reference: String) -> NativeCall {
        self.call(|client| async move {
            let job = resolve_one(&client, &reference).await?;
            NativeAnswer::document(&ExplanationDocument::new(job, client.explain(job).await?))
        })
    }

    /// The nodes of the cluster.
    fn nodes(&self) -> NativeCall {
        self.call(|client| async move {
            let nodes: Vec<NodeDocument> = client.nodes().await?.iter().map(NodeDocument::from).collect();
            NativeAnswer::document(&nodes)
        })
    }

    /// A socket whose other end is a port on which a rank of this attempt of a job listens.
    fn connect(&self, job: String, rank: u32, attempt: u32, port: u16) -> NativeCall {
        self.call(move |client| async move {
            let job = resolve_one(&client, &job).await?;
            connecting::connect(&client, job.attempt(attempt).rank(rank), port).await
        })
    }

    /// The contents of a file of a job.
    fn read_file(&self, reference: String, path: String, rank: u32, limit: u64) -> NativeCall {
        self.call(move |client| async move {
            let job = resolve_one(&client, &reference).await?;
            Ok(NativeAnswer::Bytes(reading::read_file(&client, job, &path, rank, Bytes(limit)).await?))
        })
    }
}

impl NativeClient {
    fn call<F>(&self, work: impl FnOnce(Client) -> F) -> NativeCall
    where
        F: Future<Output = Result<NativeAnswer, CommandError>> + Send + 'static,
    {
        NativeCall::new(work(self.client.clone()))
    }

    /// The answers of a stream about the job that a reference names.
    fn stream(
        &self,
        reference: String,
        answers: impl FnOnce(Client, JobId) -> Answers + Send + 'static,
    ) -> NativeStream {
        let client = self.client.clone();
        let opened = async move {
            let job = resolve_one(&client, &reference).await?;
            Ok::<_, CommandError>(answers(client, job))
        };
        NativeStream::new(futures::stream::once(opened).try_flatten().boxed())
    }
}

/// The jobs that references name, in their order.
async fn resolve(client: &Client, references: &[String]) -> Result<Vec<JobId>, CommandError> {
    let references = references
        .iter()
        .map(|text| text.parse::<JobRef>().map_err(|error| CommandError::invalid(error.to_string())))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(client.resolve(&references).await?)
}

async fn resolve_one(client: &Client, reference: &String) -> Result<JobId, CommandError> {
    match resolve(client, std::slice::from_ref(reference)).await?.as_slice() {
        [job] => Ok(*job),
        jobs => {
            Err(CommandError::invalid(format!("'{reference}' matches {} jobs: name one of them", jobs.len())))
        }
    }
}

fn job_list(records: Vec<JobRecord>) -> Result<NativeAnswer, CommandError> {
    NativeAnswer::document(&JobListDocument { jobs: records.iter().map(JobDocument::from).collect() })
}

fn parse_change(word: &str) -> Result<JobChange, CommandError> {
    match word {
        "cancel" => Ok(JobChange::Cancel),
        "kill" => Ok(JobChange::Kill),
        "hold" => Ok(JobChange::Hold),
        "release" => Ok(JobChange::Release),
        "requeue" => Ok(JobChange::Requeue),
        _ => Err(CommandError::invalid(format!(
            "'{word}' is no change of a job: use cancel, kill, hold, release or requeue"
        ))),
    }
}

fn parse_state(state: &str) -> Result<JobState, CommandError> {
    state.parse().map_err(CommandError::invalid)
}
