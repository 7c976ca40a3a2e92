//! Tests of the mapper, with a small kit: models in one line, servers in one line, and random jobs that
//! follow from a number.

mod golden;
mod memory;
mod optimality;
mod properties;
mod reference;
mod selection;

use std::sync::Arc;

use cohabit_types::{ModelDescription, PipelineStage};

use super::split_mix::SplitMix64;
use super::{JobGraph, Server};

/// Replicas, seconds, bytes to the next stage, bytes of gradients.
type StageWords = (u32, f64, f64, f64);

const GIGABYTE: f64 = 1e9;
/// Of one device; the network cards are slower.
const INTERCONNECT: f64 = 50.0 * GIGABYTE;
/// 10 Gb/s, in bytes.
const TEN_GIGABIT: f64 = 1.25 * GIGABYTE;

fn model(stages: &[StageWords]) -> ModelDescription {
    let stage = |words: &StageWords| PipelineStage {
        replicas: words.0,
        compute_seconds: words.1,
        compute_seconds_on: Default::default(),
        activation_bytes: words.2,
        gradient_bytes: words.3,
    };
    ModelDescription { stages: stages.iter().map(stage).collect(), ..Default::default() }
}

fn graph(stages: &[StageWords]) -> JobGraph {
    let devices = stages.iter().map(|stage| stage.0).sum();
    JobGraph::of(&model(stages), devices).expect("a sound model")
}

fn server(free: u32, devices: u32) -> Server {
    Server { free, devices, network: TEN_GIGABIT, interconnect: INTERCONNECT, model: "V100".into() }
}

/// Servers of eight devices, with these numbers of free ones.
fn servers(free: &[u32]) -> Vec<Server> {
    free.iter().map(|free| server(*free, 8)).collect()
}

fn of_model(server: Server, model: &str) -> Server {
    Server { model: Arc::from(model), ..server }
}

fn draw_between(draws: &mut SplitMix64, low: f64, high: f64) -> f64 {
    let part = f64::from(draws.below(1 << 20)) / f64::from(1 << 20);
    low * (high / low).powf(part)
}

/// A job with this many devices, cut into stages at random; its sizes span three orders of magnitude.
fn random_stages(seed: u64, devices: u32) -> Vec<StageWords> {
    let mut draws = SplitMix64::new(seed);
    draws.mix(u64::from(devices));
    let mut stages = Vec::new();
    let mut left = devices;
    while left > 0 {
        let replicas = 1 + draws.below(left);
        left -= replicas;
        let seconds = draw_between(&mut draws, 0.01, 0.3);
        let activations = draw_between(&mut draws, 1e6, 1e9);
        stages.push((replicas, seconds, activations, draw_between(&mut draws, 1e6, 1e9)));
    }
    stages
}
