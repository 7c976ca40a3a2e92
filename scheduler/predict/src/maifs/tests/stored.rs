//! Stored agents: what comes back, and what is refused with which sentence.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use candle_core::{Device, Tensor};
use cohabit_policy::maifs::{Agents, Coordination, ObservationShape};

use super::instances::{observation, random, transitions};
use crate::maifs::stored_agents::digest;
use crate::maifs::{AgentsTraining, FeatureScales, Learner, LearnerSettings, NetworkVariant, StoredAgents};

/// A directory that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        Folder(std::env::temp_dir().join(format!("cohabit-agents-{}-{name}", std::process::id())))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap_or_default();
    }
}

fn variant() -> NetworkVariant {
    NetworkVariant { attention: false, coordination: Coordination::Single, ..NetworkVariant::default() }
}

fn stored(variant: NetworkVariant) -> StoredAgents {
    let transitions = transitions(71, 4, ObservationShape { nodes: 2, jobs: 2, levels: 5 });
    let observations: Vec<_> = transitions.iter().map(|it| it.observation.clone()).collect();
    let learner = Learner::new(LearnerSettings::new(variant, 9), FeatureScales::fit(&observations)).unwrap();
    let training = AgentsTraining {
        clusters: vec!["8x4:V100".to_owned()],
        window: 8,
        episodes: 400,
        ..Default::default()
    };
    let validation = [("mean_jct_seconds".to_owned(), 123.5)].into();
    StoredAgents::new(learner.trained().unwrap(), "cohabit policy train".to_owned(), training, validation)
}

fn saved(name: &str) -> Folder {
    let folder = Folder::new(name);
    stored(NetworkVariant::default()).save(&folder.0).unwrap();
    folder
}

#[track_caller]
fn refused(folder: &Path, sentence: &str) {
    let error = StoredAgents::load(folder).unwrap_err().to_string();
    let shown = error.replace(&folder.display().to_string(), "DIR");
    assert_eq!(shown, sentence);
}

/// Changes a field of the card.
fn change(folder: &Path, field: &str, value: serde_json::Value) {
    let path = folder.join("card.json");
    let mut card: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    card[field] = value;
    fs::write(path, serde_json::to_vec(&card).unwrap()).unwrap();
}

#[test]
fn agents_come_back_as_they_were_and_small() {
    for (at, variant) in [NetworkVariant::default(), variant()].into_iter().enumerate() {
        let folder = Folder::new(&format!("back-{at}"));
        let before = stored(variant);
        let mut agents = before.agents().unwrap();
        before.clone().save(&folder.0).unwrap();
        let after = StoredAgents::load(&folder.0).unwrap();
        assert_eq!(after.trained.variant(), variant);
        assert_eq!(after.trained.seed(), 9);
        assert_eq!(
            (&after.card.training, &after.card.validation),
            (&before.card.training, &before.card.validation)
        );
        let seen = observation(&mut random(72), ObservationShape { nodes: 3, jobs: 4, levels: 5 });
        let seen = [std::sync::Arc::new(seen)];
        assert_eq!(after.agents().unwrap().values(&seen), agents.values(&seen));
        let bytes: u64 =
            fs::read_dir(&folder.0).unwrap().map(|it| it.unwrap().metadata().unwrap().len()).sum();
        assert!(bytes <= 200_000, "{bytes} bytes");
    }
}

#[test]
fn a_card_of_something_else_is_refused() {
    let folder = saved("format");
    change(&folder.0, "format", "cohabit-model".into());
    refused(
        &folder.0,
        "DIR/card.json describes 'cohabit-model' instead of 'cohabit-maifs-agents': give the directory that `cohabit policy train` wrote",
    );
    fs::write(folder.0.join("card.json"), "{").unwrap();
    refused(
        &folder.0,
        "DIR/card.json is not a card of MAIFS agents (EOF while parsing an object at line 1 column 1): give the directory that `cohabit policy train` wrote",
    );
}

#[test]
fn another_version_or_shape_is_refused() {
    let folder = saved("version");
    change(&folder.0, "schema", 2.into());
    refused(
        &folder.0,
        "DIR/card.json has format version 2, but this program reads version 1: use the version of Cohabit that wrote it, or train the agents again",
    );
    let folder = saved("shape");
    let mut shape = serde_json::to_value(crate::maifs::NetworkShape::of_levels(5)).unwrap();
    shape["width"] = 16.into();
    change(&folder.0, "shape", shape);
    refused(
        &folder.0,
        "DIR/card.json is for networks of other sizes than those of this program: use the version of Cohabit that wrote it, or train the agents again",
    );
}

#[test]
fn weights_of_another_number_of_levels_are_refused() {
    let folder = saved("levels");
    let change_to = |levels: usize| {
        let shape = serde_json::to_value(crate::maifs::NetworkShape::of_levels(levels)).unwrap();
        change(&folder.0, "shape", shape);
    };
    change_to(1);
    refused(
        &folder.0,
        "DIR/agents.safetensors: 'start.second.bias' has the shape [5] instead of [1]: train the agents again",
    );
    change_to(3);
    refused(
        &folder.0,
        "DIR/card.json is for networks of other sizes than those of this program: use the version of Cohabit that wrote it, or train the agents again",
    );
}

#[test]
fn damaged_and_mixed_up_weights_are_refused() {
    let sentence = "DIR/agents.safetensors is damaged or belongs to another card: copy both files again, or train the agents again";
    let folder = saved("truncated");
    let path = folder.0.join("agents.safetensors");
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    refused(&folder.0, sentence);
    let other = Folder::new("other");
    stored(variant()).save(&other.0).unwrap();
    fs::copy(other.0.join("agents.safetensors"), &path).unwrap();
    refused(&folder.0, sentence);
    fs::remove_file(&path).unwrap();
    refused(&folder.0, "cannot read DIR/agents.safetensors: No such file or directory (os error 2)");
}

#[test]
fn numbers_that_are_not_finite_are_neither_stored_nor_loaded() {
    let mut broken = stored(NetworkVariant::default());
    let infinite = Tensor::new(&[f32::INFINITY], &Device::Cpu).unwrap();
    broken.trained.tensors.insert("payoff.kappa".to_owned(), infinite);
    let folder = Folder::new("infinite");
    let error = broken.clone().save(&folder.0).unwrap_err().to_string();
    assert!(
        error.ends_with("'payoff.kappa' holds numbers that are not finite: train the agents again"),
        "{error}"
    );
    assert!(!folder.0.exists());
    let folder = saved("finite");
    let path = folder.0.join("agents.safetensors");
    let bytes = safetensors::serialize(&broken.trained.tensors, None).unwrap();
    fs::write(&path, &bytes).unwrap();
    change(&folder.0, "digest", digest(&bytes).into());
    refused(
        &folder.0,
        "DIR/agents.safetensors: 'payoff.kappa' holds numbers that are not finite: train the agents again",
    );
}

#[test]
fn an_unknown_coordination_is_refused() {
    let folder = saved("coordination");
    change(&folder.0, "coordination", "static".into());
    refused(
        &folder.0,
        "DIR/card.json: unknown coordination 'static': use dynamic, none, full or single: train the agents again",
    );
}

#[test]
fn weights_that_lack_a_tensor_are_refused() {
    let folder = Folder::new("lack");
    let mut broken = stored(NetworkVariant::default());
    let tensors: &mut BTreeMap<String, Tensor> = &mut broken.trained.tensors;
    tensors.remove("join.weight");
    broken.save(&folder.0).unwrap();
    refused(&folder.0, "DIR/agents.safetensors: the weights lack 'join.weight': train the agents again");
}
