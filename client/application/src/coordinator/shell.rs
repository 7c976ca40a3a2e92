//! Drives the core of the coordinator: connections of processes, jobs of the head.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use cohabit_application_core::{
    ActorId, Coordinator, CoordinatorEffect, CoordinatorNode, FromCoordinator, FromStore, GangSpec,
    LinkNumber, MemberDescription, MemberTopic, NodeNumber, Packet, SessionHello, StoreFigures, TaskClass,
    TaskRunnerNumber, ToCoordinator,
};
use cohabit_client::Error;
use cohabit_net::ApplicationTls;
use cohabit_types::{
    ApplicationAccess, ApplicationAnswer, ApplicationTopic, JobId, ObjectListing, RankId, RunnerRole, Share,
    Span,
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::{spawn_blocking, spawn_local};
use tokio::time::{Instant, sleep};

use super::application_jobs::ApplicationJobs;
use super::inspection::answer_questions;
use super::survey::{MemberAnswers, Surveys};
use super::{actor_listing, object_listing, task_listing};
use crate::start_entry::MainEntry;
use crate::store::{
    NodeAddresses, NodeStore, StoreEnded, StoreOutlets, StoreSettings, admit_store, connect_stores,
};
use crate::transport::{
    FrameHandler, HelloCheck, HelloPurpose, LinkFailure, MemberHello, MemberStream, NetworkAdmission,
    NetworkPort, ReceivedFrames, SendBuffer, SessionEnd, SocketDirectory, accept_members, carry,
};

/// Pause before the head is asked again after an error that may pass.
const PAUSE: Duration = Duration::from_secs(1);

/// How long a process that was told to end has for it, before its job is cancelled.
const END_PATIENCE: Duration = Duration::from_secs(15);

/// How long the store of a further node may be without a connection. Before, its connection broke when it had
/// not answered for 4 s.
const SILENCE: Duration = Duration::from_secs(6);

/// How long processes have to end when the application is over, before the head ends them.
const CLOSING_PATIENCE: Duration = Duration::from_secs(5);

/// How long more runners may be on their way than are wanted.
const SURPLUS_PATIENCE: Duration = Duration::from_secs(5);

/// How long the objects of a store that is started again are waited for.
const STORE_PATIENCE: Duration = Duration::from_secs(15);

/// Pause between two runners of tasks that end since others wait for what they hold.
const YIELD_PAUSE: Duration = Duration::from_secs(2);

/// The coordinator with its connections.
struct CoordinatorShell {
    own: RankId,
    state: RefCell<ShellState>,
    jobs: ApplicationJobs,
    /// The objects of this node.
    store: NodeStore,
    /// Where its store finds those of others.
    addresses: NodeAddresses,
    /// Takes runners that are to be followed.
    follow: UnboundedSender<JobId>,
    /// Takes the exit code, or why it cannot go on.
    exit: UnboundedSender<Result<i32, String>>,
}

struct ShellState {
    core: Coordinator,
    sessions: BTreeMap<RankId, SessionEnd<FromCoordinator>>,
    /// Jobs that are, or were, followed.
    followed: BTreeSet<JobId>,
    surveys: Surveys<RankId, MemberDescription>,
    store_surveys: Surveys<NodeNumber, StoreFigures>,
    /// The last process of the store of each further node that has connected, by the name of the node.
    stores: BTreeMap<String, RankId>,
    /// Since when nothing is heard of further nodes, by their names.
    silent_nodes: BTreeMap<String, Instant>,
}

/// Runs the application until it is over; returns its exit code.
///
/// # Errors
/// In words, if it cannot go on.
pub(super) async fn run(
    access: ApplicationAccess,
    entry: MainEntry,
    jobs: ApplicationJobs,
) -> Result<i32, String> {
    let own = access.coordinator_process();
    let check = HelloCheck { secret: access.credentials.secret, own };
    let cannot = |error: io::Error| format!("cannot listen for the application: {error}");
    let directory = SocketDirectory::open(&access.directory).map_err(cannot)?;
    let listener = directory.listen(own).map_err(cannot)?;
    let port = NetworkPort::open(&access).map_err(|error| error.to_string())?;
    let settings = StoreSettings::of(&access, entry.object_memory);
    let (told, words) = unbounded_channel();
    let addresses = NodeAddresses::default();
    let (tls, known) = (ApplicationTls::new(&check.secret), addresses.clone());
    let connector = connect_stores(&access, &tls, move |node| known.of(node));
    let outlets = StoreOutlets { told, connector };
    let store = spawn_blocking(move || NodeStore::start(&directory, check, settings, outlets)).await;
    let store = store.map_err(|error| error.to_string())?.map_err(cannot)?;
    let ceiling = entry.max_gpus.map(|most| Share(most.saturating_mul(Share::WHOLE.0)));
    let capacity = Share(access.gpus.saturating_mul(Share::WHOLE.0));
    let node = CoordinatorNode { name: access.node.clone(), at: access.port.clone() };
    let core = Coordinator::new(own, node, ceiling, Some(capacity));
    let (exit, mut exits) = unbounded_channel();
    let (follow, followed) = unbounded_channel();
    let shell = Rc::new(CoordinatorShell {
        own,
        state: RefCell::new(ShellState {
            core,
            sessions: BTreeMap::new(),
            followed: BTreeSet::new(),
            surveys: Surveys::default(),
            store_surveys: Surveys::default(),
            stores: BTreeMap::new(),
            silent_nodes: BTreeMap::new(),
        }),
        jobs,
        store,
        addresses,
        follow,
        exit,
    });
    let accepting = Rc::clone(&shell);
    spawn_local(accept_members(listener, check, move |stream, buffer, hello| {
        spawn_local(Rc::clone(&accepting).serve(stream.into(), buffer, hello));
    }));
    if let Some(port) = port {
        spawn_local(Rc::clone(&shell).serve_network(port, NetworkAdmission::new(tls, check)));
    }
    spawn_local(Rc::clone(&shell).pass_reports(followed));
    spawn_local(Rc::clone(&shell).hear_store(words));
    let inspected = Rc::clone(&shell);
    spawn_local(async move {
        answer_questions(&inspected.jobs, async |topic| inspected.inspect(topic).await).await
    });
    let main = shell.jobs.submit_main("main").await?;
    shell.follow_main(main);
    exits.recv().await.unwrap_or_else(|| Err("the coordinator has nothing to do".into()))
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
                    if let FromCoordinator::NodeAt { node, at } = &frame {
                        self.addresses.know(*node, at.clone());
                    }
                    if let Some(session) = state.sessions.get_mut(&to) {
                        session.send(frame);
                    }
                }
                CoordinatorEffect::Submit { first, gang } => {
                    spawn_local(Rc::clone(self).submit(first, gang));
                }
                CoordinatorEffect::SubmitTaskRunner { runner, class } => {
                    spawn_local(Rc::clone(self).submit_tasks(runner, class));
                }
                CoordinatorEffect::AwaitEnd { job } => {
                    self.change_after(END_PATIENCE, move |core, more| core.patience_over(job, more));
                }
                CoordinatorEffect::AwaitSurplus { class } => {
                    self.change_after(SURPLUS_PATIENCE, move |core, more| core.surplus_over(&class, more));
                }
                CoordinatorEffect::AwaitStore { node, restarts } => {
                    let overdue = move |core: &mut Coordinator, more: &mut Vec<CoordinatorEffect>| {
                        core.store_overdue(node, restarts, more);
                    };
                    self.change_after(STORE_PATIENCE, overdue);
                }
                CoordinatorEffect::AwaitYield => self.change_after(YIELD_PAUSE, Coordinator::yield_due),
                CoordinatorEffect::AwaitClosing { closing } => {
                    self.change_after(CLOSING_PATIENCE, move |core, more| core.closing_over(closing, more));
                }
                CoordinatorEffect::CancelRunner { job } => {
                    spawn_local(Rc::clone(self).cancel(job));
                }
                CoordinatorEffect::Described { member, request, description } => {
                    state.surveys.answered(member, request, *description);
                }
                CoordinatorEffect::Close { member } => {
                    state.surveys.ended(&member);
                    if let Some(session) = state.sessions.remove(&member) {
                        session.close();
                    }
                }
                CoordinatorEffect::OwnStore(word) => self.store.obey(word),
                CoordinatorEffect::SubmitStore { node, name } => {
                    spawn_local(Rc::clone(self).submit_store(node, name));
                }
                CoordinatorEffect::StoreTold { node, request, figures } => {
                    state.store_surveys.answered(node, request, figures);
                }
                CoordinatorEffect::Exit { code } => self.end(Ok(code)),
            }
        }
    }

    fn change_after(
        self: &Rc<CoordinatorShell>,
        pause: Duration,
        change: impl FnOnce(&mut Coordinator, &mut Vec<CoordinatorEffect>) + 'static,
    ) {
        let shell = Rc::clone(self);
        spawn_local(async move {
            sleep(pause).await;
            shell.change(change);
        });
    }

    /// Answers the store of this node.
    async fn hear_store(self: Rc<CoordinatorShell>, mut words: UnboundedReceiver<FromStore>) {
        while let Some(word) = words.recv().await {
            self.change(|core, effects| core.received_from_own_store(word, effects));
        }
    }

    fn end(&self, end: Result<i32, String>) {
        // Only the first end counts.
        let _ended = self.exit.send(end);
    }

    async fn submit(self: Rc<CoordinatorShell>, first: ActorId, gang: GangSpec) {
        let result = self.jobs.submit_gang(first, &gang).await;
        let job = result.as_ref().ok().copied();
        self.change(|core, effects| core.submitted(first, result, effects));
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

    async fn submit_store(self: Rc<CoordinatorShell>, node: NodeNumber, name: String) {
        let result = self.jobs.submit_store(node, name).await;
        let job = result.as_ref().ok().copied();
        self.change(|core, effects| core.store_submitted(node, result, effects));
        if let Some(job) = job {
            self.follow(job);
        }
    }

    /// A store of a further node has lost a connection: if it does not open the next one, its node is lost.
    async fn listen_for(self: Rc<CoordinatorShell>, store: RankId, link: LinkNumber) {
        let since = Instant::now();
        sleep(SILENCE).await;
        let is_silent = {
            let state = self.state.borrow();
            state.sessions.get(&store).is_some_and(|session| session.last_link() == link)
        };
        if is_silent {
            self.state.borrow_mut().node_silent(store, since);
            tracing::warn!(%store, "nothing is heard of the store of a further node any more");
            self.change(|core, effects| core.member_silent(store, effects));
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
                let state = self.state.borrow();
                let silent = state.silent_nodes.iter();
                let silent =
                    silent.map(|(name, since)| (name.clone(), Span::from(since.elapsed()))).collect();
                ApplicationAnswer::Actors(actor_listing::listing(state.core.describe(), found, &silent))
            }
            ApplicationTopic::Tasks => {
                let found = self.survey(MemberTopic::Tasks).await;
                let application = self.state.borrow().core.describe();
                ApplicationAnswer::Tasks(task_listing::listing(application, found))
            }
            ApplicationTopic::Objects => ApplicationAnswer::Objects(self.list_objects().await),
        }
    }

    /// What all stores have.
    async fn list_objects(self: &Rc<CoordinatorShell>) -> ObjectListing {
        let request = self.state.borrow_mut().store_surveys.next();
        let asked = self.change(|core, effects| core.ask_stores(request, effects));
        let complete = self.state.borrow_mut().store_surveys.open(request, asked);
        let (own, ()) = tokio::join!(self.store.figures(), complete.wait());
        let mut state = self.state.borrow_mut();
        let mut found = state.store_surveys.close(request);
        match own {
            Ok(figures) => found.answers.push((NodeNumber::COORDINATOR, figures)),
            Err(StoreEnded) => found.silent.push(NodeNumber::COORDINATOR),
        }
        object_listing::listing(found, (self.own, &state.stores), &state.core.describe())
    }

    /// What all processes say of themselves.
    async fn survey(self: &Rc<CoordinatorShell>, topic: MemberTopic) -> MemberAnswers {
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
                changed = watcher.next() => changed,
            };
            match changed {
                Ok(reports) => reports.into_iter().for_each(|(job, report)| {
                    self.change(|core, effects| core.report(job, report, effects));
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

    /// Takes connections from other nodes for ever.
    async fn serve_network(self: Rc<CoordinatorShell>, port: NetworkPort, admission: NetworkAdmission) {
        let (admission, shell) = (Arc::new(admission), Rc::clone(&self));
        let of_stores = Arc::clone(&admission);
        let objects = move |stranger| shell.store.serve_network(admit_store(&of_stores, stranger));
        let members = move |stranger| {
            let (shell, admission) = (Rc::clone(&self), Arc::clone(&admission));
            spawn_local(async move {
                if let Some((stream, buffer, hello)) = admission.admit(stranger).await {
                    shell.serve(stream.into(), buffer, hello).await;
                }
            });
        };
        port.serve(members, objects).await;
    }

    /// Carries the connection of a process.
    async fn serve(
        self: Rc<CoordinatorShell>,
        mut stream: MemberStream,
        buffer: BytesMut,
        MemberHello { purpose, hello, .. }: MemberHello,
    ) {
        let HelloPurpose::Coordinator { role, node } = purpose else {
            tracing::warn!(from = %hello.from, "takes the coordinator for an actor");
            return;
        };
        let sending = Arc::new(SendBuffer::default());
        match self.accept(&hello, &sending) {
            Ok(true) => {}
            Ok(false) => return,
            Err(failure) => return self.end(Err(failure.to_string())),
        }
        self.state.borrow_mut().silent_nodes.remove(&node);
        match role {
            RunnerRole::Main => self.follow_main(hello.from.job()),
            RunnerRole::Store => {
                self.state.borrow_mut().stores.insert(node.clone(), hello.from);
            }
            RunnerRole::Actor | RunnerRole::Tasks => {}
        }
        self.change(|core, effects| core.connected(hello.from, &node, effects));
        let connection = MemberConnection { shell: Rc::clone(&self), member: hello.from, link: hello.link };
        let failure = carry(&mut stream, buffer, &sending, &connection).await;
        if let Some(session) = self.state.borrow_mut().sessions.get_mut(&hello.from) {
            session.closed(hello.link);
        }
        if role == RunnerRole::Store {
            spawn_local(Rc::clone(&self).listen_for(hello.from, hello.link));
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

impl ShellState {
    /// Nothing is heard of the node of this store any more.
    fn node_silent(&mut self, store: RankId, since: Instant) {
        if let Some((name, _)) = self.stores.iter().find(|(_, it)| **it == store) {
            self.silent_nodes.insert(name.clone(), since);
        }
    }
}

/// One connection of a process.
struct MemberConnection {
    shell: Rc<CoordinatorShell>,
    member: RankId,
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
