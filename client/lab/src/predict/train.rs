//! `predict train`: trains a model, measures its error on held-out data, and stores it.

use cohabit_console::{CommandError, CommandErrorKind, OutputFormat, output};
use cohabit_predict::interference::{
    ColocationTable, DatasetSummary, EvaluationAccumulator, HeldOutMetrics, ModelCard, ModelTrainer,
    StoredModel, TrainError, evaluate,
};

use super::progress::TrainingProgress;
use super::{input, report, text};
use crate::model_directory::unusable;
use crate::output_file::{OutputFile, check_directory};
use crate::predict::arguments::PredictTrainArguments;

pub(super) fn train(arguments: &PredictTrainArguments) -> Result<(), CommandError> {
    arguments.check()?;
    check_directory("--out", &arguments.out)?;
    let report = OutputFile::prepare_if_any("--report", arguments.report.as_ref())?;
    let card = train_and_store(arguments)?;
    match arguments.display.output {
        OutputFormat::Json => output::print_document(&card.without_metadata())?,
        OutputFormat::Table | OutputFormat::Wide => output::print_text(&text::card(&card))?,
        OutputFormat::Quiet => output::print_text(&arguments.out.display().to_string())?,
    }
    let Some(file) = report else { return Ok(()) };
    let page = report::page(&card)?;
    file.write(|to| to.write_all(page.as_bytes()))
}

/// Trains and stores the model, and returns its description.
fn train_and_store(arguments: &PredictTrainArguments) -> Result<ModelCard, CommandError> {
    let ColocationTable { format, sets: measured } = input::measurements(&arguments.data)?;
    let epochs = arguments.epochs.map(|epochs| usize::try_from(epochs).unwrap_or(usize::MAX));
    let training = ModelTrainer { kind: arguments.model, seed: arguments.seed, epochs };
    let progress = TrainingProgress::new(arguments.progress);
    let mut curve = Vec::new();
    let model = training.train(&measured, &mut |epoch| {
        progress.show("the model", epoch);
        curve.push(*epoch);
    });
    let model = model.map_err(|error| untrainable(&error))?;
    let mut held_out = Vec::new();
    for hold_out in &arguments.held.hold_out {
        let observed = arguments.held.observed.unwrap_or(0);
        let mut watch = |held_out: &str, epoch: &_| progress.show(&format!("without {held_out}"), epoch);
        let mut tally = EvaluationAccumulator::default();
        let validated = training.cross_validate(&measured, *hold_out, observed, &mut tally, &mut watch);
        validated.map_err(|error| untrainable(&error))?;
        held_out.push(HeldOutMetrics { split: hold_out.to_string(), observed, figures: tally.figures() });
    }
    let card = ModelCard {
        model: arguments.model.name().to_owned(),
        cohabit: env!("CARGO_PKG_VERSION").to_owned(),
        command: cohabit_console::current_command_line(),
        seed: arguments.seed,
        data: DatasetSummary::of(arguments.data.data.display().to_string(), format, &measured),
        features: model.features(),
        usage: model.usage_sources(),
        training: evaluate(&*model, &measured),
        held_out,
        curve,
        ..ModelCard::default()
    };
    StoredModel { card: card.clone(), model }.save(&arguments.out).map_err(|error| unusable(&error))?;
    Ok(card)
}

fn untrainable(error: &TrainError) -> CommandError {
    let kind = match error {
        TrainError::NoPairs => CommandErrorKind::Impossible("unusable_data"),
        TrainError::Tensors(_) => CommandErrorKind::Internal,
    };
    CommandError::from_error(kind, error)
}
