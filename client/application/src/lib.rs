//! Applications of Cohabit: programs whose tasks and actors run in processes of a cluster.
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
//! of `main`, as one process for each actor, which has the share of a GPU that the actor claims, and as
//! *runners*, which run tasks. The launcher shows what `main` prints and exits with its code. A second launch
//! of the same file while the application lives joins it; another build of it is refused.
//!
//! # Tasks
//!
//! ```no_run
//! # use futures::future::try_join_all;
//! #[cohabit::task(cpus = 2, memory = "4G")]
//! fn count_words(path: String) -> cohabit::Result<usize> {
//!     Ok(std::fs::read_to_string(path)?.split_whitespace().count())
//! }
//!
//! # async fn total(paths: Vec<String>) -> cohabit::Result<usize> {
//! let counts = try_join_all(paths.into_iter().map(count_words::remote)).await?;
//! # Ok(counts.into_iter().sum())
//! # }
//! ```
//!
//! [`task`] makes a function a task: beside the function, which can be called as before, it writes a type of
//! the same name with a function `remote`. Its [`TaskCall`] is a future of the value. Every process of the
//! application can call tasks: `main`, actors, and tasks themselves.
//!
//! - A runner claims what one of its tasks claims, and runs one after the other. The application starts as
//!   many as have something to do and as the cluster has room for, and ends those that had nothing to do for
//!   5 s. Tasks that claim the same share runners.
//! - A task that waits for calls of its own lets its runner run others meanwhile, unless it has a GPU: so
//!   tasks may call tasks to any depth.
//! - If its runner ends, a task is sent to another one, `retries` times; then it fails with [`Error::Lost`].
//!   So it may run more than once, in part or as a whole. With `retries = 0` it starts at most once.
//! - Errors and panics of the function are those of the call, unless it is marked `retry_errors`: then it is
//!   run again as long as retries are left.
//! - Dropping a call cancels the task and all that it called. Async code ends at its next await; a plain
//!   function asks [`cancelled`], and its process is ended if it goes on for 5 s.
//! - A caller (a task, or the rest of a process) has at most 10,000 tasks and 64 MiB of arguments that have
//!   not ended: [`TaskCall::start`] waits for room, [`TaskCall::try_start`] does not.
//! - A runner has one thread for its tasks, and another one for its connections.
//!
//! # Streams
//!
//! ```no_run
//! use futures::{Stream, StreamExt, TryStreamExt, stream};
//!
//! #[cohabit::task]
//! fn squares(to: u64) -> impl Stream<Item = cohabit::Result<u64>> {
//!     stream::iter(1..=to).map(|number| Ok(number.checked_mul(number).ok_or("it is too large")?))
//! }
//!
//! # async fn print() -> cohabit::Result<()> {
//! let mut squares = squares::remote(1_000);
//! while let Some(square) = squares.try_next().await? {
//!     println!("{square}");
//! }
//! # Ok(())
//! # }
//! ```
//!
//! A task that returns `impl Stream<Item = Result<T>>` sends each item as soon as it is made. Its
//! [`StreamCall`] is such a stream itself; it is sent when it is first polled, or by [`StreamCall::start`],
//! which gives a [`RefStream`].
//!
//! - The task makes no further item while 8 items or 64 MiB have not been taken, and its runner runs others
//!   meanwhile, as if it waited for a call. An item has at most 16 MiB.
//! - The first error is the last item. Those before it come first, also if its runner ends.
//! - If its runner ends, the next one makes the stream anew, and the items that have arrived are left out. So
//!   a task has to make the same items each time, or have no `retries`.
//! - Dropping the stream cancels the task.
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
//! # Objects
//!
//! ```no_run
//! use cohabit::{Buffer, Ref};
//! # use futures::future::try_join_all;
//!
//! #[cohabit::task]
//! fn load(path: String) -> cohabit::Result<Buffer<f32>> {
//!     let bytes = std::fs::read(path)?;
//!     Ok(bytes.chunks_exact(4).map(|it| f32::from_le_bytes([it[0], it[1], it[2], it[3]])).collect())
//! }
//!
//! #[cohabit::task]
//! fn loss(samples: Buffer<f32>, seed: u64) -> f32 {
//!     samples.iter().skip(seed as usize).sum()
//! }
//!
//! # async fn losses() -> cohabit::Result<Vec<f32>> {
//! let samples: Ref<Buffer<f32>> = load::remote("/data/samples").start().await?;
//! let losses = try_join_all((0..8).map(|seed| loss::remote(&samples, seed))).await?;
//! # Ok(losses)
//! # }
//! ```
//!
//! A [`Ref`] stands for the value of a call that was started, or for one that was [`put`]. It is a future of
//! the value, and can be cloned and passed on. An [`Arg`] is a value or a reference: the code that is called
//! gets the value in both cases, when it is known.
//!
//! - A value of up to 64 KiB travels with its reference. A larger one is an object in shared memory of the
//!   node, which all processes read in place; objects that nobody uses go to disk when memory is short. A
//!   [`Buffer`] in it is a slice of that memory.
//! - A value lives as long as any process has a reference of it, also when its maker has ended.
//! - Dropping the last reference of a call that has not ended cancels it; [`Ref::detach`] lets it go on.
//! - If the call of a reference fails, calls that wait for it fail with [`Error::Dependency`].
//!
//! # Where to start reading
//!
//! ```text
//! start        which process this is      launcher     the program started by hand
//! coordinator  the root job               runner       main, one actor (actor_host), or tasks (task_host)
//! local        all of it in one process, for tests     surroundings: a member is a process or a thread
//! process      a process's state and connections       transport    sockets, frames
//! store        large objects: a process's side, and the store of a node (store_process: of a further one)
//! handle, call, builder, gang, task_call  what users hold; values, returned: their bytes
//! reference, arguments                    references, and what stands for them in calls
//! stream_call, ref_stream                 streams; made_items: at their makers; call_state: all calls
//! instance, task, options, origin         what the attributes write; registry: all of it, with numbers
//! ```
//!
//! The rules are those of `cohabit-application-core`; this crate carries its effects out.
#![warn(missing_docs)]

