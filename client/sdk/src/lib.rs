//! The SDK of Cohabit for Rust programs: a client of a running cluster, with which a program submits jobs to
//! the cluster's GPUs, follows their output, waits for their end, and asks about jobs and nodes, as the
//! command line `cohabit` does. It finds the head as the command line finds it: by `COHABIT_*` variables, by
//! the same configuration files, or by the state directory of a head on this machine. (Programs whose
//! functions and actors themselves run on the cluster use the crate `cohabit` instead.)
//!
//! ```no_run
//! use std::io::Write;
//!
//! use cohabit_client::{Client, JobBuilder, LogOptions};
//! use futures::TryStreamExt;
//!
//! #[tokio::main]
//! async fn main() -> anyhow::Result<()> {
//!     // The head that `cohabit` would use here.
//!     let client = Client::connect_from_environment().await?;
//!
//! let job = JobBuilder::new("python").args(["train.py", "--lr", "0.01"]).gpus(0.5).submit(&client).await?;
//!     println!("job {}", job.id());
//!
//!     let mut output = job.logs(LogOptions::follow());
//!     while let Some(record) = output.try_next().await? {
//!         std::io::stdout().write_all(&record.bytes)?;
//!     }
//!
//!     let ended = job.wait().await?;
//!     println!("{}: {}", ended.state, ended.reason);
//!     Ok(())
//! }
//! ```
//!
//! A [`Client`] is cheap to clone, and all clones share one link. A link that breaks is opened again: calls
//! and streams go on where they were, and fail with [`Error::Unreachable`] only after the retry timeout. A
//! job that is submitted twice because of a broken link is one job, because every [`Submission`] carries a
//! key.
//!
//! A job may run in a copy of its code as it is now, so that later edits do not change it:
//!
//! ```no_run
//! # use cohabit_client::{Client, CodeFolder, JobBuilder, FileSelection};
//! # async fn example(client: Client) -> anyhow::Result<()> {
//! let code = CodeFolder::scan(".", FileSelection::Git).await?;
//! let submission = JobBuilder::new("python").arg("train.py").build()?;
//! let (job, _) = client.submit_with_code(&submission, &code).await?;
//! # Ok(())
//! # }
//! ```
//!
//! Records, states and filters are the types of [`types`]. This crate decides nothing
//! about jobs, keeps no state on disk, and depends on nothing of the head or of the workers.
#![warn(missing_docs)]

mod absence;
mod applications;
mod builder;
mod call;
mod client;
mod code;
mod connect;
mod error;
mod feed;
mod job;
mod link;
mod list;
mod logs;
mod port_connection;
mod reservations;
mod shares;
mod submission;
mod usage;
mod watch;

pub use absence::while_away;
pub use builder::JobBuilder;
pub use call::Client;
pub use code::{CodeError, CodeFolder, CodeUpload, MOST_SNAPSHOT_BYTES};
pub use cohabit_net::{HelloAccepted, Token, TokenError};
pub use cohabit_store::{FileContent, FileSelection, Manifest, ManifestFile};
pub use cohabit_types as types;
pub use cohabit_types::Explanation;
pub use connect::ConnectOptions;
pub use error::Error;
pub use job::JobHandle;
pub use logs::{LogOptions, LogPart};
pub use port_connection::PortConnection;
pub use submission::Submission;
pub use watch::JobsWatcher;
