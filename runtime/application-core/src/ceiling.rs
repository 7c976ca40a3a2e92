//! The GPUs that all processes of an application may claim together, and who waits for them.

use std::collections::VecDeque;

use cohabit_types::Share;

use crate::ids::{ActorId, TaskRunnerNumber};

/// The ceiling of an application.
#[derive(Debug)]
pub(crate) struct Ceiling {
    most: Option<Share>,
    /// The GPUs of the node. What is admitted beyond them waits, and takes the place of others that need not.
    capacity: Option<Share>,
    in_use: u32,
    queue: VecDeque<(Claimant, Share)>,
    /// Whether somebody in the queue may have become admissible.
    changed: bool,
}

/// Whose process claims GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Claimant {
    /// Actors that share a job, by the first of them.
    Gang(ActorId),
    TaskRunner(TaskRunnerNumber),
}

/// What became of one in the queue.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// It may be submitted, and counts as using its GPUs from now on.
    Granted(Claimant),
    Waits {
        claimant: Claimant,
        why: String,
    },
}

impl Ceiling {
    pub(crate) const fn new(most: Option<Share>, capacity: Option<Share>) -> Ceiling {
        Ceiling { most, capacity, in_use: 0, queue: VecDeque::new(), changed: false }
    }

    /// The ceiling, if a process with so many GPUs could never be submitted.
    pub(crate) fn forbids(&self, gpus: Share) -> Option<Share> {
        self.most.filter(|most| gpus > *most)
    }

    /// Somebody waits for `admit`.
    pub(crate) fn wait(&mut self, claimant: Claimant, gpus: Share) {
        self.queue.push_back((claimant, gpus));
        self.changed = true;
    }

    /// Somebody waits no longer.
    pub(crate) fn withdraw(&mut self, claimant: Claimant) {
        self.queue.retain(|(queued, _)| *queued != claimant);
        self.changed = true;
    }

    /// The process of somebody who was admitted has ended, or never comes.
    pub(crate) const fn give_back(&mut self, gpus: Share) {
        self.in_use -= gpus.0;
        self.changed = true;
    }

    /// Who waits, in order.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = Claimant> {
        self.queue.iter().map(|(claimant, _)| *claimant)
    }

    /// Why somebody waits who needs so many GPUs.
    pub(crate) fn shortage(&self, gpus: Share) -> String {
        let (in_use, limit) = (Share(self.in_use), self.limit(gpus).unwrap_or_default());
        let whose = if Some(limit) == self.most { "max_gpus" } else { "the node's" };
        format!("needs {gpus} GPUs; {in_use} of {whose} {limit} are in use")
    }

    /// What may be in use together with somebody who needs so many GPUs. Who needs more than the node has is
    /// refused by the head.
    fn limit(&self, gpus: Share) -> Option<Share> {
        let capacity = self.capacity.filter(|capacity| gpus <= *capacity);
        self.most.map(|most| capacity.map_or(most, |capacity| most.min(capacity)))
    }

    /// Somebody in the queue may have become urgent.
    pub(crate) const fn reconsider(&mut self) {
        self.changed = true;
    }

    /// Admits what there is room for, in order. Who needs no GPUs waits for nobody, nor does who is urgent:
    /// others hold GPUs until it has run.
    pub(crate) fn admit(&mut self, is_urgent: impl Fn(Claimant) -> bool) -> Vec<Admission> {
        let mut admissions = Vec::new();
        if !std::mem::take(&mut self.changed) {
            return admissions;
        }
        let mut waiting = VecDeque::new();
        for (claimant, gpus) in std::mem::take(&mut self.queue) {
            let limit = self.limit(gpus);
            let room = limit.is_none_or(|Share(limit)| self.in_use.saturating_add(gpus.0) <= limit);
            if gpus.0 == 0 || (room && (waiting.is_empty() || is_urgent(claimant))) {
                self.in_use += gpus.0;
                admissions.push(Admission::Granted(claimant));
            } else {
                let (before, shortage) = (waiting.len(), self.shortage(gpus));
                let why = format!("{shortage}, and {before} others wait before it");
                admissions.push(Admission::Waits { claimant, why });
                waiting.push_back((claimant, gpus));
            }
        }
        self.queue = waiting;
        admissions
    }
}
