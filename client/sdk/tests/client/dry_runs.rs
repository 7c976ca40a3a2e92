//! A job that is only thought of: asked for as it would be submitted, and told where it would go.

use cohabit_client::types::{
    DeviceId, DryRun, DryRunPlacement, JobPrediction, JobSpec, Refusal, RefusalCode, Share,
};
use cohabit_client::{Error, Submission};

use crate::kit::{Call, Cluster, Turn};

fn submission() -> Submission {
    Submission::new(JobSpec::command(vec!["train".into()], "/tmp".into())).unwrap()
}

#[tokio::test]
async fn a_dry_run_submits_nothing() {
    let devices = vec![DeviceId("gpu-0".into())];
    let place = Some(DryRunPlacement { nodes: vec!["gpu1".into()], devices, share: Share::WHOLE });
    let dry_run = DryRun {
        place,
        reason: "it would start at once".into(),
        predicted: JobPrediction::default(),
        slowdown: None,
        neighbors: Vec::new(),
    };
    let cluster = Cluster::new();
    let head = cluster.head([Turn::DryRun(Box::new(dry_run.clone()))]).await;
    assert_eq!(cluster.client_of(head.address).dry_run(&submission()).await.unwrap(), dry_run);
    let spec = Box::new(submission().spec().clone());
    assert_eq!(head.calls(), [Call::DryRun(spec)]);
}

#[tokio::test]
async fn a_job_that_would_be_refused_is_refused() {
    let cluster = Cluster::new();
    let refusal = Refusal::new(RefusalCode::Unsatisfiable, "no node has 9 GPUs");
    let head = cluster.head([Turn::Refuse(refusal.clone())]).await;
    let refused = cluster.client_of(head.address).dry_run(&submission()).await.unwrap_err();
    assert!(matches!(refused, Error::Refused(refused_with) if refused_with == refusal));
}

#[tokio::test]
async fn a_policy_without_an_answer_is_not_asked_again() {
    let cluster = Cluster::new();
    let refusal = Refusal::new(RefusalCode::Unavailable, "the policy did not say where the job would go");
    let head = cluster.head([Turn::Refuse(refusal.clone())]).await;
    let refused = cluster.client_of(head.address).dry_run(&submission()).await.unwrap_err();
    assert!(matches!(refused, Error::Refused(refused_with) if refused_with == refusal));
}
