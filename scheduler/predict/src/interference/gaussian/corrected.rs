//! Corrects a model by what was observed since it was trained.

use cohabit_policy::interference::{ColocationEstimate, ColocationSet, Interference, MeasuredSet};

use super::prior::ERRORS;
use super::process::{GaussianProcess, Observations};
use super::questions::Questions;
use crate::interference::log_slowdown::{Censoring, ran};

/// A model of any kind, corrected by observations since its training: a Gaussian process learns its errors.
#[derive(Debug)]
pub(crate) struct CorrectedModel {
    base: Box<dyn Interference>,
    /// The process of its errors: logarithms of measured slowdowns, minus the predicted ones.
    errors: Option<GaussianProcess>,
}

impl CorrectedModel {
    /// Corrects a model by these observations.
    pub(crate) fn of(base: Box<dyn Interference>, observed: &[MeasuredSet]) -> CorrectedModel {
        let sets: Vec<ColocationSet> = observed.iter().map(|it| it.set.clone()).collect();
        let mut errors = Observations::default();
        for (predicted, measured) in base.predict(&sets).iter().zip(observed) {
            for (set, member, observed) in ran(std::slice::from_ref(measured)) {
                let error = observed.slowdown.max(1.0).ln() - predicted[member].slowdown.ln();
                errors.add(set, member, error, Censoring::Exact);
            }
        }
        let errors = (!errors.is_empty()).then(|| errors.learn(ERRORS));
        CorrectedModel { base, errors }
    }
}

impl Interference for CorrectedModel {
    fn predict(&self, sets: &[ColocationSet]) -> Vec<Vec<ColocationEstimate>> {
        let mut predicted = self.base.predict(sets);
        let Some(errors) = &self.errors else { return predicted };
        let mut questions = Questions::new(errors);
        for (set, members) in sets.iter().zip(&mut predicted).filter(|(set, _)| set.members.len() > 1) {
            let asked = questions.ask(set);
            for (place, member) in members.iter_mut().enumerate() {
                let error = questions.predict(&asked, place);
                let slowdown = (member.slowdown.ln() + error.mean).exp();
                let uncertainty = member.uncertainty.min(error.variance.sqrt());
                let corrected = ColocationEstimate::slowed(&set.members[place], slowdown, uncertainty);
                let utilization = member.utilization.map(|busy| busy * member.slowdown / corrected.slowdown);
                *member =
                    ColocationEstimate { utilization, memory: member.memory, fits: member.fits, ..corrected };
            }
        }
        predicted
    }
}
