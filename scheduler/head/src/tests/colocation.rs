//! What clients see of jobs that share a device, and dry runs.

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cohabit_types::{
    Demand, DeviceId, DryRun, GpuRequest, JobId, JobSpec, RefusalCode, Share, Slowdown, Submit,
};

use super::planning::HangingPolicy;
use crate::test_kit::cluster::{TestClient, TestHead, policy};
use crate::test_kit::spec;
use crate::{HeadOptions, InterferenceSource};

fn half() -> JobSpec {
    JobSpec { demand: Demand { gpus: GpuRequest::Part(Share(500)), ..Demand::default() }, ..spec() }
}

/// A head that puts every job on the first device with free capacity and predicts analytically.
async fn sharing() -> TestHead {
    let change = |options: &mut HeadOptions| {
        options.policy = "first-fit-sharing".into();
        options.interference = InterferenceSource::Law;
    };
    TestHead::start_like(change).await
}

async fn submit(client: &TestClient, spec: JobSpec) -> JobId {
    let submit = Submit { spec, idempotency_key: None, estimate: None };
    client.try_submit(submit).await.unwrap().job
}

async fn dry_run(client: &TestClient, spec: JobSpec) -> DryRun {
    *client.dry_run(spec).await.unwrap()
}

#[tokio::test]
async fn a_dry_run_names_the_neighbor_that_the_job_then_gets() {
    let head = sharing().await;
    let (client, mut worker) = (head.admin().await, head.worker(1, vec![]).await);
    let resident = submit(&client, half()).await;
    worker.next_run().await;
    let dry_run_result = dry_run(&client, half()).await;
    let place = dry_run_result.place.unwrap();
    assert_eq!((place.nodes, place.devices), (vec!["box".to_owned()], vec![DeviceId("host-0".into())]));
    assert_eq!(dry_run_result.neighbors.iter().map(|it| it.then.job).collect::<Vec<_>>(), [resident]);
    assert!(dry_run_result.neighbors[0].then.predicted.expected > Slowdown::NONE);
    let newcomer = submit(&client, half()).await;
    assert_eq!(newcomer, JobId::new(resident.number + 1), "nothing was submitted before");
    worker.next_run().await;
    let record = client.show(newcomer).await;
    assert_eq!(record.sharing_with, [resident]);
    assert_eq!(record.predicted.unwrap().slowdown, dry_run_result.predicted.slowdown);
    let sentences = client.explain(resident).await.unwrap().sentences;
    assert!(
        sentences.iter().any(|it| it.contains("because it shares a GPU with job 2; slowdown of job 2: ")),
        "{sentences:?}"
    );
}

#[tokio::test]
async fn a_dry_run_is_refused_or_waits_like_a_submission() {
    let head = sharing().await;
    let client = head.admin().await;
    let dry_run_result = dry_run(&client, half()).await;
    assert_eq!(
        (dry_run_result.place, dry_run_result.reason.as_str()),
        (None, "no connected worker accepts jobs")
    );
    let _worker = head.worker(1, vec![]).await;
    let large = JobSpec { demand: Demand { gpus: GpuRequest::Whole(3), ..Demand::default() }, ..spec() };
    let refusal = client.dry_run(large).await.unwrap_err();
    assert_eq!(refusal.code, RefusalCode::Unsatisfiable);
}

#[tokio::test]
async fn a_dry_run_ends_with_an_error_if_the_policy_hangs() {
    let (end, ended) = channel();
    let ended = Arc::new(Mutex::new(ended));
    let hanging = policy(move || HangingPolicy(Arc::clone(&ended)));
    let head = TestHead::start_with(hanging, Duration::from_millis(1)).await;
    let (client, mut worker) = (head.admin().await, head.worker(1, vec![]).await);
    client.submit().await;
    worker.next_run().await;
    let refusal = client.dry_run(spec()).await.unwrap_err();
    assert_eq!(refusal.code, RefusalCode::Unavailable);
    assert!(refusal.message.contains("it took longer than 1 ms"), "{refusal}");
    drop(end);
}
