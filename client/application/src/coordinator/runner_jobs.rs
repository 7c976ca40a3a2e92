//! The jobs of the other processes: the head starts them, and says how they fare.

use std::time::Duration;

use bytes::Bytes;
use cohabit_application_core::{ActorId, TaskClass, TaskRunnerNumber};
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

/// What all runners of the application have in common.
pub(super) struct RunnerJobs {
    client: Client,
    application: AttemptId,
    program: String,
    arguments: Vec<String>,
    code: CodeSnapshot,
    workdir: String,
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
        })
    }

    /// Submits the first main.
    ///
    /// # Errors
    /// What the head says.
    pub(super) async fn submit_main(&self, name: &str) -> Result<JobId, String> {
        let demand = Demand { gpus: GpuRequest::Whole(0), ..Demand::default() };
        self.submit(RunnerRole::Main, name, demand, 0, "main").await
    }

    /// Submits the runner of an actor.
    ///
    /// # Errors
    /// What the head says.
    pub(super) async fn submit_actor(&self, runner: ActorRunner) -> Result<JobId, String> {
        let ActorRunner { actor, name, restarts, gpus, claims } = runner;
        let demand = RunnerClaims::decode(&claims)?.demand(gpus);
        self.submit(RunnerRole::Actor, &name, demand, restarts, &format!("actor {actor}")).await
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
        self.submit(RunnerRole::Tasks, "tasks", demand, 0, &format!("tasks {runner}")).await
    }

    async fn submit(
        &self,
        role: RunnerRole,
        name: &str,
        demand: Demand,
        restarts: u32,
        key: &str,
    ) -> Result<JobId, String> {
        let work = RunnerWork {
            application: self.application,
            program: self.program.clone(),
            role,
            arguments: self.arguments.clone(),
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
