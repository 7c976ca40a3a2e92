//! How well a node suits a job, by figures worked out by hand.

use cohabit_types::JobId;

use super::super::candidate_nodes::{Score, rank_nodes};
use super::super::contention_table::ContentionTable;
use super::super::{ClwpNlwpOptions, SimilarityMeasure, SlotNormalization};
use super::{Metrics, knows};
use crate::sharing::Jobs;
use crate::tests::colocated::{runs, training};
use crate::tests::kit::{gpus, node, view};
use crate::{FreeNodes, PendingJob, View};

const ROWS: [(&str, [f64; 2]); 3] = [("light", [0.0, 1.0]), ("middling", [1.0, 0.0]), ("heavy", [0.3, 0.4])];

/// Three nodes: on the first a middling job with a fifth of a device and a heavy one with a whole device, on
/// the second a light one, on the third none.
fn three_nodes() -> View {
    let mut view = view((1..=3).map(|number| node(number, &[1_000; 3])).collect(), vec![]);
    runs(&mut view, training(101, "middling", 100), 0, 0, 50);
    runs(&mut view, PendingJob { demand: gpus(1), ..training(102, "heavy", 100) }, 0, 1, 50);
    runs(&mut view, training(103, "light", 100), 1, 0, 50);
    view
}

/// How well the nodes suit a light job, by their positions.
fn scores(options: ClwpNlwpOptions) -> Vec<(usize, Score)> {
    let (_, context) = knows(Metrics::of(ROWS));
    let view = three_nodes();
    let mut jobs = Jobs::new(context.solos.clone());
    jobs.learn(view.now, &view.as_changes());
    let newcomer = training(1, "light", 100);
    jobs.insert_if_unknown(&newcomer);
    let free = FreeNodes::new(&view.nodes);
    let mut rows = ContentionTable::new(&context);
    let ranked = rank_nodes(JobId::new(1), &newcomer.demand, &free, &mut jobs, &mut rows, &options);
    let position = |ordinal: u64| view.nodes.iter().position(|node| node.ordinal == ordinal).unwrap();
    ranked.into_iter().map(|it| (position(it.node.ordinal), it.score)).collect()
}

#[track_caller]
fn are(options: ClwpNlwpOptions, should: [(usize, f64); 3]) {
    let scores = scores(options);
    let close = |(is, should): (&(usize, Score), &(usize, f64))| {
        is.0 == should.0 && (is.1.cost - should.1).abs() < 1e-12
    };
    assert!(scores.len() == 3 && scores.iter().zip(&should).all(close), "{scores:?}");
}

/// Of the first node's 1.2 busy slots the heavy job has 1, at a cosine of 0.8; the other one is at 0. Its
/// devices are busy for 0.5, 0.94 and 0.
const BUSY: f64 = (0.5 + 0.94) / 3.0;
/// The one device of the second node that is not idle.
const LIGHT: f64 = 0.1 / 3.0;

#[test]
fn similarity_is_weighted_by_busy_slots_and_utilization_is_added() {
    let first = 0.8 / 1.2 + 0.2 * BUSY;
    are(ClwpNlwpOptions::default(), [(2, 0.0), (0, first), (1, 1.0 + 0.2 * LIGHT)]);
}

#[test]
fn weighted_by_all_slots_crowded_nodes_cost_more() {
    let all = ClwpNlwpOptions { slots: SlotNormalization::All, ..ClwpNlwpOptions::default() };
    are(all, [(2, 0.0), (1, 0.2 / 3.0 + 0.2 * LIGHT), (0, 0.8 / 3.0 + 0.2 * BUSY)]);
}

#[test]
fn a_load_counts_how_much_jobs_use_of_the_same_resources() {
    let load = ClwpNlwpOptions { similarity: SimilarityMeasure::Load, mu: 0.0, ..ClwpNlwpOptions::default() };
    are(load, [(2, 0.0), (0, 0.4 / 1.2), (1, 1.0)]);
}

#[test]
fn of_equally_similar_nodes_the_less_busy_one_then_the_first_comes_first() {
    let (_, context) = knows(Metrics::of([]));
    let mut view = view((1..=3).map(|number| node(number, &[1_000])).collect(), vec![]);
    for (node, model) in ["heavy", "light", "light"].into_iter().enumerate() {
        runs(&mut view, training(101 + node as u64, model, 100), node, 0, 50);
    }
    let mut jobs = Jobs::new(context.solos.clone());
    jobs.learn(view.now, &view.as_changes());
    let newcomer = training(1, "light", 100);
    jobs.insert_if_unknown(&newcomer);
    let (free, mut rows) = (FreeNodes::new(&view.nodes), ContentionTable::new(&context));
    let options = ClwpNlwpOptions { mu: 0.0, ..ClwpNlwpOptions::default() };
    let ranked = rank_nodes(newcomer.id, &newcomer.demand, &free, &mut jobs, &mut rows, &options);
    let costs: Vec<f64> = ranked.iter().map(|it| (it.score.cost * 1e9).round()).collect();
    assert_eq!(costs, [1e9; 3], "all are as alike");
    assert_eq!(ranked.iter().map(|it| it.node.ordinal).collect::<Vec<_>>(), [2, 3, 1]);
}
