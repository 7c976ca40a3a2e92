//! Tells the head which signals an attempt was sent to stop it.

use cohabit_types::{RankId, Report, Signal};

use crate::interface::WorkerEffect;
use crate::state::Worker;

impl Worker {
    /// Reports the signals among these effects, once for each attempt: those to its lowest rank here. SIGCONT
    /// only lets a suspended process handle the SIGTERM before it.
    pub(crate) fn report_signals(&self, begin: usize, out: &mut Vec<WorkerEffect>) {
        let sent = out[begin..].iter().filter_map(|effect| {
            if let WorkerEffect::Signal(rank, signal, _) = effect { Some((*rank, *signal)) } else { None }
        });
        let counted: Vec<_> =
            sent.filter(|(rank, signal)| *signal != Signal::CONT && self.is_lowest(*rank)).collect();
        for (rank, signal) in counted {
            self.report(Some(Report::SignalSent { attempt: rank.attempt, signal }), out);
        }
    }

    fn is_lowest(&self, rank: RankId) -> bool {
        self.ranks_of(rank.attempt)
            .find(|(_, held)| held.is_live())
            .is_some_and(|(lowest, _)| *lowest == rank)
    }
}
