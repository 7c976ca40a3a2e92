//! Describes the application, as its coordinator knows it.

use std::collections::{BTreeMap, BTreeSet};

use cohabit_types::{JobId, RankId};

use crate::actors::Actors;
use crate::ceiling::Ceiling;
use crate::descriptions::{ActorDescription, ActorWait, ApplicationDescription};
use crate::fetches::Fetches;
use crate::gang_entry::{GangEntry, Phase};
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
    let mut holders: BTreeMap<HeldId, BTreeSet<RankId>> = BTreeMap::new();
    for (holder, held) in parts.holders.all() {
        holders.entry(held).or_default().insert(holder);
    }
    let count = |actor| holders.get(&HeldId::Actor(actor)).map_or(0, |holders| holders.len() as u32);
    let object = |(held, holders): (&HeldId, &BTreeSet<_>)| Some((held.object()?, holders.len() as u32));
    ApplicationDescription {
        actors: parts
            .actors
            .gangs()
            .flat_map(|gang| (0..gang.actors.len()).map(move |rank| (gang, rank)))
            .map(|(gang, rank)| describe_actor(gang, rank, count(gang.actors[rank].id), parts.nodes))
            .collect(),
        classes: parts.task_runners.describe(parts.ceiling, parts.nodes, parts.reports),
        object_holders: holders.iter().filter_map(object).collect(),
        object_places: parts.fetches.places(),
        nodes: parts.nodes.describe(),
    }
}

fn describe_actor(gang: &GangEntry, rank: usize, holders: u32, nodes: &Nodes) -> ActorDescription {
    let (wait, job) = match &gang.phase {
        Phase::Queued { .. } => (ActorWait::Ceiling, None),
        Phase::Submitting | Phase::Ended(_) => (ActorWait::Other, None),
        Phase::Placed { job, .. } => (ActorWait::Other, Some(*job)),
        Phase::Ending { job, .. } => (ActorWait::Other, *job),
    };
    let (actor, spec) = (&gang.actors[rank], &gang.spec.actors[rank]);
    ActorDescription {
        actor: actor.id,
        kind: spec.kind,
        name: spec.name.clone(),
        rank: (gang.actors.len() > 1).then_some(rank as u32),
        lifetime: gang.spec.lifetime,
        gpus: gang.spec.gpus,
        state: gang.state(rank),
        wait,
        incarnation: actor.incarnation,
        job,
        node: gang.member(rank).map(|member| nodes.of(member)),
        holders,
    }
}
