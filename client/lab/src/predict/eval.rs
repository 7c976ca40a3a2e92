//! `predict eval`: compares the predictions of a trained model with measured sets.

use std::time::Instant;

use cohabit_console::{CommandError, OutputFormat, output, with_schema};
use cohabit_predict::interference::{MeasuredSet, Model, evaluate};

use super::document::EvaluationDocument;
use super::{input, text};
use crate::model_directory::load_model;
use crate::predict::arguments::PredictEvalArguments;

/// Predictions are repeated for this many seconds, because a single one is too short to time.
const TIMING_SECONDS: f64 = 0.2;

pub(super) fn eval(arguments: &PredictEvalArguments) -> Result<(), CommandError> {
    let measured = input::measurements(&arguments.data)?.sets;
    let stored = load_model(&arguments.weights)?;
    let figures = evaluate(&*stored.model, &measured);
    let evaluation = EvaluationDocument {
        model: &stored.card.model,
        figures: &figures,
        usage: stored.model.usage_sources(),
        us_per_set: time(&*stored.model, &measured),
    };
    match arguments.display.output {
        OutputFormat::Json => output::print_document(&with_schema(evaluation)),
        OutputFormat::Table | OutputFormat::Wide => output::print_text(&text::evaluation(&evaluation)),
        OutputFormat::Quiet => output::print_text(&text::percent_or_dash(figures.mape_slowdown)),
    }
}

/// Microseconds per set of two or more members, predicted in one batch; none if there is no such set.
fn time(model: &dyn Model, measured: &[MeasuredSet]) -> Option<f64> {
    let sets: Vec<_> = measured.iter().map(|it| it.set.clone()).filter(|it| it.members.len() > 1).collect();
    if sets.is_empty() {
        return None;
    }
    let begun = Instant::now();
    let mut predicted = 0;
    while predicted == 0 || begun.elapsed().as_secs_f64() < TIMING_SECONDS {
        std::hint::black_box(model.predict(&sets));
        predicted += sets.len();
    }
    Some(begun.elapsed().as_secs_f64() * 1e6 / predicted as f64)
}
