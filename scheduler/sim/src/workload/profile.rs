//! A network on a number of devices: its stages with what they compute and transfer in one iteration.
//!
//! Training uses fp32, so every number takes four bytes. The backward pass costs twice the forward pass.

use std::collections::BTreeMap;

use cohabit_policy::interference::GpuModel;
use cohabit_types::{ModelDescription, PipelineStage};

use super::layers::Layer;
use super::networks::KnownNetwork;

const BYTES_OF_A_NUMBER: f64 = 4.0;
/// The forward pass once, and the backward pass at twice its cost.
const FORWARD_AND_BACKWARD: f64 = 3.0;

/// How training is parallelised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Parallelism {
    /// Every device holds the whole network.
    Data,
    /// The network is cut into two stages.
    TwoStages,
    /// The network is cut into four stages.
    FourStages,
}

impl Parallelism {
    /// The kinds that make sense on this many devices.
    pub(super) const fn possible(devices: u32) -> &'static [Parallelism] {
        match devices {
            0 | 1 => &[Parallelism::Data],
            2 | 3 => &[Parallelism::Data, Parallelism::TwoStages],
            _ => &[Parallelism::Data, Parallelism::TwoStages, Parallelism::FourStages],
        }
    }

    const fn stages(self) -> usize {
        match self {
            Parallelism::Data => 1,
            Parallelism::TwoStages => 2,
            Parallelism::FourStages => 4,
        }
    }
}

/// The description of this training for devices of these models. `batch` is the batch size of one replica.
pub(super) fn describe(
    network: &KnownNetwork,
    parallelism: Parallelism,
    devices: u32,
    batch: u64,
    makes: &[String],
) -> ModelDescription {
    let whole = network.whole();
    let parts = cut(&network.layers, parallelism.stages(), devices);
    let replicas = balance(&parts, devices);
    let samples = batch as f64 * f64::from(devices);
    let stages = parts.iter().zip(replicas).map(|(part, replicas)| stage(part, replicas, samples, makes));
    ModelDescription {
        name: Some(network.name.into()),
        family: Some(network.family),
        batch_size: Some(batch),
        parameters: Some(whole.parameters as u64),
        flops_per_sample: Some(whole.forward * FORWARD_AND_BACKWARD),
        stages: stages.collect(),
        ..ModelDescription::default()
    }
}

/// One stage. Each replica computes its part of the samples of an iteration; the activations are those of all
/// samples.
fn stage(part: &Layer, replicas: u32, samples: f64, makes: &[String]) -> PipelineStage {
    let operations = part.forward * FORWARD_AND_BACKWARD * samples / f64::from(replicas);
    let seconds = |make: GpuModel| operations / make.sustained();
    let of_make =
        |make: &String| (make.clone(), seconds(GpuModel::by_name(make).unwrap_or(GpuModel::FALLBACK)));
    PipelineStage {
        replicas,
        compute_seconds: seconds(GpuModel::FALLBACK),
        compute_seconds_on: makes.iter().map(of_make).collect::<BTreeMap<_, _>>(),
        activation_bytes: part.output * samples * BYTES_OF_A_NUMBER,
        gradient_bytes: part.parameters * BYTES_OF_A_NUMBER,
    }
}

/// Cuts the layers into stages. Every stage but the first is about the work of one device, the first is the
/// rest, so layers with many parameters (at the end of most networks) need not be replicated.
fn cut(layers: &[Layer], stages: usize, devices: u32) -> Vec<Layer> {
    let portion = layers.iter().map(|layer| layer.forward).sum::<f64>() / f64::from(devices.max(1));
    let mut rest = layers;
    let mut parts = Vec::new();
    for left in (1..stages).rev() {
        let count = from_the_end(rest, portion).min(rest.len() - left);
        let (before, part) = rest.split_at(rest.len() - count);
        parts.push(part.iter().copied().sum());
        rest = before;
    }
    parts.push(rest.iter().copied().sum());
    parts.reverse();
    parts
}

