//! The policy learns every change, and answers within its limit, whatever became of the last query.

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};

use cohabit_policy::{FreeNodes, PendingJob, PendingReason, Policy, Proposal, Shortage};

use super::*;
use crate::test_kit::{at, pending_view};

/// Follows a script, one step for each plan.
struct ScriptedPolicy {
    steps: Arc<Mutex<Receiver<ScriptStep>>>,
    seen: u64,
}

enum ScriptStep {
    /// Wakes after as many seconds as there were changes.
    Count,
    Panic,
    /// Hangs until the other end is dropped.
    Hang(Receiver<()>),
}

impl Policy for ScriptedPolicy {
    fn learn(&mut self, _: &View, changes: &[ViewChange]) {
        self.seen += changes.len() as u64;
    }

    fn explain_pending(&mut self, _: &View) -> Vec<PendingReason> {
        Vec::new()
    }

    fn plan(&mut self, _: &View) -> Plan {
        let step = self.steps.lock().unwrap().recv().unwrap();
        match step {
            ScriptStep::Count => Plan { wake: Some(at(self.seen)), ..Plan::default() },
            ScriptStep::Panic => panic!("a policy of a test panics on purpose"),
            ScriptStep::Hang(until) => {
                assert!(until.recv().is_err());
                Plan::default()
            }
        }
    }

    fn dry_run_on(&mut self, _: &View, _: &PendingJob, _: &FreeNodes<'_>) -> Result<Proposal, Shortage> {
        unreachable!("no test asks for it")
    }
}

fn scripted_planner(limit: Duration) -> (std::sync::mpsc::Sender<ScriptStep>, Planner) {
    let (tell, steps) = channel();
    let steps = Arc::new(Mutex::new(steps));
    let policy = move || Box::new(ScriptedPolicy { steps: Arc::clone(&steps), seen: 0 }) as Box<dyn Policy>;
    (tell, Planner::start(Arc::new(policy), limit).unwrap())
}

fn gone(job: u64) -> Vec<ViewChange> {
    vec![ViewChange::Gone(cohabit_types::JobId::new(job))]
}

async fn wake(planner: &Planner, request: u64) -> Option<Time> {
    planner.plan(PlanRequestId(request), at(0)).await.plan.unwrap().wake
}

#[tokio::test]
async fn changes_reach_the_policy_before_the_next_query() {
    let (tell, planner) = scripted_planner(Duration::from_secs(60));
    for query in 1..3 {
        planner.add_changes(gone(query));
        tell.send(ScriptStep::Count).unwrap();
        assert_eq!(wake(&planner, query).await, Some(at(query)));
    }
}

#[tokio::test]
async fn a_policy_that_hangs_is_reported_in_time_and_misses_no_change() {
    let (tell, mut planner) = scripted_planner(Duration::from_millis(1));
    let (release, until) = channel();
    tell.send(ScriptStep::Hang(until)).unwrap();
    let reply = planner.plan(PlanRequestId(1), at(0)).await;
    assert_eq!(reply.plan.unwrap_err(), "it took longer than 1 ms");
    planner.add_changes(gone(1));
    drop(release);
    planner.limit = Duration::from_secs(60);
    tell.send(ScriptStep::Count).unwrap();
    assert_eq!(wake(&planner, 2).await, Some(at(1)));
}

#[tokio::test]
async fn after_a_panic_a_new_policy_learns_the_whole_view() {
    let (tell, planner) = scripted_planner(Duration::from_secs(60));
    planner.add_changes(pending_view().as_changes());
    tell.send(ScriptStep::Panic).unwrap();
    assert_eq!(planner.plan(PlanRequestId(1), at(0)).await.plan.unwrap_err(), "it panicked");
    planner.add_changes(gone(7));
    tell.send(ScriptStep::Count).unwrap();
    let (nodes_and_jobs, later) = (pending_view().as_changes().len() as u64, 1);
    assert_eq!(wake(&planner, 2).await, Some(at(nodes_and_jobs + later)));
}

#[test]
fn a_fallback_plan_says_why_it_replaces_the_policy_s() {
    let plan = fall_back(PlanRequestId(1), &pending_view(), "it panicked");
    let [Action::Place { why, .. }] = &plan.actions[..] else { panic!("{plan:?}") };
    assert!(why.contains("it panicked"), "{why}");
}
