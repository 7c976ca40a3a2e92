//! What a job trains, as far as a predictor of interference can tell: the key of job classes on shared
//! devices.

use std::cmp::Ordering;
use std::sync::Arc;

use cohabit_types::ModelDescription;

use crate::JobTraits;
use crate::total_order::compare_numbers;

/// A workload, compared by value: by the description of its model and, where that has no name, by the job's
/// group. How long it trains and how it is spread over devices means nothing to the jobs beside it, so
/// neither counts.
///
/// It keeps the traits of the job that it was made for; members of one array share those, which makes the
/// comparison of most equal workloads one of two pointers.
#[derive(Debug, Clone)]
pub(crate) struct WorkloadKey(Arc<JobTraits>);

impl WorkloadKey {
    pub(crate) fn of(traits: &Arc<JobTraits>) -> WorkloadKey {
        WorkloadKey(traits.clone())
    }

    /// What stands for the model where its description has no name.
    fn group(&self) -> Option<&str> {
        let is_named = self.0.model.as_ref().is_some_and(|model| model.name.is_some());
        self.0.group.as_deref().filter(|_| !is_named)
    }
}

impl Ord for WorkloadKey {
    fn cmp(&self, other: &WorkloadKey) -> Ordering {
        if Arc::ptr_eq(&self.0, &other.0) {
            return Ordering::Equal;
        }
        let models = match (&self.0.model, &other.0.model) {
            (Some(one), Some(other)) => compare_models(one, other),
            (one, other) => one.is_some().cmp(&other.is_some()),
        };
        models.then_with(|| self.group().cmp(&other.group()))
    }
}

impl PartialOrd for WorkloadKey {
    fn partial_cmp(&self, other: &WorkloadKey) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for WorkloadKey {
    fn eq(&self, other: &WorkloadKey) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for WorkloadKey {}

/// Compares two descriptions by everything that matters to the jobs beside them.
fn compare_models(one: &ModelDescription, other: &ModelDescription) -> Ordering {
    // Every field is named, so that a new one has to be put on one side or the other.
    let ModelDescription {
        name,
        family,
        batch_size,
        precision,
        parameters,
        flops_per_sample,
        activation_bytes,
        input_bytes,
        operators,
        iterations: _,
        epochs: _,
        samples: _,
        stages: _,
    } = one;
    name.cmp(&other.name)
        .then_with(|| family.cmp(&other.family))
        .then_with(|| batch_size.cmp(&other.batch_size))
        .then_with(|| precision.cmp(&other.precision))
        .then_with(|| parameters.cmp(&other.parameters))
        .then_with(|| compare_numbers(*flops_per_sample, other.flops_per_sample))
        .then_with(|| compare_numbers(*activation_bytes, other.activation_bytes))
        .then_with(|| input_bytes.cmp(&other.input_bytes))
        .then_with(|| operators.cmp(&other.operators))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload(group: Option<&str>, model: Option<ModelDescription>) -> WorkloadKey {
        WorkloadKey::of(&Arc::new(JobTraits {
            user: "ada".into(),
            group: group.map(str::to_owned),
            model,
            ..JobTraits::default()
        }))
    }

    fn resnet() -> ModelDescription {
        ModelDescription {
            name: Some("resnet-50".into()),
            batch_size: Some(32),
            flops_per_sample: Some(4.1e9),
            operators: [("Conv".to_owned(), 53)].into(),
            ..ModelDescription::default()
        }
    }

    #[test]
    fn workloads_are_equal_whatever_their_length_and_group() {
        let longer = ModelDescription { iterations: Some(9), epochs: Some(2), samples: Some(7), ..resnet() };
        assert_eq!(workload(None, Some(resnet())), workload(Some("nightly"), Some(longer)));
        assert_eq!(workload(Some("nightly"), None), workload(Some("nightly"), None));
    }

    #[test]
    fn workloads_differ_in_every_field_that_a_predictor_sees() {
        let others = [
            ModelDescription { name: Some("resnet-18".into()), ..resnet() },
            ModelDescription { batch_size: Some(64), ..resnet() },
            ModelDescription { precision: Some("bf16".into()), ..resnet() },
            ModelDescription { parameters: Some(1), ..resnet() },
            ModelDescription { flops_per_sample: Some(4.2e9), ..resnet() },
            ModelDescription { activation_bytes: Some(1.0), ..resnet() },
            ModelDescription { input_bytes: Some(1), ..resnet() },
            ModelDescription { operators: [("Conv".to_owned(), 54)].into(), ..resnet() },
        ];
        let known = workload(None, Some(resnet()));
        for other in others {
            let other = workload(None, Some(other));
            assert_eq!(known.cmp(&other), other.cmp(&known).reverse());
            assert_ne!(known, other);
        }
    }

    #[test]
    fn a_group_counts_only_for_a_model_without_a_name() {
        let unnamed = || Some(ModelDescription { name: None, ..resnet() });
        assert_ne!(workload(Some("a"), unnamed()), workload(Some("b"), unnamed()));
        assert_ne!(workload(Some("a"), None), workload(Some("b"), None));
        assert_eq!(workload(Some("a"), Some(resnet())), workload(Some("b"), Some(resnet())));
    }
}
