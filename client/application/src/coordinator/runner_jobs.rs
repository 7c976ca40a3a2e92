//! The jobs of the other processes: the head starts them, and says how they fare.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use cohabit_application_core::{ActorId, NodeNumber, TaskClass, TaskRunnerNumber};
use cohabit_client::{Client, ConnectOptions, Error, JobsWatcher, Submission, Token};
use cohabit_types::{
    ApplicationAccess, ApplicationAnswer, ApplicationQuestion, AttemptId, CodeSnapshot, Demand, Entrypoint,
    GpuRequest, JobChange, JobId, JobSpec, RetryPolicy, RunnerRole, RunnerWork, Share, Span,
};

use crate::options::RunnerClaims;

/// The coordinator goes on as long as the head lets it: executors end it if the head is away for too long.
const RETRY_TIMEOUT: Duration = Duration::from_secs(365 * 24 * 3_600);

/// Pauses before an actor's process is started again.
const FIRST_PAUSE: Span = Span::from_secs(1);
const LONGEST_PAUSE: Span = Span::from_secs(60);

/// How often the store of a node is started again. Its end is a fault of its node, or of whoever killed it.
const STORE_RESTARTS: u32 = 100;

/// What all runners of the application have in common.
pub(super) struct RunnerJobs {
    client: Client,
    application: AttemptId,
    program: String,
    arguments: Vec<String>,
    code: CodeSnapshot,
    workdir: String,
    /// How many stores were submitted.
    stores: AtomicU64,
}

/// What a runner's job is.
struct RunnerJob<'a> {
    role: RunnerRole,
    name: &'a str,
    demand: Demand,
    restarts: u32,
    /// The same for each try to submit it, and for no other runner of the application.
    key: &'a str,
    /// The one node on which it may run.
    node: Option<String>,
}

/// The runner of an actor.
pub(super) struct ActorRunner {
    pub(super) actor: ActorId,
    /// For people.
    pub(super) name: String,
    pub(super) restarts: u32,
    pub(super) gpus: Share,
    pub(super) claims: Bytes,
}

impl RunnerJobs {
    /// A link by the token of the access.
    ///
    /// # Errors
    /// In words, if the access or the program is not usable.
    pub(super) fn open(access: &ApplicationAccess) -> Result<RunnerJobs, String> {
        let token = access.credentials.token.as_deref();
        let token = token.ok_or("the access of the coordinator has no token of the head")?;
        let token: Token = token.parse().map_err(|error| format!("the token of the head: {error}"))?;
        let connect = ConnectOptions { head: access.head.clone(), token };
        let mut arguments = std::env::args();
        let program = arguments.next().unwrap_or_default();
        let program = program.rsplit('/').next().unwrap_or_default().to_owned();
        let workdir = std::env::current_dir().map_err(|error| format!("no working directory: {error}"))?;
        Ok(RunnerJobs {
            client: Client::disconnected(connect).with_retry_timeout(RETRY_TIMEOUT),
            application: access.application,
            program,
            arguments: arguments.collect(),
            code: access.code.clone(),
            workdir: workdir.to_string_lossy().into_owned(),
            stores: AtomicU64::new(0),
        })
    }

    /// Submits the first main.
    ///
    /// # Errors
    /// What the head says.
    pub(super) async fn submit_main(&self, name: &str) -> Result<JobId, String> {
        let demand = Demand { gpus: GpuRequest::Whole(0), ..Demand::default() };
        let role = RunnerRole::Main;
        self.submit(RunnerJob { role, name, demand, restarts: 0, key: "main", node: None }).await
    }

    /// Submits the runner of an actor.
    ///
    /// # Errors
    /// What the head says.
    pub(super) async fn submit_actor(&self, runner: ActorRunner) -> Result<JobId, String> {
        let ActorRunner { actor, name, restarts, gpus, claims } = runner;
        let demand = RunnerClaims::decode(&claims)?.demand(gpus);
        let (role, key) = (RunnerRole::Actor, format!("actor {actor}"));
        self.submit(RunnerJob { role, name: &name, demand, restarts, key: &key, node: None }).await
    }

    /// Submits a runner of tasks. It is not started again: what it was to do, others do.
    ///
    /// # Errors
    /// What the head says.
    pub(super) async fn submit_tasks(
        &self,
        runner: TaskRunnerNumber,
        class: &TaskClass,
    ) -> Result<JobId, String> {
        let demand = RunnerClaims::decode(&class.claims)?.demand(class.gpus);
        let (role, key) = (RunnerRole::Tasks, format!("tasks {runner}"));
        self.submit(RunnerJob { role, name: "tasks", demand, restarts: 0, key: &key, node: None }).await
    }

    /// Submits the store of a further node. It is started again whenever it ends.
    ///
    /// # Errors
    /// What the head says.
    pub(super) async fn submit_store(&self, node: NodeNumber, name: String) -> Result<JobId, String> {
        let demand = Demand { gpus: GpuRequest::Whole(0), cpus: 0, ..Demand::default() };
        // A node that was lost may come back: each of its stores is a job of its own.
        let number = self.stores.fetch_add(1, Ordering::Relaxed);
        let key = format!("store {node} {number}");
        let (role, restarts, node) = (RunnerRole::Store, STORE_RESTARTS, Some(name));
        self.submit(RunnerJob { role, name: "store", demand, restarts, key: &key, node }).await
    }

    async fn submit(&self, job: RunnerJob<'_>) -> Result<JobId, String> {
        let RunnerJob { role, name, demand, restarts, key, node } = job;
        let work = RunnerWork {
            application: self.application,
            program: self.program.clone(),
            role,
            arguments: self.arguments.clone(),
            node,
        };
        let spec = JobSpec {
            name: name.to_owned(),
            entrypoint: Entrypoint::Runner(work),
            demand,
            retry: RetryPolicy { limit: restarts, backoff: FIRST_PAUSE, backoff_cap: LONGEST_PAUSE },
            code: Some(self.code.clone()),
            ..JobSpec::command(vec![self.program.clone()], self.workdir.clone())
        };
        let key = format!("{} {key}", self.application);
        let submission = Submission::new(spec).map_err(|error| error.to_string())?.with_key(key);
        let job = self.client.submit(&submission).await.map_err(|error| error.to_string())?;
        Ok(job.id())
    }

    /// Follows runners that are added by and by.
    pub(super) fn watch(&self) -> JobsWatcher {
        self.client.watch_jobs()
    }

    /// Waits for questions of users about the application.
    ///
    /// # Errors
    /// What the head says.
    pub(super) async fn questions(&self) -> Result<Vec<ApplicationQuestion>, Error> {
        self.client.questions().await
    }

    /// Answers one of them.
    ///
    /// # Errors
    /// What the head says.
    pub(super) async fn answer(&self, number: u64, answer: ApplicationAnswer) -> Result<(), Error> {
        self.client.answer_question(number, answer).await
    }

    /// Ends a runner. Its end comes as a report.
    ///
    /// # Errors
    /// What the head says.
    pub(super) async fn cancel(&self, job: JobId) -> Result<(), Error> {
        self.client.change(JobChange::Cancel, &[job]).await.map(drop)
    }
}
