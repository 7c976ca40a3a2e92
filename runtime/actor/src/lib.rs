//! A small actor runtime for Cohabit's daemons: mailboxes, supervision, timers, and blocking work.
//!
//! An [`Actor`] owns state and handles one typed message at a time from a bounded mailbox. An [`Address`]
//! sends it messages ([`tell`](Address::tell)) and questions ([`ask`](Address::ask)). An [`ActorSystem`] is
//! the root of a daemon's actors and stops them in order.
//!
//! This crate takes no decisions about jobs or devices and opens no sockets. It does not name actors
//! globally and does not reach actors in other processes: pass addresses along, and use `cohabit-net`
//! between machines.
//!
//! Where to start reading: `actor.rs` has the trait and its context, `system.rs` the root, `actor_loop.rs`
//! the life of one incarnation, `actor_task.rs` what happens after a failure, `supervisor.rs` the order of
//! a shutdown.
//!
//! ```
//! use cohabit_actor::{Actor, ActorFailure, ActorSystem, ChildSpec, Context, ReplyTo};
//! use std::time::Duration;
//!
//! /// Counts the GPUs that are busy.
//! struct BusyGpus(u32);
//!
//! enum Message { Occupy(u32), Count(ReplyTo<u32>) }
//!
//! impl Actor for BusyGpus {
//!     type Message = Message;
//!
//!     async fn handle(&mut self, message: Message, _: &mut Context<Self>) -> Result<(), ActorFailure> {
//!         match message {
//!             Message::Occupy(gpus) => self.0 += gpus,
//!             Message::Count(reply_to) => reply_to.send(self.0),
//!         }
//!         Ok(())
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let system = ActorSystem::new();
//! let busy = system.spawn(ChildSpec::new("busy", 16), || BusyGpus(0));
//! busy.tell(Message::Occupy(2)).await?;
//! assert_eq!(busy.ask(Message::Count).await?, 2);
//! system.shutdown(Duration::from_secs(1)).await?;
//! # Ok(())
//! # }
//! ```
#![warn(missing_docs)]

mod actor;
mod actor_loop;
mod actor_task;
mod blocking;
mod child_spec;
mod failure;
mod idle_memory;
mod mailbox;
mod reply;
mod restart_policy;
mod shutdown;
mod spawn;
mod supervisor;
mod system;

pub use actor::{Actor, Context, TaskHandle};
pub use blocking::blocking;
pub use child_spec::ChildSpec;
pub use failure::{ActorFailure, ActorSystemError};
pub use idle_memory::{give_back, keep_small};
pub use mailbox::{Address, Mailbox, TellError, TryTellError, mailbox};
pub use reply::{AskError, ReplyTo};
pub use shutdown::Shutdown;
pub use system::ActorSystem;

#[cfg(test)]
mod tests;
