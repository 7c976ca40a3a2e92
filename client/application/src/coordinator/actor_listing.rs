//! What users see of the actors of the application.

use std::collections::BTreeMap;

use cohabit_application_core::{
    ActorDescription, ActorId, ActorState, ActorWait, ApplicationDescription, Lifetime, NodeNumber,
};
use cohabit_types::{ActorListing, ActorRecord, ActorStage, Span, shortened};

use super::survey::MemberAnswers;
use crate::registry::ActorRegistry;

/// Most actors in a listing: all that have not ended, which are at most 1,000, and some others.
const MOST_ACTORS: usize = 2_000;

/// Longest name of a type, in bytes.
const LONGEST_NAME: usize = 100;

/// Longest reason, in bytes.
const LONGEST_REASON: usize = 400;

/// For how long nothing has been heard of nodes, by their names.
pub(super) type SilentNodes = BTreeMap<String, Span>;

/// The listing of what the core and the processes know.
pub(super) fn listing(
    application: ApplicationDescription,
    found: MemberAnswers,
    silent: &SilentNodes,
) -> ActorListing {
    let mut calls: BTreeMap<ActorId, u64> = BTreeMap::new();
    for (actor, count) in found.answers.iter().flat_map(|(_, description)| &description.calls) {
        *calls.entry(*actor).or_insert(0) += u64::from(*count);
    }
    let nodes = application.nodes.iter();
    let silent = nodes.filter_map(|it| Some((it.node, (it.name.as_str(), *silent.get(&it.name)?))));
    let silent: BTreeMap<NodeNumber, (&str, Span)> = silent.collect();
    let record = |actor: ActorDescription| {
        let node = actor.node.and_then(|node| silent.get(&node).copied());
        record(actor, node)
    };
    let mut actors: Vec<ActorRecord> = application.actors.into_iter().map(record).collect();
    let omitted = omit_ended(&mut actors);
    for actor in &mut actors {
        actor.calls = calls.get(&ActorId(actor.id)).copied().unwrap_or(0);
    }
    ActorListing { actors, omitted, silent: found.silent }
}

/// Leaves out some of those that have ended, if there are too many.
fn omit_ended(actors: &mut Vec<ActorRecord>) -> u64 {
    let surplus = actors.len().saturating_sub(MOST_ACTORS);
    let mut left = surplus;
    actors.retain(|actor| {
        let is_omitted = left > 0 && actor.state == ActorStage::Ended;
        left -= usize::from(is_omitted);
        !is_omitted
    });
    (surplus - left) as u64
}

/// `silent` is its node, and for how long nothing has been heard of that.
fn record(actor: ActorDescription, silent: Option<(&str, Span)>) -> ActorRecord {
    let (state, why) = stage(&actor, silent);
    let kind = ActorRegistry::get().entry(actor.kind).map_or("actor", |entry| entry.origin.name);
    ActorRecord {
        id: actor.actor.0,
        kind: shortened(kind, LONGEST_NAME),
        name: actor.name,
        rank: actor.rank,
        detached: actor.lifetime == Lifetime::Detached,
        gpus: actor.gpus,
        state,
        why: shortened(&why, LONGEST_REASON),
        incarnation: actor.incarnation,
        job: actor.job,
        calls: 0,
        holders: actor.holders,
    }
}

