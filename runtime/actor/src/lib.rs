//! A small actor runtime for Cohabit's daemons. *Actors own IO, cores own rules.*
//!
//! An [`Actor`] handles one typed message at a time from a bounded mailbox. An [`Address`] tells or asks it,
//! and does not show whether the actor is here or on another node. Every actor supervises the actors that it
//! spawns ([`supervisor`] has the drawing), a [`Registry`] names them, and a [`ActorSystem`] is the root of it
//! all.
//!
//! It never decides anything about jobs or devices, never opens a socket (see [`Deliver`] for what a link has
//! to provide), and never holds more messages than the spawner allowed.
//!
//! ```
//! use cohabit_actor::{Actor, Context, Failure, Reply, Spec, System};
//! use std::time::Duration;
//!
//! /// Counts the GPUs that are busy.
//! struct Gauge { busy: u32 }
//!
//! enum Ask { Occupy(u32), Busy(Reply<u32>) }
//!
//! impl Actor for Gauge {
//!     type Message = Ask;
//!
//!     async fn handle(&mut self, message: Ask, _: &mut Context<Self>) -> Result<(), Failure> {
//!         match message {
//!             Ask::Occupy(gpus) => self.busy += gpus,
//!             Ask::Busy(reply_to) => reply_to.send(self.busy),
//!         }
//!         Ok(())
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let system = System::new();
//! let gauge = system.spawn(Spec::new("gauge", 16), || Gauge { busy: 0 });
//! gauge.tell(Ask::Occupy(2)).await?;
//! assert_eq!(gauge.ask(Ask::Busy).await?, 2);
//! system.shutdown(Duration::from_secs(1)).await?;
//! # Ok(())
//! # }
//! ```
#![warn(missing_docs)]

mod actor;
mod address;
mod call;
mod context;
mod failure;
mod keeper;
mod life;
mod mailbox;
mod registry;
mod reply;
mod restart;
mod shutdown;
mod spec;
pub mod supervisor;
mod system;

pub use actor::Actor;
pub use address::{Address, Closed, Deliver, SendPermit, TryTellError};
pub use call::Call;
pub use context::{Context, TaskHandle};
pub use failure::{ActorFailure, ActorPanic, Escalation};
pub use mailbox::{Mailbox, mailbox};
pub use registry::{Registry, RegistryError};
pub use reply::{AskError, ReplyTo};
pub use restart::RestartPolicy;
pub use shutdown::Shutdown;
pub use spec::ChildSpec;
pub use supervisor::Supervisor;
pub use system::{ActorSystem, ActorSystemError};

#[cfg(test)]
mod tests;
