//! Reads Gavel's measured pairs, flattened to a row for each pair.
//!
//! Only rows of the source `oracle` are used, which were measured together. The single rates of the source
//! `sim` were limited by the machine of its authors.

use std::io::Read;

use cohabit_policy::interference::{
    ColocationSet, GpuKind, MeasuredMember, MeasuredSet, SetMember, SetOutcome, SoloMetrics,
};
use cohabit_types::ModelFamily;

use super::csv_rows::{CsvRow, CsvRows};
use super::error::ReadError;
use super::format::MeasurementFormat;
use super::slowdown::{OUT_OF_RANGE, slowdown_of};

const FEASIBLE: [(&str, bool); 2] = [("1", true), ("0", false)];

/// The source whose pairs and single jobs were measured together.
const SOURCE: &str = "oracle";

pub(super) fn read(text: impl Read) -> Result<Vec<MeasuredSet>, ReadError> {
    let mut rows = CsvRows::of(text, MeasurementFormat::GavelPairs)?;
    let mut sets = Vec::new();
    while let Some(cells) = rows.next()? {
        if cells.text("source") == SOURCE {
            sets.push(pair(&cells)?);
        }
    }
    Ok(sets)
}

fn pair(cells: &CsvRow<'_>) -> Result<MeasuredSet, ReadError> {
    let members =
        vec![member(cells, ["model1", "batch1", "iso1"])?, member(cells, ["model2", "batch2", "iso2"])?];
    let outcome = if cells.word("feasible", &FEASIBLE)? {
        SetOutcome::Ran(vec![slowdown(cells, "iso1", "co1")?, slowdown(cells, "iso2", "co2")?])
    } else {
        SetOutcome::DidNotFit
    };
    let gpu = GpuKind::named(cells.name("gpu")?);
    Ok(MeasuredSet { set: ColocationSet { gpu, sharing: None, members }, outcome })
}

/// A batch size of 0 means that there is none.
fn member(cells: &CsvRow<'_>, [model, batch, rate]: [&str; 3]) -> Result<SetMember, ReadError> {
    let model = cells.name(model)?.to_owned();
    let solo = SoloMetrics { rate: cells.number(rate, 0.0)?, ..SoloMetrics::default() };
    let batch = cells.count(batch)?.filter(|batch| *batch > 0);
    Ok(SetMember { family: family(&model), model, batch, solo, ..SetMember::default() })
}

fn slowdown(cells: &CsvRow<'_>, alone: &str, together: &str) -> Result<MeasuredMember, ReadError> {
    let rate = |column: &str| {
        let why = "it must be above 0 where 'feasible' is 1: without both rates there is no slowdown";
        cells.number(column, 0.0)?.filter(|rate| *rate > 0.0).ok_or_else(|| cells.wrong(column, why))
    };
    let ratio = slowdown_of(rate(alone)?, rate(together)?);
    let slowdown = ratio.ok_or_else(|| cells.wrong(together, OUT_OF_RANGE))?;
    Ok(MeasuredMember { slowdown, ..MeasuredMember::default() })
}

/// The families of Gavel's models.
fn family(model: &str) -> Option<ModelFamily> {
    match model {
        "ResNet-18" | "ResNet-50" | "CycleGAN" => Some(ModelFamily::Cnn),
        "LM" => Some(ModelFamily::Rnn),
        "Transformer" => Some(ModelFamily::Transformer),
        "Recommendation" => Some(ModelFamily::Embedding),
        "A3C" => Some(ModelFamily::Other),
        _ => None,
    }
}
