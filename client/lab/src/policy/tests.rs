//! Trainings of a few episodes: what they store, and what they refuse.

use std::path::Path;

use clap::Parser;
use cohabit_predict::maifs::AgentsCard;

use super::arguments::PolicyTrainArguments;
use super::train::train;
use crate::simulate::{self, SimulateArguments};

/// Two models: one is faster with more cores, the other is not.
const TABLES: &str = "profile,cores,memory_gb,speed\nimages,1,20,0.4\nimages,3,20,1\nimages,12,20,2.4\n\
                      text,1,20,1\ntext,12,20,1\n";

#[derive(Debug, Parser)]
#[command(args_override_self = true)]
struct TrainLine {
    #[command(flatten)]
    train: PolicyTrainArguments,
}

#[derive(Debug, Parser)]
struct SimulateLine {
    #[command(flatten)]
    simulate: SimulateArguments,
}

/// Trains in a directory `name` of `folder`, on a few jobs.
fn train_in(folder: &Path, name: &str, more: &str) -> Result<(), String> {
    let (tables, out) = (folder.join("tables.csv"), folder.join(name));
    std::fs::write(&tables, TABLES).unwrap();
    let few = "cohabit --trace synthetic:40 --cluster 2x4:V100@25g,24c500G --episode-jobs 30 --taught 1 \
               --episodes 2 --validation 1 --output quiet";
    let mut words: Vec<String> = few.split_whitespace().map(str::to_owned).collect();
    words.extend(more.split_whitespace().map(str::to_owned));
    for (flag, path) in [("--sensitivity", &tables), ("--out", &out)] {
        words.extend([flag.to_owned(), path.display().to_string()]);
    }
    let line = TrainLine::try_parse_from(words).map_err(|error| error.to_string())?;
    train(&line.train).map_err(|error| error.to_string())
}

/// Golden check 12 of the specification, for the whole command.
#[test]
fn the_same_seed_stores_the_same_agents() {
    let folder = tempfile::tempdir().unwrap();
    for (name, more) in [("one", ""), ("same", ""), ("other", "--seed 2")] {
        train_in(folder.path(), name, more).unwrap();
    }
    let digest = |name: &str| AgentsCard::load(&folder.path().join(name)).unwrap().digest;
    assert_eq!(digest("one"), digest("same"));
    assert_ne!(digest("one"), digest("other"));
    let card = AgentsCard::load(&folder.path().join("one")).unwrap();
    assert_eq!(card.training.sensitivities, ["images", "text"]);
    assert!(card.training.updates > 0 && card.validation["mean_jct_seconds"] > 0.0, "{card:?}");
}

#[test]
fn a_simulation_runs_trained_agents() {
    let folder = tempfile::tempdir().unwrap();
    train_in(folder.path(), "agents", "--coordination single --no-attention").unwrap();
    let agents = folder.path().join("agents");
    let words =
        "cohabit --trace synthetic:30 --cluster 2x4:V100@25g,24c500G --policy maifs --output quiet --agents";
    let words = words.split_whitespace().map(str::to_owned).chain([agents.display().to_string()]);
    simulate::run(&SimulateLine::try_parse_from(words).unwrap().simulate).unwrap();
}

#[test]
fn what_cannot_be_trained_on_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("jobs.csv");
    let rows: String = (0..100).map(|number| format!("{number},60,1\n")).collect();
    std::fs::write(&trace, format!("submit_s,duration_s,gpus\n{rows}")).unwrap();
    let few = format!("--trace {}", trace.display());
    for (more, advice) in [
        (few.as_str(), "an --episode-jobs of at most 20"),
        ("--cluster 2x4:V100@25g", "8x8:V100@25g,24c500G"),
        ("--episode-jobs 1", "2..=100000"),
        ("--load 2..1", "1..2"),
        ("--coordination all", "use dynamic, none, full or single"),
    ] {
        let refusal = train_in(folder.path(), "agents", more).unwrap_err();
        assert!(refusal.contains(advice), "{more}: {refusal}");
    }
    assert!(!folder.path().join("agents").exists());
}
