//! The actors of the tests.

use std::cell::{Cell, RefCell};
use std::fs::{File, write};
use std::future::pending;
use std::path::PathBuf;
use std::rc::Rc;

use cohabit::{Context, Result};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::{Deserialize, Deserializer, Serialize};
use tokio::sync::Barrier;

/// Ends this process as a crash would.
pub(crate) fn die() -> ! {
    let _killed = kill(Pid::this(), Signal::SIGKILL);
    loop {
        std::thread::park();
    }
}

/// Counts.
pub(crate) struct Counter {
    total: i64,
}

#[cohabit::actor(restarts = 3)]
impl Counter {
    pub(crate) fn new(start: i64) -> Self {
        Counter { total: start }
    }

    pub(crate) async fn add(&mut self, by: i64) -> Result<i64> {
        self.total = self.total.checked_add(by).ok_or("the total is too large")?;
        Ok(self.total)
    }

    pub(crate) fn total(&self) -> i64 {
        self.total
    }

    pub(crate) fn incarnation(&self, context: &Context) -> u32 {
        context.incarnation()
    }

    pub(crate) async fn add_and_die(&mut self, by: i64) -> i64 {
        self.total += by;
        die()
    }

    /// Dies when this file is not there yet, and makes it before.
    #[retry]
    pub(crate) fn add_and_die_once(&mut self, by: i64, mark: PathBuf) -> Result<i64> {
        if !mark.exists() {
            write(&mark, "was here")?;
            die();
        }
        self.total += by;
        Ok(self.total)
    }

    pub(crate) fn panic(&mut self) {
        self.total = -1;
        panic!("out of {}", "order");
    }

    pub(crate) fn restarts_of_another(&self, other: CounterHandle) -> CounterHandle {
        other
    }

    pub(crate) fn echo(&self, text: String) -> String {
        text
    }

    pub(crate) fn open_missing(&self, path: String) -> Result<u64, anyhow::Error> {
        let file = File::open(&path).map_err(|error| anyhow::Error::new(error).context("no weights"))?;
        Ok(file.metadata()?.len())
    }
}

/// Keeps what it is given, in order.
pub(crate) struct List {
    items: Vec<u64>,
}

#[cohabit::actor]
impl List {
    pub(crate) fn new() -> Self {
        List { items: Vec::new() }
    }

    pub(crate) fn append(&mut self, item: u64) -> usize {
        self.items.push(item);
        self.items.len()
    }

    pub(crate) fn all(&self) -> Vec<u64> {
        self.items.clone()
    }
}

/// Its readers meet.
pub(crate) struct Meeting {
    barrier: Barrier,
    log: RefCell<String>,
}

#[cohabit::actor]
impl Meeting {
    pub(crate) fn new(readers: usize) -> Self {
        Meeting { barrier: Barrier::new(readers), log: RefCell::default() }
    }

    /// Waits until so many readers are here.
    pub(crate) async fn read(&self) {
        self.barrier.wait().await;
        self.log.borrow_mut().push('r');
    }

    pub(crate) async fn write(&mut self) {
        self.log.get_mut().push('w');
    }

    pub(crate) fn log(&self) -> String {
        self.log.borrow().clone()
    }
}

/// Waits, and knows whether it was interrupted.
pub(crate) struct Sleeper {
    begun: Cell<u32>,
    interrupted: Rc<Cell<u32>>,
}

struct CountsDrop(Rc<Cell<u32>>);

impl Drop for CountsDrop {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

#[cohabit::actor(concurrency = 4)]
impl Sleeper {
    pub(crate) fn new() -> Self {
        Sleeper { begun: Cell::new(0), interrupted: Rc::default() }
    }

    /// For ever.
    pub(crate) async fn sleep(&self) {
        self.begun.set(self.begun.get() + 1);
        let _counts = CountsDrop(Rc::clone(&self.interrupted));
        pending().await
    }

    pub(crate) fn begun(&self) -> u32 {
        self.begun.get()
    }

    /// Alone, so that those who were told to end have ended.
    pub(crate) fn interrupted(&mut self) -> u32 {
        self.interrupted.get()
    }
}

/// Cannot be constructed.
pub(crate) struct Broken;

#[cohabit::actor]
impl Broken {
    pub(crate) async fn new(why: String) -> Result<Self> {
        Err(anyhow::anyhow!("{why}").context("no device"))?
    }

    pub(crate) fn nothing(&self) {}
}

/// Has handles of others.
pub(crate) struct Keeper {
    kept: Option<CounterHandle>,
}

#[cohabit::actor]
impl Keeper {
    pub(crate) fn new(kept: Option<CounterHandle>) -> Self {
        Keeper { kept }
    }

    pub(crate) fn keep(&mut self, counter: CounterHandle) {
        self.kept = Some(counter);
    }

    pub(crate) fn give(&mut self) -> Option<CounterHandle> {
        self.kept.take()
    }

    pub(crate) async fn add(&self, by: i64) -> Result<i64> {
        let counter = self.kept.clone().ok_or("nothing is kept")?;
        counter.add(by).await
    }

    pub(crate) async fn make(&self, start: i64) -> Result<CounterHandle> {
        Counter::remote(start).start().await
    }

    pub(crate) async fn add_to(&self, name: String, by: i64) -> Result<i64> {
        Counter::named(&name).await?.add(by).await
    }
}

/// Saves its work when it is told to end.
pub(crate) struct Saver {
    steps: u64,
}

#[cohabit::actor]
impl Saver {
    pub(crate) fn new(context: &Context) -> Result<Self> {
        let saved = context.checkpoint_folder().join("steps");
        let steps = if saved.exists() { std::fs::read_to_string(saved)?.parse()? } else { 0 };
        Ok(Saver { steps })
    }

    pub(crate) fn step(&mut self) -> u64 {
        self.steps += 1;
        self.steps
    }

    pub(crate) async fn stopping(&mut self, context: &Context) -> Result<()> {
        Ok(write(context.checkpoint_folder().join("steps"), self.steps.to_string())?)
    }
}

/// A value whose two halves do not fit.
#[derive(Debug, Serialize)]
pub(crate) struct Lopsided(pub(crate) u64);

impl<'de> Deserialize<'de> for Lopsided {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Lopsided).map_err(serde::de::Error::custom)
    }
}

/// Talks in values that do not decode.
pub(crate) struct Mumbler;

#[cohabit::actor]
impl Mumbler {
    pub(crate) fn new() -> Self {
        Mumbler
    }

    pub(crate) fn hear(&self, _said: Lopsided) {}

    pub(crate) fn say(&self) -> Lopsided {
        Lopsided(5)
    }

    pub(crate) fn well(&self) -> String {
        "well".to_owned()
    }
}
