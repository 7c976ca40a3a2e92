//! Names and values that the scenarios share.

use bytes::Bytes;
use cohabit_types::{JobId, RankId, Rendezvous, Share};

use crate::{
    ActorId, ActorSpec, CallRequest, CallValue, Carried, CoordinatorEffect, CoordinatorNode, GangSpec,
    HeldId, Lifetime, MethodAccess, OnRestart, OnTaskError, TaskClass, TaskSpec, ToStore,
};

pub(super) const ROOT: RankId = member(1);
pub(super) const MAIN: RankId = member(2);

/// The node of the coordinator, which others can reach.
pub(super) fn root_node() -> CoordinatorNode {
    CoordinatorNode { name: "n0".to_owned(), at: Some(address(0)) }
}

/// Where the processes of a node are reached.
pub(super) fn address(node: u16) -> Rendezvous {
    Rendezvous { address: format!("n{node}"), port: 29_600 + node }
}

/// The first attempt of a job.
pub(super) const fn member(job: u64) -> RankId {
    JobId::new(job).attempt(1).rank(0)
}

pub(super) const fn actor(number: u64) -> ActorId {
    ActorId(number)
}

/// A handle of an actor.
pub(super) const fn handle(number: u64) -> HeldId {
    HeldId::Actor(actor(number))
}

/// A handle of an actor on its way.
pub(super) const fn carried(number: u64) -> Carried {
    Carried::Actor(actor(number))
}

pub(super) fn inline(value: &'static str) -> CallValue {
    CallValue::Inline(Bytes::from_static(value.as_bytes()))
}

/// A process has ended whose stored objects nobody holds.
pub(super) const fn forget(maker: RankId) -> CoordinatorEffect {
    CoordinatorEffect::OwnStore(ToStore::Forget { maker, keep: Vec::new() })
}

/// A single actor.
pub(super) fn spec() -> GangSpec {
    gang(vec![actor_spec()])
}

pub(super) fn named(name: &str, lifetime: Lifetime) -> GangSpec {
    let actor = ActorSpec { name: Some(name.to_owned()), ..actor_spec() };
    GangSpec { lifetime, ..gang(vec![actor]) }
}

pub(super) const fn gang(actors: Vec<ActorSpec>) -> GangSpec {
    GangSpec {
        lifetime: Lifetime::Held,
        restarts: 1,
        gpus: Share(0),
        claims: Bytes::from_static(b"claims"),
        actors,
    }
}

pub(super) const fn actor_spec() -> ActorSpec {
    ActorSpec {
        kind: 7,
        name: None,
        concurrency: 2,
        arguments: Bytes::from_static(b"new"),
        needs: Vec::new(),
    }
}

/// A `&mut self` method.
pub(super) fn write() -> CallRequest {
    CallRequest {
        method: 3,
        access: MethodAccess::Exclusive,
        on_restart: OnRestart::Fail,
        arguments: Bytes::from_static(b"arguments"),
        needs: Vec::new(),
    }
}

/// A `&self` method.
pub(super) fn read() -> CallRequest {
    CallRequest { access: MethodAccess::Shared, ..write() }
}

/// A `&mut self` method that is marked `#[retry]`.
pub(super) fn retried() -> CallRequest {
    CallRequest { on_restart: OnRestart::Retry, ..write() }
}

/// What a step adds to a list of effects.
pub(super) fn effects<T>(step: impl FnOnce(&mut Vec<T>)) -> Vec<T> {
    let mut effects = Vec::new();
    step(&mut effects);
    effects
}

/// Runners without GPUs.
pub(super) fn class() -> TaskClass {
    gpu_class(0)
}

/// Runners with so many thousandths of a GPU.
pub(super) fn gpu_class(gpus: u32) -> TaskClass {
    TaskClass { gpus: Share(gpus), claims: Bytes::from_static(b"claims") }
}

/// A task of function 3 without retries.
pub(super) fn task() -> TaskSpec {
    TaskSpec {
        class: class(),
        function: 3,
        caller: None,
        retries: 0,
        on_error: OnTaskError::Fail,
        arguments: Bytes::from_static(b"arguments"),
        needs: Vec::new(),
        carries: Vec::new(),
    }
}
