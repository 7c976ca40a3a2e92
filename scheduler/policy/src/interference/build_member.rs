//! Makes a member of a co-location set from a job; nothing else in the workspace does.
//!
//! The workload's name comes from the description of its model, or else from its group, since jobs of one
//! group are assumed to train the same. What it does alone comes from measurements; where there are none,
//! what the job asks for stands for what it needs.

use cohabit_types::{Demand, GpuRequest, ModelDescription};

use super::{Configuration, GpuKind, ModelFeatures, SetMember, SoloMetrics, SoloMetricsTable};
use crate::JobTraits;

/// The job as a member of a set on this kind of GPU. Where no measurement tells its memory, the memory that
/// it asks for counts.
#[must_use]
pub fn build_member(
    demand: &Demand,
    traits: &JobTraits,
    gpu: &GpuKind,
    table: &SoloMetricsTable,
) -> SetMember {
    let model = traits.model.as_ref();
    let named = model.and_then(|it| it.name.as_ref()).or(traits.group.as_ref());
    let asked = Configuration {
        model: named.cloned().unwrap_or_default(),
        batch: model.and_then(|it| it.batch_size),
        precision: model.and_then(|it| it.precision.clone()).unwrap_or_default(),
    };
    let known = table.find(gpu, &asked);
    let (Configuration { model: name, batch, precision }, solo) =
        known.map_or((asked.clone(), SoloMetrics::default()), |(known, solo)| (known.clone(), solo.clone()));
    let asked_for = demand.gpu_memory.map(|memory| memory.0 as f64);
    SetMember {
        model: name,
        family: model.and_then(|it| it.family),
        batch,
        precision,
        features: model.map(ModelFeatures::of).unwrap_or_default(),
        solo: SoloMetrics { memory: solo.memory.or(asked_for), ..solo },
        claim: match demand.gpus {
            GpuRequest::Part(share) => Some(share.as_f64()),
            GpuRequest::Whole(_) => None,
        },
    }
}

impl ModelFeatures {
    /// The features that a description states.
    #[must_use]
    pub fn of(model: &ModelDescription) -> ModelFeatures {
        let operators = model.operators.iter().map(|(name, count)| (name.clone(), *count as f64));
        ModelFeatures {
            parameters: model.parameters.map(|it| it as f64),
            flops_per_sample: model.flops_per_sample,
            activation_bytes: model.activation_bytes,
            input_bytes: model.input_bytes.map(|it| it as f64),
            operators: operators.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use cohabit_types::{Bytes, ModelFamily};

    use super::*;

    fn traits(group: Option<&str>, model: Option<ModelDescription>) -> JobTraits {
        JobTraits { user: "ada".into(), group: group.map(str::to_owned), model, ..JobTraits::default() }
    }

    fn resnet() -> ModelDescription {
        ModelDescription {
            name: Some("resnet-50".into()),
            family: Some(ModelFamily::Cnn),
            batch_size: Some(32),
            parameters: Some(25_000_000),
            ..ModelDescription::default()
        }
    }

    fn table() -> SoloMetricsTable {
        let mut table = SoloMetricsTable::default();
        let known = Configuration { model: "resnet-50".into(), batch: Some(32), precision: "bf16".into() };
        let solo = SoloMetrics { utilization: Some(0.9), memory: Some(7e9), ..SoloMetrics::default() };
        table.insert(GpuKind::named("v100"), known, solo);
        table
    }

    fn member(group: Option<&str>, model: Option<ModelDescription>, gpu: &str) -> SetMember {
        let demand = Demand { gpu_memory: Some(Bytes(8_000)), ..Demand::default() };
        build_member(&demand, &traits(group, model), &GpuKind::named(gpu), &table())
    }

    #[test]
    fn a_described_job_has_the_measurements_of_its_configuration() {
        let known = member(Some("nightly"), Some(resnet()), "v100");
        assert_eq!(
            (known.model.as_str(), known.batch, known.precision.as_str()),
            ("resnet-50", Some(32), "bf16")
        );
        assert_eq!((known.solo.utilization, known.solo.memory), (Some(0.9), Some(7e9)));
        assert_eq!((known.family, known.features.parameters), (Some(ModelFamily::Cnn), Some(25e6)));
    }

    #[test]
    fn a_job_with_a_precision_has_the_measurements_of_that_precision_only() {
        let utilization_with = |precision: &str| {
            let model = ModelDescription { precision: Some(precision.into()), ..resnet() };
            member(None, Some(model), "v100").solo.utilization
        };
        assert_eq!((utilization_with("bf16"), utilization_with("fp32")), (Some(0.9), None));
    }

    #[test]
    fn on_a_gpu_without_measurements_only_claims_count() {
        let unmeasured = member(None, Some(resnet()), "k80");
        assert_eq!((unmeasured.model.as_str(), unmeasured.precision.as_str()), ("resnet-50", ""));
        assert_eq!((unmeasured.solo.utilization, unmeasured.solo.memory), (None, Some(8_000.0)));
    }

    #[test]
    fn without_a_description_the_group_names_the_workload() {
        assert_eq!(member(Some("resnet-50"), None, "v100").model, "resnet-50");
        let unnamed = ModelDescription { name: None, ..resnet() };
        assert_eq!(member(Some("resnet-50"), Some(unnamed), "v100").solo.utilization, Some(0.9));
        assert_eq!(member(None, None, "v100").model, "");
    }
}
