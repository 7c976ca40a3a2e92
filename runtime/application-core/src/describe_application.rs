//! Describes the application, as its coordinator knows it.

use std::collections::{BTreeMap, BTreeSet};

use cohabit_types::{AttemptId, JobId};

use crate::actor_entry::{ActorEntry, Phase};
use crate::actors::Actors;
use crate::ceiling::Ceiling;
use crate::descriptions::{ActorDescription, ActorWait, ApplicationDescription};
use crate::fetches::Fetches;
use crate::held::HeldId;
use crate::holders::Holders;
use crate::nodes::Nodes;
use crate::runner_report::RunnerReport;
use crate::task_runners::TaskRunners;

/// What the coordinator knows.
pub(crate) struct CoordinatorParts<'a> {
    pub(crate) actors: &'a Actors,
    pub(crate) task_runners: &'a TaskRunners,
    pub(crate) holders: &'a Holders,
    pub(crate) ceiling: &'a Ceiling,
    pub(crate) nodes: &'a Nodes,
    pub(crate) fetches: &'a Fetches,
    pub(crate) reports: &'a BTreeMap<JobId, RunnerReport>,
}

/// The description of what the coordinator knows.
pub(crate) fn describe_application(parts: &CoordinatorParts<'_>) -> ApplicationDescription {
    let mut holders: BTreeMap<HeldId, BTreeSet<AttemptId>> = BTreeMap::new();
    for (holder, held) in parts.holders.all() {
        holders.entry(held).or_default().insert(holder);
    }
    let count = |actor| holders.get(&HeldId::Actor(actor)).map_or(0, |holders| holders.len() as u32);
    let object = |(held, holders): (&HeldId, &BTreeSet<_>)| Some((held.object()?, holders.len() as u32));
    ApplicationDescription {
        actors: parts
            .actors
            .iter()
            .map(|actor| describe_actor(actor, count(actor.id), parts.nodes))
            .collect(),
        classes: parts.task_runners.describe(parts.ceiling, parts.nodes, parts.reports),
        object_holders: holders.iter().filter_map(object).collect(),
        object_places: parts.fetches.places(),
        nodes: parts.nodes.describe(),
    }
}

fn describe_actor(actor: &ActorEntry, holders: u32, nodes: &Nodes) -> ActorDescription {
    let (wait, job) = match &actor.phase {
        Phase::Queued { .. } => (ActorWait::Ceiling, None),
        Phase::Submitting | Phase::Ended(_) => (ActorWait::Other, None),
        Phase::Placed { job, .. } => (ActorWait::Other, Some(*job)),
        Phase::Ending { job, .. } => (ActorWait::Other, *job),
    };
    ActorDescription {
        actor: actor.id,
        kind: actor.spec.kind,
        name: actor.spec.name.clone(),
        lifetime: actor.spec.lifetime,
        gpus: actor.spec.gpus,
        state: actor.state(),
        wait,
        incarnation: actor.incarnation,
        job,
        node: actor.member().map(|member| nodes.of(member)),
        holders,
    }
}
