//! The jobs of the other processes: the head starts them, and says how they fare.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use cohabit_application_core::{ActorId, GangSpec, NodeNumber, TaskClass, TaskRunnerNumber};
use cohabit_client::{Client, ConnectOptions, Error, JobsWatcher, Submission, Token};
use cohabit_types::{
    ApplicationAccess, ApplicationAnswer, ApplicationQuestion, AttemptId, CodeSnapshot, Demand, Entrypoint,
    GpuRequest, JobChange, JobId, JobSpec, LaunchMode, RetryPolicy, RunnerRole, RunnerWork, Span,
};

use crate::options::RunnerClaims;
use crate::registry::ActorRegistry;

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
    launch: LaunchMode,
    ranks: u32,
    restarts: u32,
    /// The same for each try to submit it, and for no other runner of the application.
    key: &'a str,
    /// The one node on which it may run.
    node: Option<String>,
}

impl<'a> RunnerJob<'a> {
    /// One process, which is not started again.
    const fn new(role: RunnerRole, name: &'a str, demand: Demand, key: &'a str) -> RunnerJob<'a> {
        let launch = LaunchMode::PerNode;
        RunnerJob { role, name, demand, launch, ranks: 1, restarts: 0, key, node: None }
    }
}

/// What people see as the name of the job of actors: that of the first, or of its type.
fn name_of(gang: &GangSpec) -> &str {
    let Some(first) = gang.actors.first() else { return "actor" };
    let kind = || ActorRegistry::get().entry(first.kind).map_or("actor", |entry| entry.origin.name);
    first.name.as_deref().unwrap_or_else(kind)
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
        self.submit(RunnerJob::new(RunnerRole::Main, name, demand, "main")).await
    }

    /// Submits the job of actors, of which this one is the first.
    ///
    /// # Errors
    /// What the head says.
    pub(super) async fn submit_gang(&self, first: ActorId, gang: &GangSpec) -> Result<JobId, String> {
        let ranks = gang.actors.len() as u32;
        let (demand, launch) = RunnerClaims::decode(&gang.claims)?.of_gang(gang.gpus, ranks);
        let (name, key) = (name_of(gang), format!("actor {first}"));
        let job = RunnerJob { launch, ranks, ..RunnerJob::new(RunnerRole::Actor, name, demand, &key) };
        self.submit(RunnerJob { restarts: gang.restarts, ..job }).await
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
        let key = format!("tasks {runner}");
        self.submit(RunnerJob::new(RunnerRole::Tasks, "tasks", demand, &key)).await
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
        let job = RunnerJob::new(RunnerRole::Store, "store", demand, &key);
        self.submit(RunnerJob { restarts: STORE_RESTARTS, node: Some(name), ..job }).await
    }

    async fn submit(&self, job: RunnerJob<'_>) -> Result<JobId, String> {
        let RunnerJob { role, name, demand, launch, ranks, restarts, key, node } = job;
        let work = RunnerWork {
            application: self.application,
            program: self.program.clone(),
            role,
            arguments: self.arguments.clone(),
            node,
            ranks,
        };
        let spec = JobSpec {
            name: name.to_owned(),
            entrypoint: Entrypoint::Runner(work),
            demand,
            launch,
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
        self.client.change(JobChange::Withdraw, &[job]).await.map(drop)
    }
}
