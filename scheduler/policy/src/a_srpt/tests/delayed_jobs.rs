//! What is remembered of classes that wait for a better placement, and what must not be.

use std::sync::Arc;

use cohabit_types::{ModelDescription, Span, Time};

use super::super::delay_rule::DelayRule;
use super::super::delayed_jobs::{ClassScans, DelayedJobs};
use super::instances::{nodes, place, replicated};
use crate::a_srpt::ASrptOptions;
use crate::queue::QueuedJob;
use crate::tests::cluster::TestJob;
use crate::tests::kit::anywhere;
use crate::{ClassId, ClassKey, PendingQueue, Placer, Profile, View};

const SLOW: f64 = 1.5;

fn at(seconds: u64) -> Time {
    Time::EPOCH + Span::from_secs(seconds)
}

/// A class, its key, and the profile of one of its jobs, which takes 10 s.
fn class() -> (ClassId, ClassKey, Profile) {
    let model = ModelDescription { stages: replicated(2, 0.1, 2e7), ..ModelDescription::default() };
    let job = TestJob::new(1, 0.0, anywhere(2), 100).training(model).pending;
    let mut place = place();
    place.prepare(&View { nodes: nodes(2, 4), ..View::default() });
    let profile = place.profile(&job.demand, &Arc::clone(&job.traits));
    let mut queue = PendingQueue::default();
    queue.insert(&QueuedJob::of(&job, &View::default()), ClassKey::of(&job.demand, &profile), 0);
    (queue.walk(None).next().unwrap().class, ClassKey::of(&job.demand, &profile), profile)
}

/// What is remembered of a class after one scan, for the slowdown of that scan.
fn remembered(look: impl FnOnce(&mut ClassScans, ClassId, ClassKey)) -> (DelayedJobs, Option<Time>) {
    let (class, needs, _) = class();
    let (mut delayed_jobs, mut scans) =
        (DelayedJobs::new(DelayRule::new(&ASrptOptions::default())), ClassScans::default());
    look(&mut scans, class, needs.clone());
    delayed_jobs.record_scans(scans);
    let until = delayed_jobs.delayed_until(&needs, SLOW);
    (delayed_jobs, until)
}

#[test]
fn the_earliest_end_of_a_delay_is_remembered_for_each_slowdown() {
    let (delayed_jobs, until) = remembered(|scans, class, needs| {
        scans.note(class, &needs, SLOW, at(30));
        scans.note(class, &needs, SLOW, at(20));
        scans.note(class, &needs, SLOW, at(40));
    });
    assert_eq!((until, delayed_jobs.delayed_until(&class().1, 1.4)), (Some(at(20)), None));
}

#[test]
fn a_class_that_was_scanned_partly_is_not_remembered() {
    let (_, until) = remembered(|scans, class, needs| {
        scans.note(class, &needs, SLOW, at(30));
        scans.cut_short(class);
    });
    assert_eq!(until, None);
}

#[test]
fn placements_that_became_slower_may_be_remembered_and_better_ones_not() {
    let after = |first, then| {
        remembered(|scans, class, needs| {
            scans.note(class, &needs, first, at(30));
            scans.note(class, &needs, then, at(40));
        })
    };
    assert_eq!((after(1.4, SLOW).1, after(1.6, SLOW).1), (Some(at(30)), None));
}

#[test]
fn a_job_that_arrives_later_may_shorten_the_delay() {
    let (mut delayed_jobs, _) = remembered(|scans, class, needs| scans.note(class, &needs, SLOW, at(30)));
    let (_, needs, profile) = class();
    delayed_jobs.record_waiting(&needs, &profile, at(28));
    assert_eq!(delayed_jobs.delayed_until(&needs, SLOW), Some(at(30)));
    delayed_jobs.record_waiting(&needs, &profile, at(20));
    assert_eq!(delayed_jobs.delayed_until(&needs, SLOW), Some(at(20) + Span::from_micros(5_020_000)));
}
