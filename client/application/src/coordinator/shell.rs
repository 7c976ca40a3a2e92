//! Drives the core of the coordinator: connections of processes, jobs of the head.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use cohabit_application_core::{
    Coordinator, CoordinatorEffect, FromCoordinator, LinkNumber, MemberTopic, Packet, SessionHello,
    TaskClass, TaskRunnerNumber, ToCoordinator,
};
use cohabit_client::Error;
use cohabit_types::{
    ApplicationAccess, ApplicationAnswer, ApplicationTopic, AttemptId, JobId, ObjectListing, RunnerRole,
    Share,
};
use tokio::net::UnixStream;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::{spawn_blocking, spawn_local};
use tokio::time::sleep;

use super::inspection::answer_questions;
use super::report::report_of;
use super::runner_jobs::{ActorRunner, RunnerJobs};
use super::survey::{SurveyResult, Surveys};
use super::{actor_listing, object_listing, task_listing};
use crate::registry::ActorRegistry;
use crate::start_entry::MainEntry;
use crate::store::{NodeStore, ROOM_PATIENCE, StoreEnded, StoreSettings};
use crate::transport::{
    FrameHandler, HelloCheck, HelloPurpose, LinkFailure, MemberHello, ReceivedFrames, SendBuffer, SessionEnd,
    SocketDirectory, accept_members, carry,
};

/// Pause before the head is asked again after an error that may pass.
const PAUSE: Duration = Duration::from_secs(1);

/// How long a process that was told to end has for it, before its job is cancelled.
const END_PATIENCE: Duration = Duration::from_secs(15);

/// How long more runners may be on their way than are wanted.
const SURPLUS_PATIENCE: Duration = Duration::from_secs(5);

/// The coordinator with its connections.
struct CoordinatorShell {
    own: AttemptId,
    state: RefCell<ShellState>,
    jobs: RunnerJobs,
    /// The objects of this node.
    store: NodeStore,
    /// Takes runners that are to be followed.
    follow: UnboundedSender<JobId>,
    /// Takes the exit code, or why it cannot go on.
    exit: UnboundedSender<Result<i32, String>>,
}

struct ShellState {
    core: Coordinator,
    sessions: BTreeMap<AttemptId, SessionEnd<FromCoordinator>>,
    /// Jobs that are, or were, followed.
    followed: BTreeSet<JobId>,
    surveys: Surveys,
}

/// Runs the application until it is over; returns its exit code.
///
/// # Errors
/// In words, if it cannot go on.
pub(super) async fn run(access: ApplicationAccess, entry: MainEntry) -> Result<i32, String> {
    let own = access.application;
    let check = HelloCheck { secret: access.credentials.secret, own };
    let cannot = |error: io::Error| format!("cannot listen for the application: {error}");
    let directory = SocketDirectory::open(&access.directory).map_err(cannot)?;
    let listener = directory.listen(own).map_err(cannot)?;
    let settings = store_settings(&access, entry);
    let store = spawn_blocking(move || NodeStore::start(&directory, check, settings)).await;
    let store = store.map_err(|error| error.to_string())?.map_err(cannot)?;
    let ceiling = entry.max_gpus.map(|most| Share(most.saturating_mul(Share::WHOLE.0)));
    let capacity = Share(access.gpus.saturating_mul(Share::WHOLE.0));
    let core = Coordinator::new(own, ceiling, Some(capacity));
    let (exit, mut exits) = unbounded_channel();
    let (follow, followed) = unbounded_channel();
    let shell = Rc::new(CoordinatorShell {
        own,
        state: RefCell::new(ShellState {
            core,
            sessions: BTreeMap::new(),
            followed: BTreeSet::new(),
            surveys: Surveys::default(),
        }),
        jobs: RunnerJobs::open(&access)?,
        store,
        follow,
        exit,
    });
    let accepting = Rc::clone(&shell);
    spawn_local(accept_members(listener, check, move |stream, buffer, hello| {
        spawn_local(Rc::clone(&accepting).serve(stream, buffer, hello));
    }));
    spawn_local(Rc::clone(&shell).pass_reports(followed));
    let inspected = Rc::clone(&shell);
    spawn_local(async move {
        answer_questions(&inspected.jobs, async |topic| inspected.inspect(topic).await).await
    });
    let main = shell.jobs.submit_main("main").await?;
    shell.follow_main(main);
    exits.recv().await.unwrap_or_else(|| Err("the coordinator has nothing to do".into()))
}

/// Objects are spilled to where the checkpoints of the root job would be, which is on a disk.
fn store_settings(access: &ApplicationAccess, entry: MainEntry) -> StoreSettings {
    let checkpoints = std::env::var_os("COHABIT_CHECKPOINT_DIR").map(PathBuf::from);
    StoreSettings {
        budget: entry.object_memory,
        spill_directory: checkpoints.unwrap_or_else(|| access.directory.clone()),
        patience: ROOM_PATIENCE,
    }
}

