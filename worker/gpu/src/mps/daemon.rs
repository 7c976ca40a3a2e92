//! Looks after a GPU's daemon: start and prove, adopt, watch, recover, stop.
//!
//! Whether the daemon and its server live, their processes tell, not the daemon: a server may be dead while
//! its daemon still answers, and a daemon may be too busy to answer while all is well.

use std::time::Duration;

use cohabit_types::DeviceId;

use super::control::{Control, ControlError};
use super::home::DaemonRecord;
use super::patience::Deadline;
use super::processes::is_of_mps;
use super::server_log::ServerLog;
use super::start::start;
use super::stop::stop;
use super::{Fault, MpsDaemon, MpsDirectory, MpsError, MpsPrograms, ServerState};
use crate::process::ProcessIdentity;

/// A daemon that is well answers at once; others may have their turn before.
const QUERY_TIMEOUT: Duration = Duration::from_secs(3);

impl MpsDaemon {
    /// Starts the daemon of this GPU and its server, and waits until the server is active. A daemon of an
    /// earlier time that is left in this home is stopped first.
    ///
    /// # Errors
    /// Why it does not work; nothing of it is left then.
    pub fn start(tools: &MpsPrograms, home: &MpsDirectory, gpu: &DeviceId) -> Result<MpsDaemon, MpsError> {
        let control = Control::new(tools, home);
        let record = start(&control, gpu)?;
        Ok(MpsDaemon { log: ServerLog::new(home.server_log()), control, record })
    }

    /// The daemon that runs in this home, if it is beyond doubt the one that was started there for this GPU.
    /// Its server may be in fault or gone: its state tells. Faults that nobody has dealt with are told again,
    /// or for the first time.
    #[must_use]
    pub fn adopt(tools: &MpsPrograms, home: &MpsDirectory, gpu: &DeviceId) -> Option<MpsDaemon> {
        let record = home.record().filter(|record| record.gpu == *gpu)?;
        let alive = is_of_mps(&record.daemon, &home.pipe());
        alive.then(|| MpsDaemon {
            log: ServerLog::after(home.server_log(), record.dealt_with),
            control: Control::new(tools, home),
            record,
        })
    }

    /// How its server is. A server that took the place of one that died does not count: the clients of that
    /// one have lost.
    #[must_use]
    pub fn state(&self) -> ServerState {
        if !self.record.daemon.is_alive() || !self.record.server.is_alive() {
            return ServerState::Gone;
        }
        match server_state(&self.control, &self.record.server, Deadline::after(QUERY_TIMEOUT)) {
            Ok(state) => state,
            // It lives, and drivers that cannot tell more are taken at that.
            Err(ControlError::Unsupported) => ServerState::Active,
            Err(ControlError::NoDaemon | ControlError::NoServer) => ServerState::Gone,
            Err(ControlError::Refused(_) | ControlError::Silent(_)) => ServerState::Unknown,
        }
    }

    /// The processes that run for it, by their numbers: the daemon's, then its server's.
    #[must_use]
    pub fn processes(&self) -> [i32; 2] {
        [self.record.daemon.pid(), self.record.server.pid()]
    }

    /// The processes that are its clients.
    ///
    /// # Errors
    /// When the daemon did not say: that is not the same as none.
    pub fn clients(&self) -> Result<Vec<i32>, MpsError> {
        let deadline = Deadline::after(QUERY_TIMEOUT);
        let clients = clients(&self.control, deadline).map_err(|error| MpsError(error.to_string()))?;
        Ok(clients.into_iter().map(|client| client.process).collect())
    }

    /// Faults that its log tells of since the last call.
    pub fn faults(&mut self) -> Vec<Fault> {
        self.log.faults()
    }

    /// All that the log told so far is dealt with: whoever adopts this daemon hears only of what comes later.
    /// Costs little where there is nothing new.
    pub fn acknowledge_faults(&mut self) {
        let home = &self.control.home;
        home.trim_logs();
        let read = self.log.position();
        // Who was given up, and works on, must not speak for a daemon that took the place of this one.
        let is_ours = |record: DaemonRecord| record.daemon == self.record.daemon;
        if self.record.dealt_with == read || !home.record().is_some_and(is_ours) {
            return;
        }
        self.record.dealt_with = read;
        if let Err(error) = self.control.home.remember(&self.record) {
            tracing::warn!(gpu = %self.record.gpu, %error, "faults of an MPS server may be told twice");
        }
    }

    /// After a fault, when all clients are gone: waits until the server is active, and starts everything anew
    /// if it is not in time. What the log told of the fault is forgotten.
    ///
    /// # Errors
    /// Why it does not work; nothing of it is left then.
    pub fn recover(&mut self, patience: Duration) -> Result<(), MpsError> {
        let back = Deadline::after(patience).wait(|| match self.state() {
            state @ (ServerState::Active | ServerState::Gone) => Some(state),
            ServerState::Initializing | ServerState::Fault | ServerState::Unknown => None,
        });
        if back == Some(ServerState::Active) {
            self.log = ServerLog::at_end(self.control.home.server_log());
            self.acknowledge_faults();
            return Ok(());
        }
        tracing::warn!(gpu = %self.record.gpu, "the MPS server did not recover: it is started anew");
        self.record = start(&self.control, &self.record.gpu)?;
        self.log = ServerLog::new(self.control.home.server_log());
        Ok(())
    }

    /// Stops it: politely, then by force. Clients that remain lose.
    ///
    /// # Errors
    /// When something of it is left.
    pub fn quit(self, patience: Duration) -> Result<(), MpsError> {
        stop(&self.control, patience)
    }
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
            // It ended since it was listed, and its clients with it.
            Err(ControlError::NoServer) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// What the daemon says of a server.
pub(super) fn server_state(
    control: &Control,
    server: &ProcessIdentity,
    deadline: Deadline,
) -> Result<ServerState, ControlError> {
    let said = control.ask(&format!("get_server_status {}", server.pid()), deadline)?;
    Ok(match said.last().map(String::as_str) {
        Some("ACTIVE") => ServerState::Active,
        Some("INITIALIZING") => ServerState::Initializing,
        Some("FAULT") => ServerState::Fault,
        Some(_) | None => ServerState::Unknown,
    })
}
