//! What a control daemon says about its servers and their clients.

use super::control::{Control, ControlError};
use super::deadline::Deadline;
use crate::process::ProcessIdentity;

/// The state of a daemon's server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerState {
    /// It serves its clients.
    Active,
    /// It is starting.
    Initializing,
    /// It has had a fault and waits until all its clients have gone.
    Fault,
    /// There is no server, or no daemon.
    Gone,
    /// The daemon did not answer in time.
    Unknown,
}

/// A process that is a client of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MpsClient {
    pub(super) server: i32,
    pub(super) process: i32,
}

/// All clients of all servers of a daemon.
pub(super) fn clients(control: &Control, deadline: Deadline) -> Result<Vec<MpsClient>, ControlError> {
    let mut found = Vec::new();
    for server in control.ask_processes("get_server_list", deadline)? {
        match control.ask_processes(&format!("get_client_list {server}"), deadline) {
            Ok(processes) => found.extend(processes.into_iter().map(|process| MpsClient { server, process })),
            // The server ended after it was listed, and its clients with it.
            Err(ControlError::NoServer) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// The state of one server.
pub(super) fn server_state(
    control: &Control,
    server: &ProcessIdentity,
    deadline: Deadline,
) -> Result<ServerState, ControlError> {
    let answer = control.ask(&format!("get_server_status {}", server.pid()), deadline)?;
    Ok(match answer.last().map(String::as_str) {
        Some("ACTIVE") => ServerState::Active,
        Some("INITIALIZING") => ServerState::Initializing,
        Some("FAULT") => ServerState::Fault,
        Some(_) | None => ServerState::Unknown,
    })
}
