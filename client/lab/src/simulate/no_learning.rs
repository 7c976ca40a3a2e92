//! Replaces `learning.rs` in a program that was built without the feature `online`.

use std::convert::Infallible;

use cohabit_console::{CommandError, CommandErrorKind};
use cohabit_sim::maifs::Agents;
use cohabit_sim::workload::Measurements;
use cohabit_sim::{Evaluation, EvaluationResult, InterferenceContext, Observer};

use crate::simulate::arguments::Predictor;

/// No such value exists.
pub(super) struct OnlineLearning(Infallible);

impl OnlineLearning {
    pub(super) fn of(
        _: &Predictor,
        _: Option<&Measurements>,
        _: &InterferenceContext,
    ) -> Result<OnlineLearning, CommandError> {
        let message = "cannot learn online: this program was built without the feature `online`";
        Err(CommandError::new(CommandErrorKind::Usage, message))
    }

    pub(super) fn evaluate(
        &self,
        _: Evaluation,
        _: &mut dyn Observer,
        _: Option<Box<dyn Agents>>,
    ) -> Result<(EvaluationResult, usize), CommandError> {
        match self.0 {}
    }
}