/// How many of the last layers come closest to the portion; at least one.
fn from_the_end(layers: &[Layer], portion: f64) -> usize {
    let mut taken = 0.0;
    let near = layers.iter().rev().take_while(|layer| {
        let before = taken;
        taken += layer.forward;
        portion - before > taken - portion
    });
    near.count().max(1)
}

/// Distributes the devices: one for each stage, and each other one to the stage with the most work per
/// device.
fn balance(parts: &[Layer], devices: u32) -> Vec<u32> {
    let mut replicas = vec![1_u32; parts.len()];
    for _ in parts.len()..devices as usize {
        let work = |part: usize| parts[part].forward / f64::from(replicas[part]);
        let busiest = (0..parts.len()).rev().max_by(|a, b| work(*a).total_cmp(&work(*b)));
        busiest.into_iter().for_each(|part| replicas[part] += 1);
    }
    replicas
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::networks::networks;

    fn described(name: &str, parallelism: Parallelism, devices: u32) -> ModelDescription {
        let networks = networks();
        let network = KnownNetwork::by_name(name, &networks).unwrap();
        describe(network, parallelism, devices, network.batch, &["V100".into(), "K80".into()])
    }

    #[test]
    fn every_device_holds_one_replica_whatever_the_network_and_its_parts() {
        for network in networks() {
            for devices in 1..=64 {
                for parallelism in Parallelism::possible(devices) {
                    let model = describe(&network, *parallelism, devices, 8, &[]);
                    let replicas: u32 = model.stages.iter().map(|stage| stage.replicas).sum();
                    let what = format!("{} {parallelism:?} on {devices}", network.name);
                    assert_eq!(replicas, devices, "{what}");
                    assert_eq!(model.stages.len(), parallelism.stages(), "{what}");
                    assert!(model.stages.iter().all(|stage| stage.compute_seconds > 0.0), "{what}");
                }
            }
        }
    }

    #[test]
    fn data_parallel_training_is_the_arithmetic_of_the_network() {
        let model = described("VGG-19", Parallelism::Data, 4);
        let [stage] = &model.stages[..] else { panic!("{model:?}") };
        // 39.3e9 operations forward, three times that in total, 32 samples, at half of 15.7e12 operations per
        // second.
        assert!((stage.compute_seconds / (3.0 * 39.28e9 * 32.0 / 7.85e12) - 1.0).abs() < 0.01);
        assert!((stage.gradient_bytes / (4.0 * 143.67e6) - 1.0).abs() < 0.01);
        let slower = stage.compute_seconds_on["K80"] / stage.compute_seconds_on["V100"];
        assert!((slower - 15.7 / 4.4).abs() < 1e-9, "{slower}");
    }

    #[test]
    fn stages_of_a_pipeline_are_about_as_much_work_for_each_device() {
        let model = described("BERT-large", Parallelism::FourStages, 8);
        let seconds: Vec<f64> = model.stages.iter().map(|stage| stage.compute_seconds).collect();
        let slowest = seconds.iter().copied().fold(0.0, f64::max);
        let mean = described("BERT-large", Parallelism::Data, 8).stages[0].compute_seconds;
        assert!(slowest < 1.2 * mean, "{seconds:?} against {mean}");
        assert!(model.stages[0].replicas >= 4, "{:?}", model.stages);
        // 512 tokens x 1,024 numbers x 4 bytes x 64 samples.
        assert!((model.stages[0].activation_bytes - 512.0 * 1_024.0 * 4.0 * 64.0).abs() < 1.0);
    }

    #[test]
    fn heavy_layers_at_the_end_are_not_replicated() {
        let whole = described("VGG-19", Parallelism::Data, 8).stages[0].gradient_bytes;
        let model = described("VGG-19", Parallelism::TwoStages, 8);
        assert_eq!(model.stages.iter().map(|stage| stage.replicas).collect::<Vec<_>>(), [7, 1]);
        assert!(model.stages[0].gradient_bytes < 0.1 * whole, "{:?}", model.stages);
    }
}
