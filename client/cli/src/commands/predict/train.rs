//! `predict train`: a model is trained, scored on what such models never saw, and kept.

use cohabit_predict::interference::{Card, Data, HeldOut, Stored, Tally, TrainError, Training, evaluate};

use super::bar::Bar;
use super::{input, report, sheet};
use crate::arguments::{Format, PredictTrainArguments};
use crate::failure::{Failure, Trouble};
use crate::output;

pub(super) fn train(arguments: &PredictTrainArguments) -> Result<(), Failure> {
    let card = trained(arguments)?;
    match arguments.display.output {
        Format::Json => output::document(&card.told())?,
        Format::Table | Format::Wide => output::data(&sheet::card(&card))?,
        Format::Quiet => output::data(&arguments.out.display().to_string())?,
    }
    let Some(path) = &arguments.report else { return Ok(()) };
    std::fs::write(path, report::page(&card)?).map_err(|error| {
        let message = format!("cannot write the report to {}: {error}", path.display());
        Failure::new(Trouble::InputOutput, message)
    })
}

/// What is to tell of the model, which lies in its folder by then.
fn trained(arguments: &PredictTrainArguments) -> Result<Card, Failure> {
    let measured = input::measurements(&arguments.data)?;
    let epochs = arguments.epochs.map(|epochs| usize::try_from(epochs).unwrap_or(usize::MAX));
    let training = Training { kind: arguments.model, seed: arguments.seed, epochs };
    let bar = Bar::new(arguments.progress);
    let mut curve = Vec::new();
    let model = training.train(&measured, &mut |epoch| {
        bar.show("the model", epoch);
        curve.push(*epoch);
    });
    let model = model.map_err(|error| untrainable(&error))?;
    let mut held_out = Vec::new();
    for hold_out in &arguments.held.hold_out {
        let observed = arguments.held.observed;
        let mut watch = |held_out: &str, epoch: &_| bar.show(&format!("without {held_out}"), epoch);
        let mut tally = Tally::default();
        let asked = training.cross_validate(&measured, *hold_out, observed, &mut tally, &mut watch);
        asked.map_err(|error| untrainable(&error))?;
        held_out.push(HeldOut { split: hold_out.to_string(), observed, figures: tally.figures() });
    }
    let card = Card {
        model: arguments.model.name().to_owned(),
        cohabit: env!("CARGO_PKG_VERSION").to_owned(),
        command: super::super::typed(),
        seed: arguments.seed,
        data: Data::of(arguments.data.data.display().to_string(), arguments.data.format, &measured),
        features: model.features(),
        training: evaluate(&*model, &measured),
        held_out,
        curve,
        ..Card::default()
    };
    Stored { card: card.clone(), model }.save(&arguments.out).map_err(|error| input::unusable(&error))?;
    Ok(card)
}

fn untrainable(error: &TrainError) -> Failure {
    let trouble = match error {
        TrainError::NoPairs => Trouble::Impossible("unusable_data"),
        TrainError::Tensors(_) => Trouble::Internal,
    };
    Failure::from_error(trouble, error)
}
