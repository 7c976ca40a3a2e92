//! Measured co-locations as the ground truth of a simulated cluster, and as the models that its jobs train.
//!
//! A table has configurations (a model with a batch size), the speed of each alone, and how much the members
//! of some sets slowed each other down. Jobs draw configurations from it. Gaps are filled once, before the
//! simulation, so that the machines and the predictors share one truth:
//!
//! - a pair that was not measured is slowed by the usual sensitivity and pressure of its members
//!   (`missing_pairs`), and a larger set by the sum of what each partner costs
//!   ([`MeasuredTable`](cohabit_policy::interference::MeasuredTable));
//! - memory that was not measured comes from `memory`, and the utilization of a job from the mutual slowdown
//!   of two copies of it.

mod error;
mod ground_truth;
mod measured_sharing;
mod memory;
mod missing_pairs;
#[cfg(feature = "learned")]
mod read;
mod table;
#[cfg(test)]
#[cfg(feature = "learned")]
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
use self::measured_sharing::{MeasuredSharing, as_measured};
#[cfg(feature = "learned")]
pub use self::read::read_measurements;
use self::table::Table;
use crate::machine_spec::MachineSpec;

/// What was measured on the GPU models of a cluster.
#[derive(Debug, Clone)]
pub struct Measurements {
    trained: Vec<MeasuredConfiguration>,
    /// The values of each configuration alone.
    solos: Arc<SoloMetricsTable>,
    /// Device memory of the machines; the smallest if machines with the same GPU model differ.
    capacities: BTreeMap<GpuKind, Bytes>,
    /// How the devices of measured sets were shared, if the table tells.
    sharing: BTreeMap<GpuKind, Option<SharingStrategy>>,
    /// Every pair of configurations, and the larger sets that were measured.
    sets: Vec<MeasuredSet>,
}

/// A configuration that a job may train.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct MeasuredConfiguration {
    /// Its identity in tables and predictors.
    configuration: Configuration,
    /// One stage on one device.
    pub(super) model: ModelDescription,
    /// Memory on its device.
    pub(super) memory: Bytes,
    /// The fraction of time for which it keeps a device busy alone: the mean over the GPU models.
    pub(super) busy: f64,
}

impl Measurements {
    /// Measurements for the devices of these machines. Only configurations that were measured alone on all
    /// their GPU models, and fit there, are kept.
    ///
    /// # Errors
    /// If nothing was measured on one of the models, or no configuration is left.
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
        // A job does not state its precision: of configurations that differ in nothing else, only the first
        // is kept.
        let identity = |it: &MeasuredConfiguration| (it.configuration.model.clone(), it.configuration.batch);
        trained.dedup_by_key(|it| identity(it));
        if trained.is_empty() {
            return Err(MeasurementsError::NothingFits);
        }
        let known: Vec<Configuration> = trained.iter().map(|it| it.configuration.clone()).collect();
        Ok(Measurements {
            solos: Arc::new(solo_table(&trained, &tables)),
            trained,
            capacities: makes.iter().map(|(make, memory)| (GpuKind::named(make), *memory)).collect(),
            sharing: tables.iter().map(|table| (table.kind(), table.sharing)).collect(),
            sets: tables.into_iter().flat_map(|table| table.completed(&known)).collect(),
        })
    }

    /// The measured table as the truth; sets that it does not know at all follow the law.
    #[must_use]
    pub fn table_truth(&self) -> Arc<dyn Interference> {
        self.truth_from(Arc::new(MeasuredTable::of(&self.sets)))
    }

    /// The max-min sharing law as the truth, from the utilization of each configuration.
    #[must_use]
    pub fn law_truth(&self) -> Arc<dyn Interference> {
        self.truth_from(Arc::new(AnalyticInterference::<MaxMinSharing>::default()))
    }

    /// This model as the truth, from the measured values of each configuration alone.
    #[must_use]
    pub fn truth_from(&self, interference: Arc<dyn Interference>) -> Arc<dyn Interference> {
        let (solos, capacities) = (self.solos.clone(), self.capacities.clone());
        Arc::new(GroundTruth { solos, capacities, by: interference })
    }

    /// A predictor that is asked as if the devices were shared in the way of the measurements.
    #[must_use]
    pub fn with_measured_sharing(&self, predictor: Arc<dyn Interference>) -> Arc<dyn Interference> {
        Arc::new(MeasuredSharing { sharing: self.sharing.clone(), predictor })
    }

    /// Observed sets as if the devices were shared in the way of the measurements.
    #[must_use]
    pub fn in_measured_sharing(&self, sets: &[MeasuredSet]) -> Vec<MeasuredSet> {
        let as_measured =
            |it: &MeasuredSet| MeasuredSet { set: as_measured(&it.set, &self.sharing), ..it.clone() };
        sets.iter().map(as_measured).collect()
    }

    /// The values of each configuration alone on each GPU model: what a policy may know.
    #[must_use]
    pub fn solos(&self) -> Arc<SoloMetricsTable> {
        self.solos.clone()
    }

    /// The configurations that jobs may train.
    pub(super) fn trained(&self) -> &[MeasuredConfiguration] {
        &self.trained
    }
}

impl MeasuredConfiguration {
    /// A member of one table, if it was measured alone in all tables and fits.
    fn on_all(member: &SetMember, tables: &[Table]) -> Option<MeasuredConfiguration> {
        let configuration = member.configuration();
        let of_makes: Option<Vec<(&Table, SoloMetrics)>> =
            tables.iter().map(|table| Some((table, table.solo(&configuration)?))).collect();
        let of_makes = of_makes?;
        let measured = of_makes.iter().filter_map(|(_, solo)| solo.memory).fold(None, greater);
        let memory = measured.map_or_else(|| memory::estimate_memory(member), |bytes| Bytes(bytes as u64));
        let fits = tables.iter().all(|table| memory <= table.memory);
        let busy: f64 = of_makes.iter().filter_map(|(_, solo)| solo.utilization).sum();
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

fn solo_table(trained: &[MeasuredConfiguration], tables: &[Table]) -> SoloMetricsTable {
    let mut solo_table = SoloMetricsTable::default();
    for it in trained {
        for table in tables {
            if let Some(solo) = table.solo(&it.configuration) {
                let solo = SoloMetrics { memory: Some(it.memory.0 as f64), ..solo };
                solo_table.insert(table.kind(), it.configuration.clone(), solo);
            }
        }
    }
    solo_table
}

fn greater(one: Option<f64>, other: f64) -> Option<f64> {
    Some(one.map_or(other, |one| one.max(other)))
}

/// The description that a user would give.
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
