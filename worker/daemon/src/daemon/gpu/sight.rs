//! One look at an MPS daemon: whether it is well, and who its clients are.

use std::thread::sleep;
use std::time::Duration;

use cohabit_gpu::mps::{Daemon, Fault, ServerState};

use crate::process::exists;

/// The log may be a moment behind the state.
const LOG_LAG: Duration = Duration::from_millis(300);

/// How closely to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// At its log and its processes.
    Brief,
    /// Also at what the daemon itself says when it is asked, one question at a time.
    Thorough,
}

/// What was seen.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Sight {
    /// All is well. Its clients, if it was asked and has answered.
    Well(Option<Vec<i32>>),
    /// All its clients have lost.
    Broken(Breakdown),
}

/// How a server broke down.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Breakdown {
    /// Processes whose fault it was, as far as the log tells.
    pub(crate) culprits: Vec<i32>,
    pub(crate) detail: String,
}

impl Sight {
    /// Looks; waits for the daemon to answer. A fault is dealt with when all is well again, and not before:
    /// should this worker daemon die in between, the next one sees it, too.
    pub(crate) fn of(daemon: &mut Daemon, depth: Depth) -> Sight {
        let faults = daemon.faults();
        if !faults.is_empty() {
            return Sight::broken(daemon, faults, "it is in fault");
        }
        let sight = match depth {
            Depth::Brief if daemon.processes().into_iter().all(exists) => Sight::Well(None),
            Depth::Brief | Depth::Thorough => Sight::asked(daemon),
        };
        if let Sight::Well(_) = sight {
            daemon.deal_with_log();
        }
        sight
    }

    /// Who does not answer may be busy: that is no breakdown.
    fn asked(daemon: &mut Daemon) -> Sight {
        match daemon.state() {
            ServerState::Fault => Sight::broken(daemon, Vec::new(), "it is in fault"),
            ServerState::Gone => Sight::broken(daemon, Vec::new(), "it is gone, or its daemon"),
            ServerState::Active => Sight::Well(daemon.clients().ok()),
            ServerState::Initializing | ServerState::Unknown => Sight::Well(None),
        }
    }

    /// With what the log tells of it, which may be a moment behind, and names whose fault it was last of all.
    fn broken(daemon: &mut Daemon, mut faults: Vec<Fault>, seen: &str) -> Sight {
        if faults.iter().all(|fault| fault.culprits.is_empty()) {
            sleep(LOG_LAG);
            faults.extend(daemon.faults());
        }
        Sight::Broken(Breakdown::of(faults, seen))
    }
}

impl Breakdown {
    /// Several faults at once are one breakdown: its words are those of the first that names somebody. Where
    /// the log tells of none, they are what was seen.
    fn of(faults: Vec<Fault>, seen: &str) -> Breakdown {
        let named = faults.iter().find(|fault| !fault.culprits.is_empty()).or(faults.first());
        let detail = named.map_or_else(|| seen.to_owned(), |fault| fault.detail.clone());
        Breakdown { culprits: faults.into_iter().flat_map(|fault| fault.culprits).collect(), detail }
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
        let expected = Breakdown { culprits: vec![7, 8], detail: "7 did it".into() };
        assert_eq!(Breakdown::of(faults, "it is in fault"), expected);
    }

    #[test]
    fn a_breakdown_of_which_the_log_tells_little_or_nothing_names_nobody() {
        let nobody = |detail: &str| Breakdown { culprits: vec![], detail: detail.into() };
        let told = Breakdown::of(vec![fault(&[], "a fatal error")], "it is in fault");
        assert_eq!(told, nobody("a fatal error"));
        assert_eq!(Breakdown::of(vec![], "it is gone"), nobody("it is gone"));
    }
}
