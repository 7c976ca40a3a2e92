//! What was measured of jobs beside each other: the truth of a simulated cluster, and what its jobs train.
//!
//! A table knows configurations (a model with a batch size), how fast each is alone, and how much members of
//! some sets slowed each other down. Jobs draw configurations from it; what the table leaves open is filled
//! in once, before anything is simulated, so that there is one truth for the machines and for whoever is to
//! predict them:
//!
//! - a pair that was not measured is slowed by what each of the two usually suffers and usually does to
//!   others (`missing_pairs`), and larger sets by the sum of what each partner costs
//!   ([`MeasuredTable`](cohabit_policy::interference::MeasuredTable));
//! - memory that was not measured comes from `memory`, and how busy a job keeps a GPU from what two of it do
//!   to each other.

mod error;
mod ground_truth;
mod measured_sharing;
mod memory;
mod missing_pairs;
#[cfg(feature = "learned")]
mod read;
mod table;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use cohabit_policy::interference::{
    AnalyticInterference, Configuration, GpuKind, Interference, MaxMinSharing, MeasuredSet, MeasuredTable,
    SetMember, SoloMetrics, SoloMetricsTable,
};
use cohabit_types::{Bytes, ModelDescription, PipelineStage, SharingStrategy};

pub use self::error::MeasurementsError;
use self::ground_truth::GroundTruth;
use self::measured_sharing::MeasuredSharing;
#[cfg(feature = "learned")]
pub use self::read::read_measurements;
use self::table::Table;
use crate::machine_spec::MachineSpec;

/// What was measured on the makes of GPU that a cluster has.
#[derive(Debug, Clone)]
pub struct Measurements {
    trained: Vec<MeasuredConfiguration>,
    /// Each of them alone.
    solos: Arc<SoloMetricsTable>,
    /// Of the machines' devices; the smallest, where there are several of a make.
    capacities: BTreeMap<GpuKind, Bytes>,
    /// How those shared a device that were measured together, where the table tells.
    sharing: BTreeMap<GpuKind, Option<SharingStrategy>>,
    /// Every pair of configurations, and larger sets as far as they were measured.
    sets: Vec<MeasuredSet>,
}

/// A configuration that a job may train.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct MeasuredConfiguration {
    /// What tables and predictors know it by.
    configuration: Configuration,
    /// One stage on one device.
    pub(super) model: ModelDescription,
    /// What it holds on its device.
    pub(super) memory: Bytes,
    /// The part of the time in which it keeps its device busy alone: the mean over the makes.
    pub(super) busy: f64,
}

impl Measurements {
    /// Of the devices of these machines. Only configurations that were measured alone on all of their makes,
    /// and fit there, are kept.
    ///
    /// # Errors
    /// If nothing was measured on one of the makes, or nothing is left that could run.
    pub fn of(measured: &[MeasuredSet], machines: &[MachineSpec]) -> Result<Measurements, MeasurementsError> {
        let mut makes: BTreeMap<&str, Bytes> = BTreeMap::new();
        for machine in machines {
            let memory = machine.device_memory.unwrap_or(Bytes(u64::MAX));
            let smallest = makes.entry(&machine.model).or_insert(memory);
            *smallest = memory.min(*smallest);
        }
        let tables = makes.iter().map(|(make, memory)| Table::of_make(measured, make, *memory));
        let tables = tables.collect::<Result<Vec<Table>, _>>()?;
        let first = tables.first().ok_or(MeasurementsError::NoMachines)?;
        let everywhere = first.members().filter_map(|member| MeasuredConfiguration::on_all(member, &tables));
        let mut trained: Vec<MeasuredConfiguration> = everywhere.collect();
        // A job does not tell its precision: of those that differ in nothing else there is only the first.
        let told = |it: &MeasuredConfiguration| (it.configuration.model.clone(), it.configuration.batch);
        trained.dedup_by_key(|it| told(it));
        if trained.is_empty() {
            return Err(MeasurementsError::NothingFits);
        }
        let known: Vec<Configuration> = trained.iter().map(|it| it.configuration.clone()).collect();
        Ok(Measurements {
            solos: Arc::new(book(&trained, &tables)),
            trained,
            capacities: makes.iter().map(|(make, memory)| (GpuKind::named(make), *memory)).collect(),
            sharing: tables.iter().map(|table| (table.kind(), table.sharing)).collect(),
            sets: tables.into_iter().flat_map(|table| table.completed(&known)).collect(),
        })
    }

