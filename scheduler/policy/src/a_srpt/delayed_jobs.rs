//! Until when all jobs of a class wait for a better placement, so that a plan need not ask each of them
//! again.
//!
//! For one class the best available slowdown takes few values, and the same one comes back with every plan
//! in which nothing changed for the class. For each slowdown the earliest moment at which a job of the class
//! stops waiting is remembered, or an earlier one, never a later one.

use std::collections::BTreeMap;

use cohabit_types::Time;

use super::delay_rule::DelayRule;
use crate::{ClassId, ClassKey, Profile};

/// Slowdowns that are remembered for one class.
const MAX_SLOWDOWNS: usize = 16;

/// Classes that are remembered; then all are forgotten.
const MAX_CLASSES: usize = 4_096;

/// What is remembered of all classes.
#[derive(Debug, Clone)]
pub(super) struct DelayedJobs {
    delay_rule: DelayRule,
    /// The slowdowns by which each class was tried last, and until when no job of it takes such a placement.
    classes: BTreeMap<ClassKey, Vec<(f64, Time)>>,
}

impl DelayedJobs {
    pub(super) const fn new(delay_rule: DelayRule) -> DelayedJobs {
        DelayedJobs { delay_rule, classes: BTreeMap::new() }
    }

    /// Until when no job of a class takes a placement with this slowdown, where known.
    pub(super) fn delayed_until(&self, class_key: &ClassKey, slowdown: f64) -> Option<Time> {
        let known = self.classes.get(class_key)?.iter().find(|(known, _)| *known == slowdown);
        known.map(|(_, until)| *until)
    }

    /// Counts a job that has been queued since `queued_at`.
    pub(super) fn record_waiting(&mut self, class_key: &ClassKey, profile: &Profile, queued_at: Time) {
        for (slowdown, until) in self.classes.get_mut(class_key).into_iter().flatten() {
            let own = self.delay_rule.ends_at(profile, queued_at, *slowdown).unwrap_or(queued_at);
            *until = own.min(*until);
        }
    }

    /// Remembers the classes of which all jobs were scanned and wait.
    pub(super) fn record_scans(&mut self, scans: ClassScans) {
        let whole = scans.0.into_values().filter(|scan| scan.kind == ScanExtent::Whole);
        for ClassScan { class_key, slowdown, until, .. } in whole {
            if self.classes.len() == MAX_CLASSES && !self.classes.contains_key(&class_key) {
                self.classes.clear();
            }
            let known = self.classes.entry(class_key).or_default();
            known.retain(|(known, _)| *known != slowdown);
            known.truncate(MAX_SLOWDOWNS - 1);
            known.insert(0, (slowdown, until));
        }
    }
}

/// The classes that one plan scans job by job.
#[derive(Debug, Default)]
pub(super) struct ClassScans(BTreeMap<ClassId, ClassScan>);

#[derive(Debug)]
struct ClassScan {
    class_key: ClassKey,
    /// Of the placement by which the last job was tried.
    slowdown: f64,
    /// When the first of the jobs stops waiting.
    until: Time,
    kind: ScanExtent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScanExtent {
    Whole,
    Partial,
}

impl ClassScans {
    /// Whether a job of the class was scanned.
    pub(super) fn has(&self, class: ClassId) -> bool {
        self.0.contains_key(&class)
    }

    /// Records that a job waits until then. A job waits the longer the slower the placement is, so while
    /// placements only become slower, the earliest end found so far is not too late for the last one.
    pub(super) fn note(&mut self, class: ClassId, class_key: &ClassKey, slowdown: f64, until: Time) {
        let new = || ClassScan { class_key: class_key.clone(), slowdown, until, kind: ScanExtent::Whole };
        let scan = self.0.entry(class).or_insert_with(new);
        if slowdown < scan.slowdown {
            scan.kind = ScanExtent::Partial;
        }
        scan.slowdown = slowdown;
        scan.until = scan.until.min(until);
    }

    /// Records that the rest of the class is not scanned.
    pub(super) fn cut_short(&mut self, class: ClassId) {
        if let Some(scan) = self.0.get_mut(&class) {
            scan.kind = ScanExtent::Partial;
        }
    }
}
