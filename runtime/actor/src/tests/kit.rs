//! The scenario words: a diary that all actors of a test write into, and a scribe that does as it is told.

use crate::{Actor, ActorFailure, Address, ChildSpec, Context, ReplyTo, RestartPolicy, Supervisor};
use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The time in which nothing of a test is left to do.
pub(super) const LONG: Duration = Duration::from_secs(3600);

pub(super) fn ms(span: u64) -> Duration {
    Duration::from_millis(span)
}

/// What happened, in order, with the milliseconds since the diary was begun.
#[derive(Clone)]
pub(super) struct Diary {
    begun: Instant,
    entries: Arc<Mutex<Vec<(u64, String)>>>,
}

impl Diary {
    pub(super) fn begin() -> Self {
        Self { begun: Instant::now(), entries: Arc::default() }
    }

    pub(super) fn write(&self, entry: impl Into<String>) {
        let at = u64::try_from(self.begun.elapsed().as_millis()).unwrap();
        self.entries.lock().unwrap().push((at, entry.into()));
    }

    /// The entries since the last look.
    pub(super) fn read(&self) -> Vec<String> {
        self.entries.lock().unwrap().drain(..).map(|(_, entry)| entry).collect()
    }

    /// When each entry was written, since the last look.
    pub(super) fn times(&self) -> Vec<u64> {
        self.entries.lock().unwrap().drain(..).map(|(at, _)| at).collect()
    }
}

/// Does as it is told, and writes into the diary.
pub(super) struct Scribe {
    pub(super) name: &'static str,
    pub(super) diary: Diary,
}

pub(super) enum Say {
    Write(&'static str),
    /// Writes, works for so long, and writes again.
    Work(Duration),
    /// Works until the shutdown signal.
    WorkUntilShutdown,
    Fail,
    Panic,
    Hang,
    /// Panics in a task beside the actor.
    PanicAlongside,
    Remind(Duration, &'static str),
    Tick(Duration, &'static str),
    Name(ReplyTo<&'static str>),
    Forget(ReplyTo<&'static str>),
    Hire(&'static str, ReplyTo<Address<Say>>),
    /// Stops itself.
    Stop,
}

impl Scribe {
    fn write(&self, what: &str) {
        self.diary.write(format!("{} {what}", self.name));
    }

    fn child(&self, name: &'static str) -> impl FnMut() -> Self + Send + 'static {
        let diary = self.diary.clone();
        move || Self { name, diary: diary.clone() }
    }

    async fn act(&self, message: Say, context: &mut Context<Self>) -> Result<(), ActorFailure> {
        match message {
            Say::Write(what) => self.write(what),
            Say::Work(span) => self.work(sleep(span)).await,
            Say::WorkUntilShutdown => self.work(context.shutdown().requested()).await,
            Say::Fail => return Err(ActorFailure::from_message("the pen broke")),
            Say::Panic => panic!("out of ink"),
            Say::Hang => pending().await,
            Say::PanicAlongside => drop(context.spawn_task(async { panic!("the table fell") })),
            Say::Remind(span, what) => drop(context.send_after(span, Say::Write(what))),
            Say::Tick(span, what) => drop(context.send_every(span, move || Say::Write(what))),
            Say::Name(reply_to) => reply_to.send(self.name),
            Say::Forget(reply_to) => drop(reply_to),
            Say::Hire(name, reply_to) => reply_to.send(context.spawn(never(name), self.child(name))),
            Say::Stop => context.stop(),
        }
        Ok(())
    }

    async fn work(&self, work: impl Future<Output = ()>) {
        self.write("begins");
        work.await;
        self.write("ends");
    }
}

impl Actor for Scribe {
    type Message = Say;

    async fn handle(&mut self, message: Say, context: &mut Context<Self>) -> Result<(), ActorFailure> {
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

/// A child that is never restarted.
pub(super) fn never(name: &str) -> ChildSpec {
    ChildSpec::new(name, 16).restart(RestartPolicy::NEVER)
}

/// A scribe of that spec under the supervisor.
pub(super) fn hire(under: &Supervisor, diary: &Diary, name: &'static str, spec: ChildSpec) -> Address<Say> {
    let diary = diary.clone();
    under.spawn(spec, move || Scribe { name, diary: diary.clone() })
}

/// Tells all, in order.
pub(super) async fn tell_all(address: &Address<Say>, messages: impl IntoIterator<Item = Say>) {
    for message in messages {
        address.tell(message).await.unwrap();
    }
}

/// Lets all tasks run until they wait for time to pass.
pub(super) async fn settle() {
    sleep(ms(1)).await;
}