    /// The measured table as the truth; what it does not know at all is slowed by the law.
    #[must_use]
    pub fn table_truth(&self) -> Arc<dyn Interference> {
        self.by(Arc::new(MeasuredTable::of(&self.sets)))
    }

    /// The law of slowdown as the truth, from how busy each configuration keeps a GPU.
    #[must_use]
    pub fn law_truth(&self) -> Arc<dyn Interference> {
        self.by(Arc::new(AnalyticInterference::<MaxMinSharing>::default()))
    }

    /// What this says as the truth, from what each configuration is alone.
    #[must_use]
    pub fn by(&self, interference: Arc<dyn Interference>) -> Arc<dyn Interference> {
        let (solos, capacities) = (self.solos.clone(), self.capacities.clone());
        Arc::new(GroundTruth { solos, capacities, by: interference })
    }

    /// A predictor that is asked as if the devices shared as those that were measured.
    #[must_use]
    pub fn with_measured_sharing(&self, predictor: Arc<dyn Interference>) -> Arc<dyn Interference> {
        Arc::new(MeasuredSharing { sharing: self.sharing.clone(), predictor })
    }

    /// Each configuration alone on each make: what a policy may know of it.
    #[must_use]
    pub fn solos(&self) -> Arc<SoloMetricsTable> {
        self.solos.clone()
    }

    /// What jobs may train.
    pub(super) fn trained(&self) -> &[MeasuredConfiguration] {
        &self.trained
    }
}

impl MeasuredConfiguration {
    /// A member of one table, if it was measured alone in all of them and fits.
    fn on_all(member: &SetMember, tables: &[Table]) -> Option<MeasuredConfiguration> {
        let configuration = member.configuration();
        let of_makes: Option<Vec<(&Table, SoloMetrics)>> =
            tables.iter().map(|table| Some((table, table.solo(&configuration)?))).collect();
        let of_makes = of_makes?;
        let measured = of_makes.iter().filter_map(|(_, solo)| solo.memory).fold(None, greater);
        let memory = measured.map_or_else(|| memory::estimate_memory(member), |bytes| Bytes(bytes as u64));
        let fits = tables.iter().all(|table| memory <= table.memory);
        let busy: f64 = of_makes.iter().filter_map(|(_, solo)| solo.utilisation).sum();
        let seconds = |solo: &SoloMetrics| solo.rate.map(f64::recip);
        let seconds_on: BTreeMap<String, f64> =
            of_makes.iter().filter_map(|(table, solo)| Some((table.make.clone(), seconds(solo)?))).collect();
        fits.then(|| MeasuredConfiguration {
            configuration,
            model: description(member, seconds_on),
            memory,
            busy: busy / of_makes.len() as f64,
        })
    }
}

fn book(trained: &[MeasuredConfiguration], tables: &[Table]) -> SoloMetricsTable {
    let mut book = SoloMetricsTable::default();
    for it in trained {
        for table in tables {
            if let Some(solo) = table.solo(&it.configuration) {
                let solo = SoloMetrics { memory: Some(it.memory.0 as f64), ..solo };
                book.insert(table.kind(), it.configuration.clone(), solo);
            }
        }
    }
    book
}

fn greater(one: Option<f64>, other: f64) -> Option<f64> {
    Some(one.map_or(other, |one| one.max(other)))
}

/// What a user would say of it.
fn description(member: &SetMember, seconds_on: BTreeMap<String, f64>) -> ModelDescription {
    let features = &member.features;
    let usual = seconds_on.values().sum::<f64>() / seconds_on.len().max(1) as f64;
    let stage = PipelineStage {
        replicas: 1,
        compute_seconds: usual,
        compute_seconds_on: seconds_on,
        activation_bytes: 0.0,
        gradient_bytes: 0.0,
    };
    ModelDescription {
        name: Some(member.model.clone()),
        family: member.family,
        batch_size: member.batch,
        parameters: features.parameters.map(|it| it as u64),
        flops_per_sample: features.flops_per_sample,
        activation_bytes: features.activation_bytes,
        input_bytes: features.input_bytes.map(|it| it as u64),
        operators: features.operators.iter().map(|(name, count)| (name.clone(), *count as u64)).collect(),
        stages: vec![stage],
        ..ModelDescription::default()
    }
}
