//! The memory that a job needs is learned from those that ended, and outlives the head.

use cohabit_types::{
    Bytes, ColocationSample, Device, DeviceId, DeviceKind, DeviceTelemetry, GpuReading, GpuRequest,
    Inventory, JobId, JobSpec, ModelDescription, Outcome, Report, Share,
};

use crate::kit::cluster::{TestClient, TestHead, TestWorker};
use crate::kit::{at, inventory, minute};

const GIB: u64 = 1 << 30;

/// A machine with a GPU.
async fn gpu(head: &TestHead, incarnation: u64) -> TestWorker {
    let gpu = Device::new(DeviceId("gpu-0".into()), DeviceKind::Gpu, "V100", Some(Bytes(16 * GIB)));
    head.worker_with(incarnation, Inventory { devices: vec![gpu], ..inventory() }).await
}

fn resnet(spec: &mut JobSpec) {
    let model = ModelDescription { name: Some("resnet".into()), batch_size: Some(32), ..Default::default() };
    spec.model = Some(model);
}

/// What is predicted for a job that would share and does not say how much it needs.
async fn predicted(client: &TestClient) -> Option<Bytes> {
    let half = |spec: &mut JobSpec| {
        resnet(spec);
        spec.demand.gpus = GpuRequest::Part(Share(500));
    };
    let job = client.submit_like(half).await;
    client.show(job).await.predicted?.gpu_memory
}

/// Runs a job to its end, of which the worker reports this.
async fn run(client: &TestClient, worker: &mut TestWorker, report: impl FnOnce(JobId) -> Report) {
    let job = client.submit_like(resnet).await;
    let rank = worker.next_run().await.attempt.rank(0);
    worker.started(rank).await;
    worker.report(report(job)).await;
    worker.ended(rank, Outcome::Exited(0)).await;
    client.seen(job, |record| record.state.is_terminal()).await;
}

#[tokio::test]
async fn what_a_driver_tells_of_a_job_that_ended_well_is_what_the_next_one_needs() {
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
async fn what_the_history_tells_of_it_is_known_after_a_restart() {
    let head = TestHead::start().await;
    let (client, mut worker) = (head.admin().await, gpu(&head, 1).await);
    let stretch = |job| ColocationSample { memory: Some(Bytes(5 * GIB)), ..minute(1, job, 10.0, &[]) };
    run(&client, &mut worker, |job| Report::Stretches(vec![stretch(job)])).await;
    let head = head.restarted().await;
    let (client, _worker) = (head.admin().await, gpu(&head, 2).await);
    assert!(predicted(&client).await.unwrap() > Bytes(5 * GIB));
}