fn stage(actor: &ActorDescription, silent: Option<(&str, Span)>) -> (ActorStage, String) {
    if let (ActorState::Starting | ActorState::Ready { .. }, Some((node, span))) = (&actor.state, silent) {
        let why =
            format!("nothing has been heard of node {node} for {span}: it may run there, or have ended");
        return (ActorStage::Unreachable, why);
    }
    match (&actor.state, actor.wait) {
        (ActorState::Pending { why }, ActorWait::Ceiling) => (ActorStage::Queued, why.clone()),
        (ActorState::Pending { why }, ActorWait::Other) => (ActorStage::Pending, why.clone()),
        (ActorState::Starting, _) => (ActorStage::Starting, String::new()),
        (ActorState::Ready { .. }, _) => (ActorStage::Ready, String::new()),
        (ActorState::Restarting, _) => (ActorStage::Restarting, String::new()),
        (ActorState::Ended(end), _) => (ActorStage::Ended, end.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use cohabit_application_core::{ActorEnd, IncarnationNumber, MemberDescription, NodeDescription};
    use cohabit_types::{JobId, Share};

    use super::*;

    fn actor(number: u64, state: ActorState) -> ActorDescription {
        ActorDescription {
            actor: ActorId(number),
            kind: u32::MAX,
            name: Some("ada".into()),
            rank: None,
            lifetime: Lifetime::Held,
            gpus: Share(250),
            state,
            wait: ActorWait::Other,
            incarnation: 2,
            job: Some(JobId::new(7)),
            node: None,
            holders: 3,
        }
    }

    fn application(actors: Vec<ActorDescription>) -> ApplicationDescription {
        ApplicationDescription {
            actors,
            classes: Vec::new(),
            object_holders: BTreeMap::new(),
            ..ApplicationDescription::default()
        }
    }

    #[test]
    fn the_calls_of_all_processes_that_answer_are_added() {
        let (main, other) = (JobId::new(2).attempt(1).rank(0), JobId::new(3).attempt(1).rank(0));
        let calls = |calls: &[(u64, u32)]| MemberDescription {
            calls: calls.iter().map(|(actor, count)| (ActorId(*actor), *count)).collect(),
            ..MemberDescription::default()
        };
        let found = |silent: &[_]| MemberAnswers {
            answers: vec![(main, calls(&[(1, 2), (2, 5)])), (other, calls(&[(1, 1)]))],
            silent: silent.to_vec(),
        };
        let actors = || (1..=3).map(|number| actor(number, ActorState::Restarting)).collect();
        for silent in [&[][..], &[JobId::new(4).attempt(1).rank(0)]] {
            let counted = listing(application(actors()), found(silent), &SilentNodes::new());
            let calls: Vec<_> = counted.actors.iter().map(|it| it.calls).collect();
            assert_eq!(calls, [3, 5, 0]);
            assert_eq!((counted.has_all_calls(), counted.silent.as_slice()), (silent.is_empty(), silent));
        }
    }

    #[test]
    fn actors_on_a_silent_node_are_unreachable() {
        let on = |number, node, state| ActorDescription { node, ..actor(number, state) };
        let member = JobId::new(7).attempt(1).rank(0);
        let ready = || ActorState::Ready { member, incarnation: IncarnationNumber(1) };
        let (here, there) = (Some(NodeNumber::COORDINATOR), Some(NodeNumber(1)));
        let actors = vec![
            on(1, here, ready()),
            on(2, there, ready()),
            on(3, there, ActorState::Starting),
            on(4, there, ActorState::Ended(ActorEnd::Stopped)),
            on(5, None, ActorState::Restarting),
        ];
        let node = |node, name: &str| NodeDescription {
            node,
            name: name.into(),
            at: None,
            store: None,
            is_served: node == NodeNumber::COORDINATOR,
        };
        let nodes = vec![node(NodeNumber::COORDINATOR, "n0"), node(NodeNumber(1), "n1")];
        let application = ApplicationDescription { nodes, ..application(actors) };
        let silent = SilentNodes::from([("n1".into(), Span::from_secs(12))]);
        let all = listing(application, MemberAnswers::default(), &silent);
        let states = all.actors.iter().map(|it| it.state);
        let unreachable = ActorStage::Unreachable;
        let expected =
            [ActorStage::Ready, unreachable, unreachable, ActorStage::Ended, ActorStage::Restarting];
        assert!(states.eq(expected), "{:?}", all.actors);
        let why = "nothing has been heard of node n1 for 12 s: it may run there, or have ended";
        assert_eq!((all.actors[0].why.as_str(), all.actors[1].why.as_str()), ("", why));
    }

    #[test]
    fn states_come_with_their_reasons() {
        let pending = || ActorState::Pending { why: "no GPU is free".into() };
        let queued = ActorDescription { wait: ActorWait::Ceiling, ..actor(2, pending()) };
        let ended = actor(3, ActorState::Ended(ActorEnd::ConstructorFailed("x".repeat(1_000))));
        let all = listing(
            application(vec![actor(1, pending()), queued, ended]),
            MemberAnswers::default(),
            &SilentNodes::new(),
        );
        let states: Vec<_> = all.actors.iter().map(|it| (it.state, it.why.as_str())).collect();
        assert_eq!(states[0], (ActorStage::Pending, "no GPU is free"));
        assert_eq!(states[1], (ActorStage::Queued, "no GPU is free"));
        assert_eq!(states[2].0, ActorStage::Ended);
        assert!(states[2].1.len() < 410 && states[2].1.starts_with("the constructor of the actor failed"));
        assert_eq!(all.actors[0].kind, "actor", "of another program");
    }

    #[test]
    fn of_many_actors_that_have_ended_some_are_left_out() {
        let ended = (2..=3_000).map(|number| actor(number, ActorState::Ended(ActorEnd::Stopped)));
        let live = [actor(1, ActorState::Starting), actor(3_001, ActorState::Starting)];
        let all = listing(
            application(live.into_iter().chain(ended).collect()),
            MemberAnswers::default(),
            &SilentNodes::new(),
        );
        assert_eq!((all.actors.len(), all.omitted), (2_000, 1_001));
        assert_eq!(all.actors.iter().filter(|it| it.state == ActorStage::Starting).count(), 2);
    }
}
