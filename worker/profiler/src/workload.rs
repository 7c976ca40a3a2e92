//! A workload: a training program and its description.

use std::collections::BTreeMap;
use std::path::PathBuf;

use cohabit_types::{Bytes, ModelDescription, ModelFamily};

/// A training program that runs until it is stopped and reports its steps.
#[derive(Debug, Clone, PartialEq)]
pub struct ProfileWorkload {
    /// Its name, unique in a comparison, and the same in all runs for one table.
    pub name: String,
    /// The model that is trained.
    pub model: String,
    /// Samples in one step.
    pub batch: u64,
    /// `fp32`, `bf16`; empty if unknown.
    pub precision: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Its working directory.
    pub workdir: PathBuf,
    /// Its memory limit under MPS; `None` for all memory of the GPU.
    pub memory: Option<Bytes>,
    /// Its own variables, besides those of the profiler.
    pub environment: BTreeMap<String, String>,
    /// The description of the model.
    pub description: Option<ModelDescription>,
}

impl ProfileWorkload {
    /// Its description as columns of a table; unknown values have no column.
    pub(super) fn features(&self) -> BTreeMap<String, String> {
        let Some(model) = &self.description else { return BTreeMap::new() };
        let known = [
            ("family", model.family.map(|family| family_word(family).to_owned())),
            ("parameters", model.parameters.map(|count| count.to_string())),
            ("flops_per_sample", model.flops_per_sample.map(|count| count.to_string())),
            ("activation_bytes", model.activation_bytes.map(|bytes| bytes.to_string())),
            ("input_bytes", model.input_bytes.map(|bytes| bytes.to_string())),
        ];
        let known = known.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        let operators = model.operators.iter().map(|(name, count)| (format!("op_{name}"), count.to_string()));
        known.chain(operators).collect()
    }
}

const fn family_word(family: ModelFamily) -> &'static str {
    match family {
        ModelFamily::Cnn => "cnn",
        ModelFamily::Rnn => "rnn",
        ModelFamily::Transformer => "transformer",
        ModelFamily::Embedding => "embedding",
        ModelFamily::Other => "other",
    }
}

#[cfg(test)]
pub(super) mod samples {
    use super::*;

    /// A workload with this name that does nothing.
    pub(crate) fn workload(name: &str) -> ProfileWorkload {
        ProfileWorkload {
            name: name.to_owned(),
            model: format!("{name}-net"),
            batch: 8,
            precision: "fp32".into(),
            command: vec!["true".into()],
            workdir: "/".into(),
            memory: None,
            environment: BTreeMap::new(),
            description: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_becomes_columns() {
        let model = ModelDescription {
            family: Some(ModelFamily::Cnn),
            parameters: Some(25_557_032),
            flops_per_sample: Some(4.1e9),
            operators: [("Conv".to_owned(), 53), ("MatMul".to_owned(), 1)].into(),
            ..ModelDescription::default()
        };
        let workload = ProfileWorkload { description: Some(model), ..samples::workload("a") };
        let expected = [
            ("family", "cnn"),
            ("flops_per_sample", "4100000000"),
            ("op_Conv", "53"),
            ("op_MatMul", "1"),
            ("parameters", "25557032"),
        ];
        let features = workload.features();
        let features: Vec<(&str, &str)> =
            features.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(features, expected);
        assert!(samples::workload("a").features().is_empty());
    }
}