impl CoordinatorShell {
    /// Changes the core, and carries out what follows.
    fn change<R>(
        self: &Rc<CoordinatorShell>,
        change: impl FnOnce(&mut Coordinator, &mut Vec<CoordinatorEffect>) -> R,
    ) -> R {
        let mut effects = Vec::new();
        let mut state = self.state.borrow_mut();
        let result = change(&mut state.core, &mut effects);
        self.carry_out(&mut state, effects);
        result
    }

    fn carry_out(self: &Rc<CoordinatorShell>, state: &mut ShellState, effects: Vec<CoordinatorEffect>) {
        for effect in effects {
            match effect {
                CoordinatorEffect::Send { to, frame } => {
                    if let Some(session) = state.sessions.get_mut(&to) {
                        session.send(frame);
                    }
                }
                CoordinatorEffect::Submit { actor, kind, name, restarts, gpus, claims } => {
                    let kind = ActorRegistry::get().entry(kind).map_or("actor", |entry| entry.origin.name);
                    let name = name.unwrap_or_else(|| kind.to_owned());
                    let runner = ActorRunner { actor, name, restarts, gpus, claims };
                    spawn_local(Rc::clone(self).submit(runner));
                }
                CoordinatorEffect::SubmitTaskRunner { runner, class } => {
                    spawn_local(Rc::clone(self).submit_tasks(runner, class));
                }
                CoordinatorEffect::AwaitEnd { job } => {
                    let shell = Rc::clone(self);
                    spawn_local(async move {
                        sleep(END_PATIENCE).await;
                        shell.change(|core, effects| core.patience_over(job, effects));
                    });
                }
                CoordinatorEffect::AwaitSurplus { class } => {
                    let shell = Rc::clone(self);
                    spawn_local(async move {
                        sleep(SURPLUS_PATIENCE).await;
                        shell.change(|core, effects| core.surplus_over(&class, effects));
                    });
                }
                CoordinatorEffect::CancelRunner { job } => {
                    spawn_local(Rc::clone(self).cancel(job));
                }
                CoordinatorEffect::Described { member, request, description } => {
                    state.surveys.answered(member, request, *description);
                }
                CoordinatorEffect::Close { member } => {
                    state.surveys.ended(member);
                    if let Some(session) = state.sessions.remove(&member) {
                        session.close();
                    }
                }
                CoordinatorEffect::FreeObject { object } => self.store.free(object),
                CoordinatorEffect::ForgetMaker { maker, keep } => self.store.forget(maker, keep),
                CoordinatorEffect::Exit { code } => self.end(Ok(code)),
            }
        }
    }

    fn end(&self, end: Result<i32, String>) {
        // Only the first end counts.
        let _ended = self.exit.send(end);
    }

    async fn submit(self: Rc<CoordinatorShell>, runner: ActorRunner) {
        let actor = runner.actor;
        let result = self.jobs.submit_actor(runner).await;
        let job = result.as_ref().ok().copied();
        self.change(|core, effects| core.submitted(actor, result, effects));
        if let Some(job) = job {
            self.follow(job);
        }
    }

    async fn submit_tasks(self: Rc<CoordinatorShell>, runner: TaskRunnerNumber, class: TaskClass) {
        let result = self.jobs.submit_tasks(runner, &class).await;
        let job = result.as_ref().ok().copied();
        self.change(|core, effects| core.task_runner_submitted(runner, result, effects));
        if let Some(job) = job {
            self.follow(job);
        }
    }

    async fn cancel(self: Rc<CoordinatorShell>, job: JobId) {
        while let Err(error) = self.jobs.cancel(job).await {
            if matches!(error, Error::NotAllowed(_)) {
                return self.end(Err(format!("the head has ended the application: {error}")));
            }
            tracing::warn!(%job, %error, "cannot cancel a runner: tries again");
            sleep(PAUSE).await;
        }
    }

    /// A runner runs `main`.
    fn follow_main(self: &Rc<CoordinatorShell>, job: JobId) {
        self.change(|core, effects| core.main(job, effects));
        self.follow(job);
    }

    /// What a user sees of the application.
    async fn inspect(self: &Rc<CoordinatorShell>, topic: ApplicationTopic) -> ApplicationAnswer {
        match topic {
            ApplicationTopic::Actors => {
                let found = self.survey(MemberTopic::Calls).await;
                let application = self.state.borrow().core.describe();
                ApplicationAnswer::Actors(actor_listing::listing(application, found))
            }
            ApplicationTopic::Tasks => {
                let found = self.survey(MemberTopic::Tasks).await;
                let application = self.state.borrow().core.describe();
                ApplicationAnswer::Tasks(task_listing::listing(application, found))
            }
            ApplicationTopic::Objects => {
                let figures = self.store.figures().await;
                let application = self.state.borrow().core.describe();
                ApplicationAnswer::Objects(match figures {
                    Ok(figures) => object_listing::listing(self.own, figures, &application),
                    Err(StoreEnded) => ObjectListing { silent: vec![self.own], ..ObjectListing::default() },
                })
            }
        }
    }

