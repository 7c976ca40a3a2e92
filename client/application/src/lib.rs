//! Applications of Cohabit: programs whose actors run in processes of a cluster.
//!
//! ```no_run
//! struct Counter {
//!     total: i64,
//! }
//!
//! #[cohabit::actor(restarts = 3)]
//! impl Counter {
//!     fn new(start: i64) -> Self {
//!         Counter { total: start }
//!     }
//!
//!     async fn add(&mut self, by: i64) -> cohabit::Result<i64> {
//!         self.total = self.total.checked_add(by).ok_or("the total is too large")?;
//!         Ok(self.total)
//!     }
//!
//!     fn total(&self) -> i64 {
//!         self.total
//!     }
//! }
//!
//! #[cohabit::main(name = "count")]
//! async fn main() -> cohabit::Result<()> {
//!     let counter = Counter::remote(5).start().await?;
//!     println!("{}", counter.add(2).await?);
//!     Ok(())
//! }
//! ```
//!
//! Started by hand, the program is its *launcher*: it stores itself at the head that `COHABIT_HEAD` names and
//! submits the application, a job. The cluster runs the same file again, as the *coordinator*, as the process
//! of `main`, and as one process for each actor, which has the share of a GPU that the actor claims. The
//! launcher shows what `main` prints and exits with its code. A second launch of the same file while the
//! application lives joins it; another build of it is refused.
//!
//! # Actors
//!
//! [`actor`] makes a type an actor: `Counter::remote(...)` describes one with the arguments of `new`, and
//! [`ActorBuilder::start`] creates it. Its handle, `CounterHandle`, has a method for each method of the impl
//! block; a [`Call`] is a future of the value. Handles can be cloned, and sent in arguments and values. When
//! the last one is dropped, the actor ends; one that is [detached](ActorBuilder::detached) lives until it is
//! stopped.
//!
//! - Each call of one process starts exactly once, in the order in which the process made its calls, as long
//!   as the process of the actor lives, whatever happens to connections.
//! - `&self` methods run beside each other, `&mut self` methods alone; both start in order of arrival.
//! - If the process of the actor ends, it is started and constructed again, `restarts` times. Calls that it
//!   had got fail with [`Error::Restarted`], unless the method is marked `#[retry]`: then they are sent
//!   again, before later ones. Calls that it had not got wait.
//! - A method that panics fails its call, and the actor is constructed again in its process.
//! - Each process has one thread for its methods and connections. A method that computes for long delays
//!   what else its process does; `tokio::task::spawn_blocking` gives it another thread.
//!
//! # Where to start reading
//!
//! ```text
//! start        which process this is      launcher     the program started by hand
//! coordinator  the root job               runner       main, or one actor (actor_host)
//! process      a process's state and connections       transport    sockets, frames
//! handle, call, builder                   what users hold; values: their bytes
//! instance, registry                      what the attributes write
//! ```
//!
//! The rules are those of `cohabit-application-core`; this crate carries its effects out.
#![warn(missing_docs)]

mod actor_host;
mod builder;
mod call;
mod context;
mod coordinator;
mod error;
mod handle;
mod instance;
mod launcher;
mod options;
mod process;
mod registry;
mod runner;
mod start;
mod start_entry;
mod terminal;
mod transport;
mod values;

pub use builder::ActorBuilder;
pub use call::Call;
/// Makes a type an actor: its methods can be called from every process of the application.
///
/// It stands before an impl block of a type without generics, and says what the actor's process claims. All
/// of it can be left out, and changed for one actor with [`ActorBuilder`]:
///
/// | Key | Meaning | Default |
/// |---|---|---|
/// | `gpus = 0.25` | a share of a GPU, or whole ones | none |
/// | `gpu_memory = "8G"` | memory on each GPU | not limited |
/// | `cpus = 1` | processor cores | none claimed |
/// | `memory = "2G"` | host memory | none claimed |
/// | `restarts = 3` | how often its process is started again | 0 |
/// | `concurrency = 16` | how many `&self` methods run beside each other | 16 |
/// | `enforced` | shares a GPU only where limits are enforced | |
/// | `exclusive` | nobody else joins its GPU | |
///
/// In the block, `new` is the constructor: it returns `Self` or a `Result` of it. Methods with `&self` or
/// `&mut self` can be called by handles; their arguments and values are owned types with serde's traits,
/// without `flatten` and untagged enums. All of them may be `async` or not, return a value or a `Result`,
/// and have a parameter `&`[`Context`], which callers do not give. `#[retry]` before a method sends its calls
/// again when the process of the actor ends. `stopping(&mut self)` is called once when the process is told to
/// end. Functions that only the process itself calls belong into another impl block.
pub use cohabit_macros::actor;
/// Makes a program an application; stands before `main`, which may be `async` and return a `Result`.
///
/// `name = "search"` names the application, unique among the live ones of its user; by default it is the name
/// of the binary. `max_gpus = 2` limits what its actors hold together; those beyond it wait.
pub use cohabit_macros::main;
pub use context::Context;
pub use error::{Error, Ran, Result};

/// What the attributes use. Not for programs, and changed without notice.
#[doc(hidden)]
pub mod private {
    pub use cohabit_application_core::{MethodAccess, OnRestart};
    pub use inventory;
    pub use serde;

    pub use crate::handle::{ActorPointer, RemoteActor, find};
    pub use crate::instance::{
        ActorInstance, ConstructorFuture, ExclusiveActor, MethodEntry, MethodFuture, RegisteredActor,
        ReturnedValue, SharedActor, StoppingFunction, constructed, constructed_or_failed, returned,
        returned_or_failed,
    };
    pub use crate::options::{ActorOptions, DEFAULT_CONCURRENCY};
    pub use crate::registry::Registration;
    pub use crate::start::{MainReturn, run};
    pub use crate::start_entry::MainEntry;
    pub use crate::values::decode_arguments;
}
