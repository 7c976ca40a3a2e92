//! What waits of an application: child jobs, actors that have no job yet, and what is on nodes of which
//! nothing is heard.

use cohabit_client::Client;
use cohabit_client::types::{
    ActorRecord, ActorStage, ApplicationRecord, JobId, JobPhase, JobRecord, NodeRecord, NodeState,
};
use cohabit_console::{CommandError, printable_line};

use crate::render::explanation_document::{
    PlacedProcessDocument, SilentNodeDocument, WaitingActorDocument, WaitingJobDocument, WaitsDocument,
};
use crate::render::{rfc3339, role};

/// What waits of a live application.
pub(super) async fn waits_of(
    client: &Client,
    application: &ApplicationRecord,
) -> Result<WaitsDocument, CommandError> {
    let jobs: Vec<JobId> = [application.job].into_iter().chain(application.runners.iter().copied()).collect();
    let records = client.show(&jobs).await?;
    let nodes = silent_nodes(&client.nodes().await?, &records);
    let children = records.into_iter().filter(|record| record.id != application.job);
    let waiting = children.filter(|record| record.state.phase() == JobPhase::Waiting);
    let jobs = waiting.map(|it| WaitingJobDocument { id: it.id, name: it.name, reason: it.reason }).collect();
    let asked = match application.attempt {
        Some(_) => Some(client.actors(application.job).await),
        None => None,
    };
    let document = |actor: ActorRecord| WaitingActorDocument {
        id: actor.id,
        name: actor.name.unwrap_or(actor.kind),
        reason: actor.why,
    };
    let (actors, problem) = match asked {
        None => (Vec::new(), None),
        Some(Ok(listing)) => {
            let waits = |it: &ActorRecord| matches!(it.state, ActorStage::Queued | ActorStage::Unreachable);
            (listing.actors.into_iter().filter(waits).map(document).collect(), None)
        }
        // Everything else is known without it.
        Some(Err(error)) => (Vec::new(), Some(error.to_string())),
    };
    Ok(WaitsDocument { jobs, actors, nodes, problem })
}

/// The nodes that are away, or were given up, with the processes that are there, or are to start anew.
fn silent_nodes(nodes: &[NodeRecord], records: &[JobRecord]) -> Vec<SilentNodeDocument> {
    let phase = |node: &NodeRecord| match node.state {
        NodeState::Unreachable => Some(JobPhase::Placed),
        NodeState::Lost => Some(JobPhase::Waiting),
        NodeState::Up | NodeState::Paused | NodeState::Draining | NodeState::Drained => None,
    };
    let silent = nodes.iter().filter_map(|node| Some((node, phase(node)?)));
    let document = |(node, phase): (&NodeRecord, JobPhase)| {
        let there = records.iter().filter(|record| record.state.phase() == phase);
        let processes: Vec<_> = there.flat_map(|record| processes_on(&node.name, record)).collect();
        (!processes.is_empty()).then(|| SilentNodeDocument {
            name: node.name.clone(),
            state: node.state,
            since: rfc3339(node.since),
            processes,
        })
    };
    silent.filter_map(document).collect()
}

/// The processes that the latest attempt of a job has, or had, on a node.
fn processes_on(node: &str, record: &JobRecord) -> Vec<PlacedProcessDocument> {
    let ranks = record.latest().map_or(&[][..], |attempt| &attempt.ranks);
    let here = ranks.iter().zip(0..).filter(|(rank, _)| rank.node == node);
    let document = |(_, rank)| PlacedProcessDocument {
        job: record.id,
        rank,
        role: role(record),
        name: record.name.clone(),
    };
    here.map(document).collect()
}

/// A line for each.
pub(super) fn describe_waits(waits: &WaitsDocument) -> String {
    let nodes = waits.nodes.iter().map(describe_node);
    let jobs = waits.jobs.iter().map(|it| format!("Job {} ({}) waits: {}", it.id, it.name, it.reason));
    let actors = waits.actors.iter().map(|it| format!("Actor {} ({}) waits: {}", it.id, it.name, it.reason));
    let problem = waits.problem.iter().map(|it| format!("Whether actors wait for max_gpus is unknown: {it}"));
    let lines = nodes.chain(jobs).chain(actors).chain(problem);
    lines.map(|line| printable_line(&line).into_owned() + "\n").collect()
}

fn describe_node(node: &SilentNodeDocument) -> String {
    let SilentNodeDocument { name, state, since, processes } = node;
    let process =
        |it: &PlacedProcessDocument| format!("{} '{}' (job {}/{})", it.role, it.name, it.job, it.rank);
    let processes = processes.iter().map(process).collect::<Vec<_>>().join(", ");
    match state {
        NodeState::Lost => {
            format!(
                "Node {name} is lost since {since}. What ran there waits for its next attempt: {processes}"
            )
        }
        NodeState::Unreachable
        | NodeState::Up
        | NodeState::Paused
        | NodeState::Draining
        | NodeState::Drained => format!(
            "Node {name} is unreachable since {since}. What runs there waits until it is back, or the head gives it up: \
             {processes}"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::hostile_text::assert_printable;
    use crate::render::samples::{at, nodes, pending, running};

    fn waits(text: &str) -> WaitsDocument {
        let (name, reason) = (text.to_owned(), text.to_owned());
        let process = PlacedProcessDocument {
            job: JobId::new(8),
            rank: 1,
            role: text.to_owned(),
            name: text.to_owned(),
        };
        let node = SilentNodeDocument {
            name: text.to_owned(),
            state: NodeState::Unreachable,
            since: text.to_owned(),
            processes: vec![process],
        };
        WaitsDocument {
            jobs: vec![WaitingJobDocument { id: JobId::new(7), name: name.clone(), reason: reason.clone() }],
            actors: vec![WaitingActorDocument { id: 2, name, reason }],
            nodes: vec![node],
            problem: Some(text.to_owned()),
        }
    }

    #[test]
    fn each_part_that_waits_has_a_line() {
        let lines = "Node x is unreachable since x. What runs there waits until it is back, or the head gives it up: \
                     x 'x' (job 8/1)\n\
                     Job 7 (x) waits: x\nActor 2 (x) waits: x\nWhether actors wait for max_gpus is unknown: x\n";
        assert_eq!(describe_waits(&waits("x")), lines);
        assert_printable(|text| describe_waits(&waits(text)));
    }

    #[test]
    fn a_node_that_is_away_is_told_with_what_it_has_of_the_application() {
        let node = |state| NodeRecord { name: "gpu1".into(), state, since: at(0), ..nodes().remove(0) };
        let child = |record| JobRecord {
            application: Some(JobId::new(3)),
            work: "actor of application 3".into(),
            ..record
        };
        let records = [child(running()), child(pending())];
        assert!(silent_nodes(&[node(NodeState::Up)], &records).is_empty());
        let away = silent_nodes(&[node(NodeState::Unreachable)], &records);
        let [SilentNodeDocument { since, processes, .. }] = away.as_slice() else { panic!("{away:?}") };
        assert_eq!(since, "2026-11-21T08:33:20Z");
        let [process] = processes.as_slice() else { panic!("{processes:?}") };
        assert_eq!((process.job, process.rank, process.role.as_str()), (running().id, 0, "actor"));
        let lost = silent_nodes(&[node(NodeState::Lost)], &records);
        assert!(lost.is_empty(), "what runs is elsewhere by now");
    }
}
