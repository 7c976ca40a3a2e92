//! Gavel's measured pairs, flattened to a row for each pair.
//!
//! Only what was measured together counts: rows of the source `oracle`. Those of `sim` have rates alone that
//! its makers' machine held down.

use std::io::Read;

use cohabit_policy::interference::{CoLocation, GpuKind, MeasuredSet, Member, Observed, Outcome, Solo};
use cohabit_types::Family;

use super::cells::{Cells, Rows};
use super::{Format, ReadError};

const COLUMNS: [&str; 11] =
    ["source", "gpu", "model1", "batch1", "model2", "batch2", "co1", "co2", "iso1", "iso2", "feasible"];

const FEASIBLE: [(&str, bool); 2] = [("1", true), ("0", false)];

/// The source whose pairs and single jobs go together.
const SOURCE: &str = "oracle";

pub(super) fn read(text: impl Read) -> Result<Vec<MeasuredSet>, ReadError> {
    let mut rows = Rows::of(text, Format::GavelPairs, &COLUMNS)?;
    let mut sets = Vec::new();
    while let Some(cells) = rows.next()? {
        if cells.text("source") == SOURCE {
            sets.push(pair(&cells)?);
        }
    }
    Ok(sets)
}

fn pair(cells: &Cells<'_>) -> Result<MeasuredSet, ReadError> {
    let members =
        vec![member(cells, ["model1", "batch1", "iso1"])?, member(cells, ["model2", "batch2", "iso2"])?];
    let outcome = if cells.word("feasible", &FEASIBLE)? {
        Outcome::Ran(vec![slowdown(cells, "iso1", "co1")?, slowdown(cells, "iso2", "co2")?])
    } else {
        Outcome::DidNotFit
    };
    let gpu = GpuKind::named(cells.name("gpu")?);
    Ok(MeasuredSet { set: CoLocation { gpu, sharing: None, members }, outcome })
}

/// A batch size of 0 means that none is told.
fn member(cells: &Cells<'_>, [model, batch, rate]: [&str; 3]) -> Result<Member, ReadError> {
    let model = cells.name(model)?.to_owned();
    let solo = Solo { rate: cells.number(rate, 0.0)?, ..Solo::default() };
    let batch = cells.count(batch)?.filter(|batch| *batch > 0);
    Ok(Member { family: family(&model), model, batch, solo, ..Member::default() })
}

fn slowdown(cells: &Cells<'_>, alone: &str, together: &str) -> Result<Observed, ReadError> {
    let rate = |column: &str| {
        let why = "it must be above 0 where 'feasible' is 1: without both rates there is no slowdown";
        cells.number(column, 0.0)?.filter(|rate| *rate > 0.0).ok_or_else(|| cells.wrong(column, why))
    };
    Ok(Observed { slowdown: rate(alone)? / rate(together)?, ..Observed::default() })
}

/// The broad kinds of Gavel's models.
fn family(model: &str) -> Option<Family> {
    match model {
        "ResNet-18" | "ResNet-50" | "CycleGAN" => Some(Family::Cnn),
        "LM" => Some(Family::Rnn),
        "Transformer" => Some(Family::Transformer),
        "Recommendation" => Some(Family::Embedding),
        "A3C" => Some(Family::Other),
        _ => None,
    }
}
