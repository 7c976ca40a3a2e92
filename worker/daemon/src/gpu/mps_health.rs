//! One health check of an MPS daemon, and the list of its clients.

use std::thread::sleep;
use std::time::Duration;

use cohabit_gpu::mps::{MpsDaemon, ServerFault, ServerState};
use cohabit_host::process::exists;

/// How long the log may lag behind the state.
const LOG_LAG: Duration = Duration::from_millis(300);

/// How thorough a check is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProbeDepth {
    /// Of the log and the processes.
    Brief,
    /// Also asks the daemon, which answers one session at a time.
    Thorough,
}

/// The result of a check.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum MpsHealth {
    /// Healthy. The clients, if the daemon was asked and has answered.
    Healthy(Option<Vec<i32>>),
    /// Failed: all its clients have lost their work.
    Failed(MpsFailure),
}

/// How a server failed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct MpsFailure {
    /// The processes that caused it, as far as the log tells.
    pub(crate) culprits: Vec<i32>,
    pub(crate) detail: String,
}

impl MpsHealth {
    /// Checks a daemon. Blocks. Faults are acknowledged only when the daemon is healthy again, so that the
    /// next worker daemon sees them if this one dies before.
    pub(crate) fn check(daemon: &mut MpsDaemon, depth: ProbeDepth) -> MpsHealth {
        let faults = daemon.faults();
        if !faults.is_empty() {
            return MpsHealth::failed(daemon, faults, "the server is in fault");
        }
        let mps_health = match depth {
            ProbeDepth::Brief if daemon.processes().into_iter().all(exists) => MpsHealth::Healthy(None),
            ProbeDepth::Brief | ProbeDepth::Thorough => MpsHealth::ask(daemon),
        };
        if let MpsHealth::Healthy(_) = mps_health {
            daemon.acknowledge_faults();
        }
        mps_health
    }

    /// A daemon that does not answer may be busy, and does not count as failed.
    fn ask(daemon: &mut MpsDaemon) -> MpsHealth {
        match daemon.state() {
            ServerState::Fault => MpsHealth::failed(daemon, Vec::new(), "the server is in fault"),
            ServerState::Gone => MpsHealth::failed(daemon, Vec::new(), "the server or its daemon is gone"),
            ServerState::Active => MpsHealth::Healthy(daemon.clients().ok()),
            ServerState::Initializing | ServerState::Unknown => MpsHealth::Healthy(None),
        }
    }

    /// A failure with what the log says about it. The log may lag, and names the culprit last.
    fn failed(daemon: &mut MpsDaemon, mut faults: Vec<ServerFault>, observed: &str) -> MpsHealth {
        if faults.iter().all(|fault| fault.culprits.is_empty()) {
            sleep(LOG_LAG);
            faults.extend(daemon.faults());
        }
        MpsHealth::Failed(MpsFailure::new(faults, observed))
    }
}

impl MpsFailure {
    /// Several faults at once are one failure, with the text of the first that names a culprit. Without
    /// faults in the log, the text is what was observed.
    fn new(faults: Vec<ServerFault>, observed: &str) -> MpsFailure {
        let named = faults.iter().find(|fault| !fault.culprits.is_empty()).or(faults.first());
        let detail = named.map_or_else(|| observed.to_owned(), |fault| fault.detail.clone());
        MpsFailure { culprits: faults.into_iter().flat_map(|fault| fault.culprits).collect(), detail }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(culprits: &[i32], detail: &str) -> ServerFault {
        ServerFault { culprits: culprits.to_vec(), detail: detail.to_owned() }
    }

    #[test]
    fn several_faults_are_one_failure_with_the_text_of_the_first_that_names_a_culprit() {
        let faults = vec![fault(&[], "a fatal error"), fault(&[7], "7 did it"), fault(&[8], "8 too")];
        let expected = MpsFailure { culprits: vec![7, 8], detail: "7 did it".into() };
        assert_eq!(MpsFailure::new(faults, "the server is in fault"), expected);
    }

    #[test]
    fn a_failure_without_details_in_the_log_has_no_culprit() {
        let nobody = |detail: &str| MpsFailure { culprits: vec![], detail: detail.into() };
        let failure = MpsFailure::new(vec![fault(&[], "a fatal error")], "the server is in fault");
        assert_eq!(failure, nobody("a fatal error"));
        assert_eq!(MpsFailure::new(vec![], "it is gone"), nobody("it is gone"));
    }
}
