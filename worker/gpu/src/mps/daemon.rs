//! The control daemon of one GPU: start, adopt, watch, recover, stop.
//!
//! Whether the daemon and its server live is read from their processes, not asked from the daemon: a server
//! may be dead while its daemon still answers, and a healthy daemon may be too busy to answer.

use std::time::Duration;

use cohabit_types::{Bytes, DeviceId};

use super::MpsError;
use super::control::{Control, ControlError};
use super::daemon_record::DaemonRecord;
use super::deadline::Deadline;
use super::directory::MpsDirectory;
use super::processes::is_of_mps;
use super::programs::{MpsPrograms, ServedUsers};
use super::server_log::{ServerFault, ServerLog};
use super::start::start;
use super::status::{ServerState, clients, server_state};
use super::stop::stop;

/// A healthy daemon answers at once, but other sessions may come first.
const QUERY_TIMEOUT: Duration = Duration::from_secs(3);

/// A control daemon that runs.
#[derive(Debug)]
pub struct MpsDaemon {
    control: Control,
    users: ServedUsers,
    record: DaemonRecord,
    log: ServerLog,
}

impl MpsDaemon {
    /// Starts the daemon of this GPU and its server, and waits until the server is active. It serves the
    /// processes of the user with this id, and of all others where [`MpsPrograms::users`] says so. A daemon
    /// that an earlier process left in this directory is stopped first.
    ///
    /// # Errors
    /// Why it does not work; nothing of it is left running then.
    pub fn start(
        programs: &MpsPrograms,
        directory: &MpsDirectory,
        gpu: &DeviceId,
        user: u32,
    ) -> Result<MpsDaemon, MpsError> {
        let (control, users) = (Control::new(programs, directory), programs.users());
        let record = start(&control, gpu, users, user)?;
        Ok(MpsDaemon { log: ServerLog::new(directory.server_log()), control, users, record })
    }

    /// The daemon that runs in this directory, if it is certainly the one that was started there for this
    /// GPU. Its server may be in fault or gone; ask [`MpsDaemon::state`]. Faults that were not acknowledged
    /// are reported again.
    ///
    /// # Errors
    /// When a daemon runs there whose record cannot be read.
    pub fn adopt(
        programs: &MpsPrograms,
        directory: &MpsDirectory,
        gpu: &DeviceId,
    ) -> Result<Option<MpsDaemon>, MpsError> {
        let record = directory.record()?.filter(|record| record.gpu == *gpu);
        let living = record.filter(|record| is_of_mps(&record.daemon, &directory.pipe()));
        Ok(living.map(|record| MpsDaemon {
            log: ServerLog::after(directory.server_log(), record.acknowledged_log_position),
            control: Control::new(programs, directory),
            users: programs.users(),
            record,
        }))
    }

    /// The state of its server. A server that replaced one that died counts as [`ServerState::Gone`]: the
    /// clients of the dead one have lost their work.
    #[must_use]
    pub fn state(&self) -> ServerState {
        if !self.record.daemon.is_alive() || !self.record.server.is_alive() {
            return ServerState::Gone;
        }
        match server_state(&self.control, &self.record.server, Deadline::after(QUERY_TIMEOUT)) {
            Ok(state) => state,
            // The server lives; a driver without this command cannot tell more.
            Err(ControlError::Unsupported) => ServerState::Active,
            Err(ControlError::NoDaemon | ControlError::NoServer) => ServerState::Gone,
            Err(ControlError::Refused(_) | ControlError::Silent(_)) => ServerState::Unknown,
        }
    }

    /// The process ids of the daemon and of its server.
    #[must_use]
    pub fn processes(&self) -> [i32; 2] {
        [self.record.daemon.pid(), self.record.server.pid()]
    }

    /// The process ids of its clients.
    ///
    /// # Errors
    /// When the daemon did not answer, which does not mean that it has no clients.
    pub fn clients(&self) -> Result<Vec<i32>, MpsError> {
        let deadline = Deadline::after(QUERY_TIMEOUT);
        let clients = clients(&self.control, deadline).map_err(|error| MpsError(error.to_string()))?;
        Ok(clients.into_iter().map(|client| client.process).collect())
    }

    /// Limits the memory of each client that connects from now on, whatever its environment says, in whole
    /// MiB.
    ///
    /// # Errors
    /// When the daemon does not confirm the limit. It reports limits from 1 GiB on in whole GiB.
    pub fn limit_clients(&self, limit: Bytes) -> Result<(), MpsError> {
        let deadline = Deadline::after(QUERY_TIMEOUT);
        let (server, mebibytes) = (self.record.server.pid(), (limit.0 >> 20).max(1));
        let commands = [
            format!("set_default_device_pinned_mem_limit 0 {mebibytes}M"),
            format!("set_device_pinned_mem_limit {server} 0 {mebibytes}M"),
            format!("get_device_pinned_mem_limit {server} 0"),
        ];
        let expected = match mebibytes >> 10 {
            0 => format!("{mebibytes}M"),
            gibibytes => format!("{gibibytes}G"),
        };
        let answer = self.control.ask(&commands.join("\n"), deadline);
        match answer.map_err(|error| MpsError(error.to_string()))?.last() {
            Some(last) if *last == expected => Ok(()),
            last => Err(MpsError(format!("the server's limit is {last:?} and not {expected}"))),
        }
    }

    /// The faults that its log reports since the last call.
    pub fn faults(&mut self) -> Vec<ServerFault> {
        self.log.faults()
    }

    /// Marks all faults that were reported so far as dealt with: whoever adopts this daemon gets only later
    /// ones. Cheap if there is nothing new.
    pub fn acknowledge_faults(&mut self) {
        let directory = &self.control.directory;
        directory.trim_logs();
        let read = self.log.position();
        if self.record.acknowledged_log_position == read {
            return;
        }
        let written = match directory.record() {
            Ok(Some(record)) if record.daemon == self.record.daemon => {
                self.record.acknowledged_log_position = read;
                directory.write_record(&self.record)
            }
            // A handle that was given up but still works must not write for the daemon that replaced this
            // one.
            Ok(_) => return,
            Err(error) => Err(error),
        };
        if let Err(error) = written {
            tracing::warn!(gpu = %self.record.gpu, %error, "faults of an MPS server may be reported twice");
        }
    }

    /// To be called after a fault, when all clients have gone: waits until the server is active again, and
    /// restarts everything if that takes longer than `timeout`, for this user as [`MpsDaemon::start`] does.
    /// What the log says about the fault is skipped.
    ///
    /// # Errors
    /// Why it does not work; nothing of it is left running then.
    pub fn recover(&mut self, timeout: Duration, user: u32) -> Result<(), MpsError> {
        let back = Deadline::after(timeout).wait(|| match self.state() {
            state @ (ServerState::Active | ServerState::Gone) => Some(state),
            ServerState::Initializing | ServerState::Fault | ServerState::Unknown => None,
        });
        if back == Some(ServerState::Active) {
            self.log = ServerLog::at_end(self.control.directory.server_log());
            self.acknowledge_faults();
            return Ok(());
        }
        tracing::warn!(gpu = %self.record.gpu, "the MPS server did not recover: restarting it");
        self.record = start(&self.control, &self.record.gpu, self.users, user)?;
        self.log = ServerLog::new(self.control.directory.server_log());
        Ok(())
    }

    /// Stops it: by its own command, then by signals. Clients that remain lose their work.
    ///
    /// # Errors
    /// When a process of it is left.
    pub fn quit(self, timeout: Duration) -> Result<(), MpsError> {
        stop(&self.control, timeout)
    }
}
