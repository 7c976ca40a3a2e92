//! Trained agents of the policy `maifs`.

use std::path::{Path, PathBuf};

use crate::test_kit::cluster::{TestHead, within};
use crate::test_kit::message_of;
use crate::{HeadDaemon, HeadError, HeadOptions};

/// A start that has to fail, before anything is created.
async fn refused(policy: &str, agents: PathBuf) -> HeadError {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let mut options = HeadOptions::new(&state);
    options.listen = "127.0.0.1:0".parse().unwrap();
    (options.policy, options.agents) = (policy.into(), Some(agents));
    let error = HeadDaemon::start(options).await.map(drop).unwrap_err();
    assert!(!state.exists(), "nothing was created");
    error
}

#[cfg(feature = "learned")]
mod learned {
    use std::collections::BTreeMap;

    use cohabit_predict::maifs::{
        AgentsTraining, FeatureScales, Learner, LearnerSettings, NetworkVariant, StoredAgents,
    };

    use super::*;

    /// Stores agents that have learned nothing.
    fn store_agents(folder: &Path) {
        let settings = LearnerSettings::new(NetworkVariant::default(), 1);
        let learner = Learner::new(settings, FeatureScales::identity()).unwrap();
        let (command, training) = ("cohabit policy train".to_owned(), AgentsTraining::default());
        let trained = learner.trained().unwrap();
        StoredAgents::new(trained, command, training, BTreeMap::new()).save(folder).unwrap();
    }

    #[tokio::test]
    async fn trained_agents_decide() {
        let folder = tempfile::tempdir().unwrap();
        store_agents(folder.path());
        for (policy, agents, why) in [
            ("maifs", Some(folder.path().to_owned()), "chosen by the agents of all nodes together"),
            ("maifs", None, "(no trained agents)"),
            ("fifo", Some(folder.path().to_owned()), "why: \"\""),
        ] {
            let started = TestHead::start_like(|it| (it.policy, it.agents) = (policy.into(), agents));
            let head = started.await;
            let (client, mut worker) = (head.admin().await, head.worker(1, vec![]).await);
            let job = client.submit().await;
            within(worker.next_run()).await;
            let explained = client.explain(job).await.unwrap();
            let history = format!("{:?}", explained.history);
            assert!(history.contains(why), "{policy}: {history}");
        }
    }

    #[tokio::test]
    async fn unusable_agents_are_refused_with_their_file() {
        let folder = tempfile::tempdir().unwrap();
        for policy in ["maifs", "fifo"] {
            let refusal = message_of(&refused(policy, folder.path().to_owned()).await);
            assert!(refusal.starts_with("cannot use the agents of --agents: "), "{refusal}");
            assert!(refusal.contains(&folder.path().join("card.json").display().to_string()), "{refusal}");
        }
        store_agents(folder.path());
        let weights = folder.path().join("agents.safetensors");
        std::fs::write(&weights, "none").unwrap();
        let refusal = message_of(&refused("maifs", folder.path().to_owned()).await);
        assert!(refusal.contains(&weights.display().to_string()), "{refusal}");
    }
}

#[cfg(not(feature = "learned"))]
#[tokio::test]
async fn a_program_without_models_refuses_agents() {
    let refusal = message_of(&refused("maifs", Path::new("agents").to_owned()).await);
    assert!(refusal.contains("cannot load agents (--agents): leave the flag out"), "{refusal}");
}
