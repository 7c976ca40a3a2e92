//! A policy that hangs or panics affects only its own plans.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cohabit_policy::{
    FreeNodes, PendingJob, PendingReason, Plan, Policy, Proposal, Shortage, View, ViewChange,
};
use cohabit_types::{JobId, Outcome};

use crate::test_kit::cluster::{TestClient, TestHead, policy};
use crate::test_kit::fifo_plan;

/// Hangs in every plan until the test ends.
pub(super) struct HangingPolicy(pub(super) Arc<Mutex<Receiver<()>>>);

impl Policy for HangingPolicy {
    fn learn(&mut self, _: &View, _: &[ViewChange]) {}

    fn explain_pending(&mut self, _: &View) -> Vec<PendingReason> {
        Vec::new()
    }

    fn plan(&mut self, _: &View) -> Plan {
        let ended = self.0.lock().unwrap().recv();
        assert!(ended.is_err());
        Plan::default()
    }

    fn dry_run_on(&mut self, _: &View, _: &PendingJob, _: &FreeNodes<'_>) -> Result<Proposal, Shortage> {
        unreachable!("no test asks for it")
    }
}

/// Panics in its first plan; each later one sends the changes that it learned.
struct PanickingPolicy {
    first: bool,
    changes: Vec<ViewChange>,
    tell: Sender<Vec<ViewChange>>,
}

impl Policy for PanickingPolicy {
    fn learn(&mut self, _: &View, changes: &[ViewChange]) {
        self.changes.extend_from_slice(changes);
    }

    fn explain_pending(&mut self, _: &View) -> Vec<PendingReason> {
        Vec::new()
    }

    fn plan(&mut self, view: &View) -> Plan {
        assert!(!self.first, "a policy of a test panics on purpose");
        // The test may have ended.
        let _ = self.tell.send(self.changes.clone());
        fifo_plan(view)
    }

    fn dry_run_on(&mut self, _: &View, _: &PendingJob, _: &FreeNodes<'_>) -> Result<Proposal, Shortage> {
        unreachable!("no test asks for it")
    }
}

async fn history_of(client: &TestClient, job: JobId) -> String {
    client.explain(job).await.unwrap().history.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn jobs_start_even_if_the_policy_hangs() {
    let (end, ended) = channel();
    let ended = Arc::new(Mutex::new(ended));
    let hanging = policy(move || HangingPolicy(Arc::clone(&ended)));
    let head = TestHead::start_with(hanging, Duration::from_millis(1)).await;
    let (client, mut worker) = (head.admin().await, head.worker(1, vec![]).await);
    let job = client.submit().await;
    worker.run_one(Outcome::Exited(0)).await;
    let history = history_of(&client, job).await;
    assert!(history.contains("first come, first served, because the policy gave no plan"), "{history}");
    drop(end);
}

#[tokio::test]
async fn after_a_panic_a_new_policy_learns_of_the_running_and_pending_jobs() {
    let (tell, reports) = channel();
    let built = Mutex::new(0);
    let panicking = policy(move || {
        let mut built = built.lock().unwrap();
        *built += 1;
        PanickingPolicy { first: *built == 1, changes: vec![], tell: tell.clone() }
    });
    let head = TestHead::start_with(panicking, Duration::from_secs(30)).await;
    let (client, mut worker) = (head.admin().await, head.worker(1, vec![]).await);
    let first = client.submit().await;
    worker.next_run().await;
    assert!(history_of(&client, first).await.contains("it panicked"));
    let second = client.submit().await;
    worker.next_run().await;
    let changes = reports.recv().unwrap();
    let runs = |change: &ViewChange| matches!(change, ViewChange::Running(job) if job.id == first);
    let waits = |change: &ViewChange| matches!(change, ViewChange::Pending(job) if job.id == second);
    assert!(changes.iter().any(runs) && changes.iter().any(waits), "{changes:?}");
}
