//! Where the next attempt of a job finds its checkpoints.

use cohabit_types::{
    Bytes, ChangeResult, CheckpointResult, CheckpointSource, DrainRequest, JobChange, JobEventKind, JobId,
    JobSpec, Outcome, Report, Request, RunOrder, StartFailure, StopReason,
};

use super::kit::*;
use crate::interface::Event;

/// Two nodes with one device each.
fn two_nodes() -> TestHead {
    let mut test = TestHead::with_devices(1);
    test.join(2, 1);
    test.orders();
    test
}

impl TestHead {
    fn drain(&mut self, node: &str) {
        self.request(root(), Request::Drain(DrainRequest::new(node)));
    }

    fn resume(&mut self, node: &str) {
        self.request(root(), Request::Resume(node.to_owned()));
    }

    /// Stops this attempt, which ran on this node, and returns the order of the next one.
    fn moved_from(&mut self, node: u64, attempt: u32) -> RunOrder {
        self.orders();
        assert_eq!(self.change(JobChange::Requeue, JobId::new(1)), ChangeResult::Done);
        let stopped = Some(StopReason::Requeued);
        self.ended_on(key(node, 1), rank(1, attempt), Outcome::Exited(0), stopped);
        self.runs().remove(0)
    }
}

fn from(attempt: u32, node: &str) -> Option<CheckpointSource> {
    Some(CheckpointSource { attempt, node: node.into() })
}

#[test]
fn an_attempt_on_another_node_is_told_where_the_checkpoints_are() {
    let mut test = two_nodes();
    test.submit(gpus(1));
    assert_eq!(test.runs()[0].checkpoints, None, "there are none before the first attempt");
    test.drain("node1");
    assert_eq!(test.moved_from(1, 1).checkpoints, from(1, "node1"));
    assert_eq!(
        test.head.checkpoints_for(node(2), rank(1, 2).attempt, 0),
        Some((from(1, "node1").unwrap(), node(1)))
    );
    assert_eq!(test.head.checkpoints_for(node(1), rank(1, 2).attempt, 0), None, "it does not run there");
    assert_eq!(test.head.checkpoints_for(node(2), rank(1, 1).attempt, 0), None, "that attempt has ended");
    assert_eq!(test.head.checkpoints_for(node(2), rank(1, 2).attempt, 1), None, "it has one node");
    assert_eq!(test.moved_from(2, 2).checkpoints, None, "they are on its own node");
    test.resume("node1");
    test.drain("node2");
    assert_eq!(test.moved_from(2, 3).checkpoints, from(3, "node2"), "the latest attempt that ran counts");
}

#[test]
fn an_attempt_that_never_started_has_saved_nothing() {
    let mut test = two_nodes();
    test.submit(gpus(1));
    test.drain("node1");
    test.moved_from(1, 1);
    let failure = StartFailure::NodeProblem("no space is left".into());
    test.ended_on(key(2, 1), rank(1, 2), Outcome::NotStarted(failure), None);
    test.after(cohabit_types::Span::from_secs(3_600));
    let third = test.runs().remove(0);
    assert_eq!((third.attempt.attempt, third.checkpoints), (3, from(1, "node1")));
}

#[test]
fn a_job_that_names_a_directory_finds_it_everywhere() {
    let mut test = two_nodes();
    test.submit(JobSpec { checkpoint: Some("/shared/%j/model-%j".into()), ..gpus(1) });
    assert_eq!(test.runs()[0].spec.checkpoint.as_deref(), Some("/shared/1/model-1"));
    assert_eq!(test.record(JobId::new(1)).labels.checkpoint.as_deref(), Some("/shared/1/model-1"));
    test.drain("node1");
    assert_eq!(test.moved_from(1, 1).checkpoints, None);
}

#[test]
fn the_history_tells_once_what_came_of_checkpoints() {
    let mut test = two_nodes();
    test.submit(gpus(1));
    test.drain("node1");
    let order = test.moved_from(1, 1);
    let result = CheckpointResult::Carried(Bytes(3 << 20));
    let report = Report::Checkpoints { attempt: order.attempt, source: order.checkpoints.unwrap(), result };
    for _ in 0..2 {
        test.event(Event::Report(key(2, 1), report.clone()));
    }
    // Of a node on which it does not run.
    test.event(Event::Report(key(1, 1), report.clone()));
    let history = test.head.job_history(JobId::new(1));
    let told: Vec<String> = history
        .iter()
        .filter(|event| matches!(event.kind, JobEventKind::Checkpoints { .. }))
        .map(|event| event.kind.to_string())
        .collect();
    assert_eq!(told, ["the checkpoints of attempt 1 (3 MiB) were carried from node node1 to node2"]);
}
