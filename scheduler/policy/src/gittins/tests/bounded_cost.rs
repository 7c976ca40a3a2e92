//! What one piece of news costs does not grow with the number of jobs that wait.

use std::sync::Arc;

use cohabit_types::{JobId, Placement, Span, Time};

use super::kit::order;
use crate::gittins::GittinsOrder;
use crate::tests::kit::{gpus, job, node};
use crate::{FirstFit, PendingJob, Policy, View, ViewChange};

const WAITING: u64 = 100_000;
/// Jobs of one batch: they have one rank.
const BATCH: u64 = 20;
/// With one piece of news: eight of its session, eight waiting and eight running ones in turn.
const RANKED_AT_ONCE: usize = 24;
const DEVICES: usize = 40;

/// A job of the batch of its number: one of several thousand entries in the queue.
fn waiting(number: u64) -> PendingJob {
    let mut job = job(number, gpus(1));
    let traits = Arc::make_mut(&mut job.traits);
    let batch = number / BATCH;
    (traits.user, traits.name) = (format!("user {}", batch % 100), format!("batch {batch}"));
    PendingJob { submitted_at: Time::from_micros(number), eligible_at: Time::from_micros(number), ..job }
}

/// The rank of one job of each batch, and of those that run.
fn ranks(order: &GittinsOrder<FirstFit>, view: &View) -> Vec<(JobId, f64)> {
    let waiting = view
        .pending
        .keys()
        .filter(|id| id.number % BATCH == 1)
        .map(|id| (*id, order.state.waiting.entry_of(*id).unwrap().rank.value));
    let running = order.state.running.iter().map(|entry| (entry.job.id, entry.rank.value));
    waiting.chain(running).collect()
}

/// Tells the order the change and lets it plan; returns how many known jobs have another rank then.
fn ranked_anew(order: &mut GittinsOrder<FirstFit>, view: &mut View, change: ViewChange) -> usize {
    let before = ranks(order, view);
    let changes = [change];
    view.apply(&changes);
    order.learn(view, &changes);
    assert!(order.plan(view).actions.is_empty(), "nothing is free, and nobody may be stopped");
    let after: std::collections::BTreeMap<JobId, f64> = ranks(order, view).into_iter().collect();
    before.iter().filter(|(job, rank)| after.get(job).is_some_and(|new| new != rank)).count()
}

#[test]
fn few_jobs_are_ranked_anew_with_each_piece_of_news_among_100_000() {
    let server = node(1, &[0; DEVICES]);
    let mut view = View { nodes: vec![server], ..View::default() };
    for number in 0..DEVICES {
        let id = WAITING + number as u64;
        let parts = vec![view.nodes[0].part(&gpus(1), vec![view.nodes[0].devices[number].id.clone()])];
        let mut job = waiting(id);
        Arc::make_mut(&mut job.traits).preemptible = false;
        view.running.insert(JobId::new(id), job.placed(Placement { parts }, Time::EPOCH));
    }
    view.pending = (0..WAITING).map(|number| (JobId::new(number), waiting(number))).collect();
    let mut order = order("", FirstFit);
    order.learn(&view, &view.as_changes());
    assert_eq!(order.plan(&view).actions, []);
    let mut most = 0;
    for step in 0..6 {
        // Less than the end of the first bin in all, so that the end is the only news.
        view.now = Time::EPOCH + Span::from_secs(4 * (step + 1));
        let news = match step % 3 {
            0 => ViewChange::Gone(JobId::new(WAITING + step)),
            1 => ViewChange::Pending(waiting(2 * WAITING + step)),
            _ => ViewChange::Gone(JobId::new(step * BATCH)),
        };
        most = most.max(ranked_anew(&mut order, &mut view, news));
    }
    assert!((1..=RANKED_AT_ONCE).contains(&most), "{most} jobs were ranked anew at once");
}
