//! What the processes of a worker share on their host.
//!
//! The worker daemon and its executors are separate programs that may come from different versions of
//! Cohabit. They meet in the files of a rank's directory and on two sockets; this crate defines both, and
//! the access to processes, accounts, cgroups and clocks that more than one of them needs.
//!
//! ```text
//! rank_directory  the files of one rank         assignment      daemon -> executor: hold this rank
//! records         the content of these files    ended_rank      what stays of them
//! format          versions of these files       messages        daemon <-> executor, while the rank runs
//! log, progress   what a rank prints, reports   client_removal  MPS clients, before they are killed
//! account, cgroup identity and limits of a rank oom_detector    "CUDA out of memory" in a rank's output
//! process, clock  /proc and the shared clock    files           files without surprises
//! spare_directory what the next rank can use
//! ```
//!
//! It makes no decisions (see `cohabit-worker-core`) and knows nothing about the head. To change a file or a
//! message, start in [`format`](mod@format).

pub mod account;
pub mod assignment;
pub mod cgroup;
pub mod client_removal;
pub mod clock;
pub mod copy_task;
pub mod ended_rank;
pub mod exec;
pub mod files;
pub mod format;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
pub mod log;
pub mod messages;
pub mod oom_detector;
pub mod process;
pub mod progress;
pub mod rank_directory;
pub mod records;
pub mod spare_directory;
pub mod state_lock;
pub mod terminal;
mod version;

pub use cgroup::check_delegation;
pub use files::FileError;
pub use log::LogLimits;
