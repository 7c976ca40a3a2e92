//! One look at an MPS daemon: whether it is well, and who its clients are.

use std::thread::sleep;
use std::time::Duration;

use cohabit_gpu::mps::{Fault, MpsDaemon, ServerState};

use crate::process::exists;

/// The log may be a moment behind the state.
const LOG_LAG: Duration = Duration::from_millis(300);

/// How closely to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProbeDepth {
    /// At its log and its processes.
    Brief,
    /// Also at what the daemon itself says when it is asked, one question at a time.
    Thorough,
}

/// What was seen.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum MpsHealth {
    /// All is well. Its clients, if it was asked and has answered.
    Well(Option<Vec<i32>>),
    /// All its clients have lost.
    Broken(MpsFailure),
}

/// How a server broke down.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct MpsFailure {
    /// Processes whose fault it was, as far as the log tells.
    pub(crate) culprits: Vec<i32>,
    pub(crate) detail: String,
}

impl MpsHealth {
    /// Looks; waits for the daemon to answer. A fault is dealt with when all is well again, and not before:
    /// should this worker daemon die in between, the next one sees it, too.
    pub(crate) fn of(daemon: &mut MpsDaemon, depth: ProbeDepth) -> MpsHealth {
        let faults = daemon.faults();
        if !faults.is_empty() {
            return MpsHealth::broken(daemon, faults, "it is in fault");
        }
        let mps_health = match depth {
            ProbeDepth::Brief if daemon.processes().into_iter().all(exists) => MpsHealth::Well(None),
            ProbeDepth::Brief | ProbeDepth::Thorough => MpsHealth::asked(daemon),
        };
        if let MpsHealth::Well(_) = mps_health {
            daemon.acknowledge_faults();
        }
        mps_health
    }

    /// Who does not answer may be busy: that is no breakdown.
    fn asked(daemon: &mut MpsDaemon) -> MpsHealth {
        match daemon.state() {
            ServerState::Fault => MpsHealth::broken(daemon, Vec::new(), "it is in fault"),
            ServerState::Gone => MpsHealth::broken(daemon, Vec::new(), "it is gone, or its daemon"),
            ServerState::Active => MpsHealth::Well(daemon.clients().ok()),
            ServerState::Initializing | ServerState::Unknown => MpsHealth::Well(None),
        }
    }

    /// With what the log tells of it, which may be a moment behind, and names whose fault it was last of all.
    fn broken(daemon: &mut MpsDaemon, mut faults: Vec<Fault>, seen: &str) -> MpsHealth {
        if faults.iter().all(|fault| fault.culprits.is_empty()) {
            sleep(LOG_LAG);
            faults.extend(daemon.faults());
        }
        MpsHealth::Broken(MpsFailure::of(faults, seen))
    }
}

impl MpsFailure {
    /// Several faults at once are one breakdown: its words are those of the first that names somebody. Where
    /// the log tells of none, they are what was seen.
    fn of(faults: Vec<Fault>, seen: &str) -> MpsFailure {
        let named = faults.iter().find(|fault| !fault.culprits.is_empty()).or(faults.first());
        let detail = named.map_or_else(|| seen.to_owned(), |fault| fault.detail.clone());
        MpsFailure { culprits: faults.into_iter().flat_map(|fault| fault.culprits).collect(), detail }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(culprits: &[i32], detail: &str) -> Fault {
        Fault { culprits: culprits.to_vec(), detail: detail.to_owned() }
    }

    #[test]
    fn several_faults_are_one_breakdown_with_the_words_of_the_first_that_names_somebody() {
        let faults = vec![fault(&[], "a fatal error"), fault(&[7], "7 did it"), fault(&[8], "8 too")];
        let expected = MpsFailure { culprits: vec![7, 8], detail: "7 did it".into() };
        assert_eq!(MpsFailure::of(faults, "it is in fault"), expected);
    }

    #[test]
    fn a_breakdown_of_which_the_log_tells_little_or_nothing_names_nobody() {
        let nobody = |detail: &str| MpsFailure { culprits: vec![], detail: detail.into() };
        let told = MpsFailure::of(vec![fault(&[], "a fatal error")], "it is in fault");
        assert_eq!(told, nobody("a fatal error"));
        assert_eq!(MpsFailure::of(vec![], "it is gone"), nobody("it is gone"));
    }
}
