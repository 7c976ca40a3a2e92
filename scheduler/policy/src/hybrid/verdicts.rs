//! What was found out of newcomers and groups of devices: pairs and whole sets that a predictor was asked
//! about, compared with the limits.
//!
//! A verdict depends on the workloads and on the limits alone, so it is remembered from plan to plan, by the
//! numbers of the newcomer and of the group. Only verdicts for which everything is known are remembered; what
//! they say is what the filter would find again.

use std::collections::BTreeMap;
use std::sync::Arc;

use cohabit_types::Slowdown;

use super::admission::SetAdmission;
use crate::interference::{ColocationEstimate, InternedMember};

/// Verdicts that are remembered; then all are forgotten.
const MAX_REMEMBERED: usize = 131_072;

/// A newcomer by what it is to a predictor, and by its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NewcomerNumber(usize);

/// The sum of the slowdowns of the newcomer and each resident as pairs; the first pair that exceeds a limit,
/// if any.
pub(super) type PairVerdict = Result<f64, (usize, SetAdmission)>;

/// What is known of the newcomer with all residents of a group.
#[derive(Debug)]
pub(super) struct SetVerdict {
    pub(super) admission: SetAdmission,
    /// The estimates of the newcomer and of each resident.
    pub(super) together: Vec<ColocationEstimate>,
}

/// All verdicts.
#[derive(Debug, Default)]
pub(super) struct Verdicts {
    newcomers: BTreeMap<(Arc<InternedMember>, Option<Slowdown>), NewcomerNumber>,
    /// For each newcomer, by the number of the group.
    of_newcomers: Vec<BTreeMap<usize, Verdict>>,
    /// The estimates of the residents of each group without a newcomer.
    without: BTreeMap<usize, Arc<[ColocationEstimate]>>,
    remembered: usize,
}

/// What is known of a newcomer and a group.
#[derive(Debug, Default, Clone)]
pub(super) struct Verdict {
    /// Their pairs.
    pub(super) pairs: Option<PairVerdict>,
    /// The whole set; asked about only where the pairs are admitted.
    pub(super) set: Option<Arc<SetVerdict>>,
}

impl Verdicts {
    /// Forgets everything if too much is remembered.
    pub(super) fn make_room(&mut self) {
        if self.remembered > MAX_REMEMBERED {
            *self = Verdicts::default();
        }
    }

    /// The number of a newcomer with this limit.
    pub(super) fn number_of(
        &mut self,
        newcomer: &Arc<InternedMember>,
        limit: Option<Slowdown>,
    ) -> NewcomerNumber {
        let key = (Arc::clone(newcomer), limit);
        if let Some(number) = self.newcomers.get(&key) {
            return *number;
        }
        let number = NewcomerNumber(self.of_newcomers.len());
        self.newcomers.insert(key, number);
        self.of_newcomers.push(BTreeMap::new());
        number
    }

    /// What is known of a newcomer and a group.
    pub(super) fn of(&self, newcomer: NewcomerNumber, group: usize) -> Verdict {
        self.of_newcomers[newcomer.0].get(&group).cloned().unwrap_or_default()
    }

    /// Remembers what is known of a newcomer and a group.
    pub(super) fn note(&mut self, newcomer: NewcomerNumber, group: usize, verdict: Verdict) {
        self.remembered += 1;
        self.of_newcomers[newcomer.0].insert(group, verdict);
    }

    /// The estimates of the residents of a group without a newcomer, found out at the first question.
    pub(super) fn without_newcomer(
        &mut self,
        group: usize,
        predict: impl FnOnce() -> Vec<ColocationEstimate>,
    ) -> Arc<[ColocationEstimate]> {
        Arc::clone(self.without.entry(group).or_insert_with(|| predict().into()))
    }
}
