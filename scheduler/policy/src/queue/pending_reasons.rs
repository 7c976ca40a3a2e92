//! Why each job of a queue waits, in words.
//!
//! Every class is tried once, as a plan would; nothing is taken.

use std::collections::BTreeMap;

use cohabit_types::{JobId, ReasonCode};

use crate::{FreeNodes, PendingReason, Placer, Profile, Shortage, View};

/// The reasons of jobs by what is free now. `turns` are the jobs in order, each with what all jobs of its
/// class have in common.
pub(crate) fn list_pending_reasons<'p, C: Ord>(
    turns: impl Iterator<Item = (JobId, C)>,
    profile: impl Fn(JobId) -> Option<&'p Profile>,
    placer: &mut impl Placer,
    view: &View,
) -> Vec<PendingReason> {
    let free = FreeNodes::new(&view.nodes);
    let mut shortages: BTreeMap<C, Option<Shortage>> = BTreeMap::new();
    let mut reasons = Vec::new();
    for (ahead, (id, class)) in turns.enumerate() {
        let (Some(job), Some(profile)) = (view.pending.get(&id), profile(id)) else { continue };
        let shortage = shortages.entry(class).or_insert_with(|| placer.place(job, profile, &free).err());
        let reason = explain_wait(id, shortage.as_ref(), ahead);
        reasons.push(PendingReason { runtime: profile.expected_at(1.0), ..reason });
    }
    reasons
}

/// Why a job waits that has `ahead` jobs before it.
pub(crate) fn explain_wait(job: JobId, shortage: Option<&Shortage>, ahead: usize) -> PendingReason {
    let position = match ahead {
        0 => "first in the queue".to_owned(),
        1 => "1 job is ahead in the queue".to_owned(),
        _ => format!("{ahead} jobs are ahead in the queue"),
    };
    let (code, why) = match shortage {
        None => (ReasonCode::WaitingForTurn, position),
        Some(Shortage::Nodes) => (ReasonCode::WaitingForNodes, Shortage::Nodes.to_string()),
        Some(shortage) if ahead == 0 => (shortage.code(), format!("{shortage}. First in the queue")),
        Some(shortage) => (shortage.code(), format!("{shortage}. {position}")),
    };
    PendingReason { job, code, why, not_before: None, runtime: None }
}
