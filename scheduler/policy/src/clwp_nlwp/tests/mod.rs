//! What CLWP and NLWP promise: figures worked out by hand, and where jobs go.

mod assignment;
mod candidate_nodes;
mod conventions;
mod placer;
mod several_devices;
mod tasks;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::interference::{
    AnalyticInterference, ColocationEstimate, ColocationSet, ContentionMetrics, Interference,
    InterferenceContext, MaxMinSharing, SetMember,
};
use crate::tests::colocated::context;

/// The analytic model, with rows of contention metrics by model name, and models beside which no job fits.
#[derive(Debug, Default)]
struct Metrics {
    rows: BTreeMap<&'static str, Vec<f64>>,
    huge: Vec<&'static str>,
    /// The number of sets in each question for slowdowns.
    predicted: Mutex<Vec<usize>>,
    /// The same for rows.
    completed: Mutex<Vec<usize>>,
}

impl Metrics {
    fn of<const N: usize>(rows: [(&'static str, [f64; 2]); N]) -> Metrics {
        let rows = rows.into_iter().map(|(model, row)| (model, row.to_vec())).collect();
        Metrics { rows, ..Metrics::default() }
    }

    fn row(&self, member: &SetMember) -> ContentionMetrics {
        ContentionMetrics(self.rows.get(member.model.as_str()).cloned().unwrap_or_else(|| vec![0.5, 0.5]))
    }
}

impl Interference for Metrics {
    fn predict(&self, sets: &[ColocationSet]) -> Vec<Vec<ColocationEstimate>> {
        self.predicted.lock().unwrap().push(sets.len());
        let mut estimates = AnalyticInterference::<MaxMinSharing>::default().predict(sets);
        for (set, estimates) in sets.iter().zip(&mut estimates) {
            let is_huge = |member: &SetMember| self.huge.contains(&member.model.as_str());
            let fits = if set.members.iter().any(is_huge) { 0.1 } else { 1.0 };
            estimates.iter_mut().for_each(|it| it.fits = fits);
        }
        estimates
    }

    fn contention(&self, sets: &[ColocationSet]) -> Option<Vec<Vec<ContentionMetrics>>> {
        self.completed.lock().unwrap().push(sets.len());
        Some(sets.iter().map(|set| set.members.iter().map(|member| self.row(member)).collect()).collect())
    }
}

/// What is known of the models alone, and these rows.
fn knows(metrics: Metrics) -> (Arc<Metrics>, InterferenceContext) {
    let metrics = Arc::new(metrics);
    let busy = [("heavy", 0.94), ("middling", 0.5), ("shuffle", 0.3), ("light", 0.1)];
    (metrics.clone(), InterferenceContext { interference: metrics, ..context("test GPU", &busy) })
}
