//! Shared by the tests: an event log that all actors of a test write to, and an actor that does what it is
//! asked.

use crate::restart_policy::RestartPolicy;
use crate::{Actor, ActorFailure, ActorSystem, Address, ChildSpec, Context, ReplyTo};
use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Longer than anything in a test takes.
pub(super) const LONG: Duration = Duration::from_secs(3600);

pub(super) fn ms(span: u64) -> Duration {
    Duration::from_millis(span)
}

/// What happened, in order, with the milliseconds since the log was created.
#[derive(Clone)]
pub(super) struct EventLog {
    created: Instant,
    entries: Arc<Mutex<Vec<(u64, String)>>>,
}

impl EventLog {
    pub(super) fn new() -> Self {
        Self { created: Instant::now(), entries: Arc::default() }
    }

    pub(super) fn write(&self, entry: impl Into<String>) {
        let at = u64::try_from(self.created.elapsed().as_millis()).unwrap();
        self.entries.lock().unwrap().push((at, entry.into()));
    }

    /// The entries since the last call of this or of `times`.
    pub(super) fn read(&self) -> Vec<String> {
        self.entries.lock().unwrap().drain(..).map(|(_, entry)| entry).collect()
    }

    /// When each entry since the last call was written.
    pub(super) fn times(&self) -> Vec<u64> {
        self.entries.lock().unwrap().drain(..).map(|(at, _)| at).collect()
    }
}

/// Does what its messages ask for and writes to the log.
pub(super) struct TestActor {
    pub(super) name: &'static str,
    pub(super) log: EventLog,
}

pub(super) enum TestMessage {
    Write(&'static str),
    /// Logs, takes this long, and logs again.
    Work(Duration),
    /// Takes until the shutdown signal.
    WorkUntilShutdown,
    Fail,
    Panic,
    Hang,
    /// Panics in a side task of the actor.
    PanicInTask,
    SendAfter(Duration, &'static str),
    SendEvery(Duration, &'static str),
    /// Sleeps in a side task, whose result the actor logs.
    Pipe(Duration, &'static str),
    Name(ReplyTo<&'static str>),
    DropReply(ReplyTo<&'static str>),
    SpawnChild(&'static str, ReplyTo<Address<TestMessage>>),
    /// Stops itself.
    Stop,
}

impl TestActor {
    fn write(&self, what: &str) {
        self.log.write(format!("{} {what}", self.name));
    }

    fn child(&self, name: &'static str) -> impl FnMut() -> Self + Send + 'static {
        let log = self.log.clone();
        move || Self { name, log: log.clone() }
    }

    async fn act(&self, message: TestMessage, context: &mut Context<Self>) -> Result<(), ActorFailure> {
        match message {
            TestMessage::Write(what) => self.write(what),
            TestMessage::Work(span) => self.work(sleep(span)).await,
            TestMessage::WorkUntilShutdown => self.work(context.shutdown().requested()).await,
            TestMessage::Fail => return Err(ActorFailure::from_message("the disk failed")),
            TestMessage::Panic => panic!("out of memory"),
            TestMessage::Hang => pending().await,
            TestMessage::PanicInTask => context.spawn_task(async { panic!("the task broke") }),
            TestMessage::SendAfter(span, what) => drop(context.send_after(span, TestMessage::Write(what))),
            TestMessage::SendEvery(span, what) => context.send_every(span, move || TestMessage::Write(what)),
            TestMessage::Pipe(span, what) => {
                let slept = async move {
                    sleep(span).await;
                    what
                };
                context.pipe_to_self(slept, TestMessage::Write);
            }
            TestMessage::Name(reply_to) => reply_to.send(self.name),
            TestMessage::DropReply(reply_to) => drop(reply_to),
            TestMessage::SpawnChild(name, reply_to) => {
                reply_to.send(context.spawn(not_restarted(name), self.child(name)))
            }
            TestMessage::Stop => context.stop(),
        }
        Ok(())
    }

    async fn work(&self, work: impl Future<Output = ()>) {
        self.write("begins");
        work.await;
        self.write("ends");
    }
}

impl Actor for TestActor {
    type Message = TestMessage;

    async fn handle(
        &mut self,
        message: TestMessage,
        context: &mut Context<Self>,
    ) -> Result<(), ActorFailure> {
        self.act(message, context).await
    }

    async fn started(&mut self, _: &mut Context<Self>) -> Result<(), ActorFailure> {
        self.write("started");
        Ok(())
    }

    async fn stopped(&mut self) {
        self.write("stopped");
    }
}

/// A child whose first failure ends the system.
pub(super) fn not_restarted(name: &str) -> ChildSpec {
    let restart = RestartPolicy { limit: 0, ..RestartPolicy::default() };
    ChildSpec { restart, ..ChildSpec::new(name, 16) }
}

/// A test actor of that spec at the top level.
pub(super) fn spawn_test_actor(
    system: &ActorSystem,
    log: &EventLog,
    name: &'static str,
    spec: ChildSpec,
) -> Address<TestMessage> {
    let log = log.clone();
    system.spawn(spec, move || TestActor { name, log: log.clone() })
}

/// Sends all messages, in order.
pub(super) async fn tell_all(
    address: &Address<TestMessage>,
    messages: impl IntoIterator<Item = TestMessage>,
) {
    for message in messages {
        address.tell(message).await.unwrap();
    }
}

/// Lets all tasks run until they wait for a timer.
pub(super) async fn settle() {
    sleep(ms(1)).await;
}