mod actor_host;
mod arguments;
mod builder;
mod call;
mod call_state;
mod claim_setters;
mod context;
mod coordinator;
mod described_actor;
mod error;
mod gang;
mod handle;
mod instance;
mod launcher;
mod local;
mod made_items;
mod options;
mod origin;
mod prepared_task;
mod process;
mod ref_stream;
mod reference;
mod registry;
mod returned;
mod runner;
mod start;
mod start_entry;
mod store;
mod store_process;
mod stream_call;
mod surroundings;
mod task;
mod task_call;
mod task_host;
mod terminal;
mod transport;
mod values;

pub use arguments::Arg;
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
/// without `flatten` and untagged enums; callers give a value or a reference for each argument, see [`Arg`].
/// All of them may be `async` or not, return a value or a `Result`,
/// and have a parameter `&`[`Context`], which callers do not give. `#[retry]` before a method sends its calls
/// again when the process of the actor ends. `stopping(&mut self)` is called once when the process is told to
/// end. Functions that only the process itself calls belong into another impl block.
pub use cohabit_macros::actor;
/// Makes a program an application; stands before `main`, which may be `async` and return a `Result`.
///
/// `name = "search"` names the application, unique among the live ones of its user; by default it is the name
/// of the binary. `max_gpus = 2` limits what its actors hold together; those beyond it wait.
/// `object_memory = "8G"` says how much memory its objects may have on a node, by default 1 GiB; those beyond
/// it are spilled to disk.
pub use cohabit_macros::main;
/// Makes a function a task: every process of the application can have it run in processes of its own.
///
/// It stands before a function, `async` or not, without `self` and generics, and writes a type of its name
/// beside it: `load::remote(...)` takes the same arguments and gives a [`TaskCall`]. The options say what the
/// processes claim that run it. All of them can be left out, and changed for one call with the methods of
/// [`TaskCall`]:
///
/// | Key | Meaning | Default |
/// |---|---|---|
/// | `gpus = 0.25` | a share of a GPU, or whole ones | none |
/// | `gpu_memory = "8G"` | memory on each GPU | not limited |
/// | `cpus = 2` | processor cores | 1 |
/// | `memory = "2G"` | host memory | none claimed |
/// | `retries = 3` | how often it is sent again after the end of a process that had got it | 3 |
/// | `retry_errors` | errors and panics of the function are tried again, too | |
/// | `enforced` | shares a GPU only where limits are enforced | |
/// | `exclusive` | nobody else joins its GPU | |
///
/// Arguments and values are owned types with serde's traits, without `flatten` and untagged enums; handles of
/// actors and references may be in them. Callers give a value or a reference for each, see [`Arg`]. The
/// function returns a value or a `Result` of it, and may have a parameter
/// `&`[`Context`], which callers do not give. One that returns `impl Stream<Item = Result<T>>` sends the
/// items as they are made, and `remote` gives a [`StreamCall`].
pub use cohabit_macros::task;
/// Makes a function a test that is the `main` of an application of its own, in the process of the tests:
/// without a head, without workers, and without GPUs.
///
/// ```
/// # struct Counter(i64);
/// # #[cohabit::actor]
/// # impl Counter {
/// #     fn new(start: i64) -> Self { Counter(start) }
/// #     fn add(&mut self, by: i64) -> i64 { self.0 += by; self.0 }
/// # }
/// #[cohabit::test]
/// async fn counters_count() -> cohabit::Result<()> {
///     let counter = Counter::remote(5).start().await?;
///     assert_eq!(counter.add(2).await?, 7);
///     Ok(())
/// }
/// ```
///
/// Each process of the application is a thread: the coordinator, each actor, up to four runners of tasks.
/// They pass frames and objects as on a node. The test fails if it panics or returns an error. `max_gpus = 2`
/// and `object_memory = "8M"` are those of [`main`]; claims of GPUs count against `max_gpus` and claim
/// nothing.
///
/// - Calls, and handles that are decoded, belong to the thread of their process: code on threads of its own
///   uses handles that it has.
/// - A thread cannot be killed: code that never returns goes on until all tests have ended, and `restarts`
///   and `retries` are used up only by processes that end by themselves. What happens when processes die is
///   for tests on a cluster.
pub use cohabit_macros::test;
pub use cohabit_memory::Buffer;
pub use context::Context;
pub use error::{Error, Ran, Result};
pub use gang::{Gang, GangMember};
pub use process::cancelled;
pub use ref_stream::RefStream;
pub use reference::{Ref, put};
pub use stream_call::StreamCall;
pub use task_call::TaskCall;

/// What the attributes use. Not for programs, and changed without notice.
#[doc(hidden)]
pub mod private {
    pub use cohabit_application_core::{MethodAccess, OnRestart, OnTaskError};
    pub use inventory;
    pub use serde;

    pub use crate::arguments::{ArgumentTuple, CallArguments, decode_arguments};
    pub use crate::handle::{ActorPointer, RemoteActor, find};
    pub use crate::instance::{
        ActorInstance, ConstructorFuture, ExclusiveActor, MethodEntry, RegisteredActor, SharedActor,
        StoppingFunction, constructed, constructed_or_failed,
    };
    pub use crate::local::{TestReturn, run_test};
    pub use crate::made_items::send_items;
    pub use crate::options::{ActorOptions, Claims, DEFAULT_CONCURRENCY, TaskOptions};
    pub use crate::origin::Origin;
    pub use crate::registry::{ActorRegistration, TaskRegistration};
    pub use crate::returned::{CallFuture, ReturnedValue, returned, returned_or_failed};
    pub use crate::start::{MainReturn, run};
    pub use crate::start_entry::{DEFAULT_OBJECT_MEMORY, MainEntry};
    pub use crate::task::{RegisteredTask, RemoteTask};
}
