//! NVIDIA's Multi-Process Service (MPS): one control daemon for each GPU, so that a fault stays on that GPU.
//!
//! ```text
//! daemon        start, adopt, watch, recover and stop a control daemon     (start here)
//! start         start a daemon and check that its server is active
//! stop          stop a daemon: by its own command, then by signals
//! status        what a daemon says about its servers and their clients
//! control       one session at a time with a daemon
//! client        the environment of a client, and its removal from the server
//! server_log    faults, as the server's log reports them
//! directory     sockets, logs and lock of a GPU's daemon
//! daemon_record which processes a daemon has, and the file that says so
//! pipe_lock     which daemon serves a pipe directory
//! processes     which processes belong to MPS, and to which directory
//! programs      NVIDIA's programs, and whether a GPU can be shared with them
//! deadline      polling up to a deadline
//! ```

mod client;
mod control;
mod daemon;
mod daemon_record;
mod deadline;
mod directory;
mod error;
mod pipe_lock;
mod processes;
mod programs;
mod server_log;
mod start;
mod status;
mod stop;

pub use client::{ClientRemoval, client_environment, environment_without_mps, terminate_clients};
pub use daemon::MpsDaemon;
pub use directory::MpsDirectory;
pub use error::MpsError;
pub use pipe_lock::daemon_of_pipe;
pub(crate) use programs::check_sharing;
pub use programs::{MpsPrograms, ServedUsers};
pub use server_log::ServerFault;
#[cfg(feature = "fuzzing")]
pub(crate) use server_log::fuzzing;
pub use status::ServerState;
