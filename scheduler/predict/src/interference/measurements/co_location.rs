//! Reads the co-location table: a row for each member of a set.

use std::collections::BTreeMap;
use std::io::Read;

use cohabit_policy::interference::{
    ColocationSet, GpuKind, MeasuredMember, MeasuredSet, ModelFeatures, SetMember, SetOutcome, SoloMetrics,
};
use cohabit_types::{CO_LOCATION_COLUMNS, SharingStrategy};

use super::csv_rows::{CsvRow, CsvRows};
use super::error::ReadError;
use super::format::MeasurementFormat;
use super::slowdown::{OUT_OF_RANGE, slowdown_of};
use crate::interference::model_family::FAMILY_NAMES;

const FEASIBLE: [(&str, Feasible); 4] =
    [("true", Feasible::Yes), ("1", Feasible::Yes), ("false", Feasible::No), ("0", Feasible::No)];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Feasible {
    Yes,
    No,
}

/// A set whose rows are being read.
struct PartialSet {
    set: ColocationSet,
    feasible: Feasible,
    observed: Vec<MeasuredMember>,
}

pub(super) fn read(text: impl Read) -> Result<Vec<MeasuredSet>, ReadError> {
    let mut rows = CsvRows::of(text, MeasurementFormat::ColocationSet)?;
    let mut order: Vec<PartialSet> = Vec::new();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    while let Some(cells) = rows.next()? {
        let begun = PartialSet::of(&cells)?;
        let name = cells.name("set")?;
        match places.get(name) {
            Some(place) => order[*place].join(begun, &cells)?,
            None => {
                places.insert(name.to_owned(), order.len());
                order.push(begun);
            }
        }
    }
    Ok(order.into_iter().map(PartialSet::end).collect())
}

impl PartialSet {
    /// The set of one row.
    fn of(cells: &CsvRow<'_>) -> Result<PartialSet, ReadError> {
        let gpu = GpuKind::named(cells.name("gpu")?);
        let feasible = cells.word("feasible", &FEASIBLE)?;
        let member = member(cells)?;
        let observed = match feasible {
            Feasible::Yes => vec![observed(cells, &member)?],
            Feasible::No => Vec::new(),
        };
        let set = ColocationSet {
            gpu,
            sharing: cells.word("sharing", &optional(SharingStrategy::ALL.map(|it| (it.word(), it))))?,
            members: vec![member],
        };
        Ok(PartialSet { set, feasible, observed })
    }

    /// Adds another row of the set.
    fn join(&mut self, more: PartialSet, cells: &CsvRow<'_>) -> Result<(), ReadError> {
        let differs = [
            ("gpu", self.set.gpu != more.set.gpu),
            ("sharing", self.set.sharing != more.set.sharing),
            ("feasible", self.feasible != more.feasible),
        ];
        if let Some((column, _)) = differs.into_iter().find(|(_, differs)| *differs) {
            let set = cells.text("set");
            let why = format!(
                "set {set} has another {column} here than in its first row; all rows of a set describe one measurement"
            );
            return Err(ReadError::Set { line: cells.line(), why });
        }
        self.set.members.extend(more.set.members);
        self.observed.extend(more.observed);
        Ok(())
    }

    fn end(self) -> MeasuredSet {
        let outcome = match self.feasible {
            Feasible::Yes => SetOutcome::Ran(self.observed),
            Feasible::No => SetOutcome::DidNotFit,
        };
        MeasuredSet { set: self.set, outcome }
    }
}

/// The words with their meanings, and an empty text without one.
fn optional<T, const N: usize>(words: [(&'static str, T); N]) -> Vec<(&'static str, Option<T>)> {
    let words = words.into_iter().map(|(word, meaning)| (word, Some(meaning)));
    std::iter::once(("", None)).chain(words).collect()
}

fn member(cells: &CsvRow<'_>) -> Result<SetMember, ReadError> {
    let prefixed = |prefix: &'static str| -> Result<BTreeMap<String, f64>, ReadError> {
        let of_prefix = cells.all().filter_map(|(heading, _)| Some((heading, heading.strip_prefix(prefix)?)));
        let known = of_prefix
            .filter(|(heading, _)| !CO_LOCATION_COLUMNS.contains(heading) && *heading != "solo_spread");
        let mut found = BTreeMap::new();
        for (heading, name) in known {
            if let Some(number) = cells.number(heading, 0.0)? {
                found.insert(name.to_owned(), number);
            }
        }
        Ok(found)
    };
    Ok(SetMember {
        model: cells.name("model")?.to_owned(),
        family: cells.word("family", &optional(FAMILY_NAMES))?,
        batch: cells.count("batch")?,
        precision: cells.text("precision").to_owned(),
        features: ModelFeatures {
            parameters: cells.number("parameters", 0.0)?,
            flops_per_sample: cells.number("flops_per_sample", 0.0)?,
            activation_bytes: cells.number("activation_bytes", 0.0)?,
            input_bytes: cells.number("input_bytes", 0.0)?,
            operators: prefixed("op_")?,
        },
        solo: SoloMetrics {
            rate: cells.number("solo_rate", 0.0)?,
            memory: cells.number("solo_mem", 0.0)?,
            utilization: cells.number("solo_util", 0.0)?,
            others: prefixed("solo_")?,
        },
        claim: None,
    })
}

fn observed(cells: &CsvRow<'_>, member: &SetMember) -> Result<MeasuredMember, ReadError> {
    let positive = |column: &str, rate: Option<f64>| {
        let why = "it must be above 0 where 'feasible' is true: without both rates there is no slowdown";
        rate.filter(|rate| *rate > 0.0).ok_or_else(|| cells.wrong(column, why))
    };
    let alone = positive("solo_rate", member.solo.rate)?;
    let together = positive("rate", cells.number("rate", 0.0)?)?;
    let slowdown = slowdown_of(alone, together).ok_or_else(|| cells.wrong("rate", OUT_OF_RANGE))?;
    Ok(MeasuredMember {
        slowdown,
        memory: cells.number("mem", 0.0)?,
        utilization: cells.number("util", 0.0)?,
    })
}
