//! The memory that a job needs is learned from ended jobs, also across restarts.

use cohabit_types::{
    Bytes, ColocationSample, Device, DeviceId, DeviceKind, DeviceTelemetry, GpuReading, GpuRequest,
    Inventory, JobId, JobSpec, ModelDescription, Outcome, Report, Share,
};

use crate::test_kit::cluster::{TestClient, TestHead, TestWorker};
use crate::test_kit::{at, inventory, minute};

const GIB: u64 = 1 << 30;

/// A worker with a GPU.
async fn gpu(head: &TestHead, incarnation: u64) -> TestWorker {
    let gpu = Device::new(DeviceId("gpu-0".into()), DeviceKind::Gpu, "V100", Some(Bytes(16 * GIB)));
    head.worker_with(incarnation, Inventory { devices: vec![gpu], ..inventory() }).await
}

fn resnet(spec: &mut JobSpec) {
    let model = ModelDescription { name: Some("resnet".into()), batch_size: Some(32), ..Default::default() };
    spec.model = Some(model);
}

/// The predicted memory of a job that shares a GPU and does not state its memory.
async fn predicted(client: &TestClient) -> Option<Bytes> {
    let half = |spec: &mut JobSpec| {
        resnet(spec);
        spec.demand.gpus = GpuRequest::Part(Share(500));
    };
    let job = client.submit_like(half).await;
    client.show(job).await.predicted?.gpu_memory
}

/// Runs a job to its end; the worker reports this about it.
async fn run(client: &TestClient, worker: &mut TestWorker, report: impl FnOnce(JobId) -> Report) {
    let job = client.submit_like(resnet).await;
    let rank = worker.next_run().await.attempt.rank(0);
    worker.started(rank).await;
    worker.report(report(job)).await;
    worker.ended(rank, Outcome::Exited(0)).await;
    client.seen(job, |record| record.state.is_terminal()).await;
}

#[tokio::test]
async fn the_memory_in_telemetry_predicts_the_memory_of_the_next_job() {
    let head = TestHead::start().await;
    let (client, mut worker) = (head.admin().await, gpu(&head, 1).await);
    assert_eq!(predicted(&client).await, None);
    let shown = |job: JobId| {
        let ranks = vec![(job.attempt(1).rank(0), Bytes(3 * GIB))];
        let device = DeviceId("gpu-0".into());
        Report::Telemetry(vec![DeviceTelemetry { device, at: at(1), reading: GpuReading::default(), ranks }])
    };
    worker.run_one(Outcome::Exited(0)).await;
    run(&client, &mut worker, shown).await;
    assert!(predicted(&client).await.unwrap() > Bytes(3 * GIB));
}

#[tokio::test]
async fn the_memory_in_the_history_is_known_after_a_restart() {
    let head = TestHead::start().await;
    let (client, mut worker) = (head.admin().await, gpu(&head, 1).await);
    let sample = |job| ColocationSample { memory: Some(Bytes(5 * GIB)), ..minute(1, job, 10.0, &[]) };
    run(&client, &mut worker, |job| Report::ColocationSamples(vec![sample(job)])).await;
    let head = head.restarted().await;
    let (client, _worker) = (head.admin().await, gpu(&head, 2).await);
    assert!(predicted(&client).await.unwrap() > Bytes(5 * GIB));
}