    /// What all processes say of themselves.
    async fn survey(self: &Rc<CoordinatorShell>, topic: MemberTopic) -> SurveyResult {
        let request = self.state.borrow_mut().surveys.next();
        let asked = self.change(|core, effects| core.ask_members(request, topic, effects));
        let complete = self.state.borrow_mut().surveys.open(request, asked);
        complete.wait().await;
        self.state.borrow_mut().surveys.close(request)
    }

    /// From now on, what the head says of a runner is passed on.
    fn follow(&self, job: JobId) {
        if self.state.borrow_mut().followed.insert(job) {
            // The receiver goes with the shell.
            let _followed = self.follow.send(job);
        }
    }

    /// Passes on what the head says of runners.
    async fn pass_reports(self: Rc<CoordinatorShell>, mut jobs: UnboundedReceiver<JobId>) {
        let mut watcher = self.jobs.watch();
        loop {
            let changed = tokio::select! {
                job = jobs.recv() => match job {
                    Some(job) => {
                        watcher.add(job);
                        continue;
                    }
                    None => return,
                },
                changed = watcher.changes() => changed,
            };
            match changed {
                Ok(records) => records.iter().for_each(|record| {
                    let report = report_of(record);
                    self.change(|core, effects| core.report(record.id, report, effects));
                }),
                Err(error @ Error::NotAllowed(_)) => {
                    return self.end(Err(format!("the head has ended the application: {error}")));
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot follow the runners: tries again");
                    sleep(PAUSE).await;
                }
            }
        }
    }

    /// Carries the connection of a process.
    async fn serve(
        self: Rc<CoordinatorShell>,
        mut stream: UnixStream,
        buffer: BytesMut,
        MemberHello { purpose, hello, .. }: MemberHello,
    ) {
        let HelloPurpose::Coordinator(role) = purpose else {
            tracing::warn!(from = %hello.from, "takes the coordinator for an actor");
            return;
        };
        let sending = Arc::new(SendBuffer::default());
        match self.accept(&hello, &sending) {
            Ok(true) => {}
            Ok(false) => return,
            Err(failure) => return self.end(Err(failure.to_string())),
        }
        if role == RunnerRole::Main {
            self.follow_main(hello.from.job);
        }
        self.change(|core, effects| core.connected(hello.from, effects));
        let connection = MemberConnection { shell: Rc::clone(&self), member: hello.from, link: hello.link };
        let failure = carry(&mut stream, buffer, &sending, &connection).await;
        if let Some(session) = self.state.borrow_mut().sessions.get_mut(&hello.from) {
            session.closed(hello.link);
        }
        if let LinkFailure::Protocol(text) = failure {
            self.end(Err(text));
        }
    }

    /// Whether the process lives and its connection is the latest one.
    fn accept(&self, hello: &SessionHello, sending: &Arc<SendBuffer>) -> Result<bool, LinkFailure> {
        let mut state = self.state.borrow_mut();
        if !state.core.admits(hello.from) {
            return Ok(false);
        }
        let session = state.sessions.entry(hello.from);
        let session = session.or_insert_with(|| SessionEnd::new(self.own, hello.from));
        Ok(session.accept(hello, sending)?)
    }
}

/// One connection of a process.
struct MemberConnection {
    shell: Rc<CoordinatorShell>,
    member: AttemptId,
    link: LinkNumber,
}

impl FrameHandler for MemberConnection {
    fn deliver(&self, frames: &mut ReceivedFrames<'_>) -> Result<(), LinkFailure> {
        let mut state = self.shell.state.borrow_mut();
        let mut effects = Vec::new();
        loop {
            let state = &mut *state;
            let session = state.sessions.get_mut(&self.member).ok_or(LinkFailure::Closed)?;
            let Some(packet) = frames.take::<Packet<ToCoordinator>>()? else { break };
            if let Some(frame) = session.receive(self.link, packet)? {
                state.core.received(self.member, frame, &mut effects);
                self.shell.carry_out(state, std::mem::take(&mut effects));
            }
        }
        if let Some(session) = state.sessions.get(&self.member) {
            session.wake();
        }
        Ok(())
    }

    fn acknowledge(&self) {
        if let Some(session) = self.shell.state.borrow_mut().sessions.get_mut(&self.member) {
            session.acknowledge(self.link);
        }
    }
}
