//! What the processes of one application send each other.
//!
//! All processes run the same binary, so frames need no version. On a *coordinator session* the member sends
//! [`ToCoordinator`] and gets [`FromCoordinator`]; on a *call session* the caller sends [`ToCallee`] and gets
//! [`ToCaller`].

use bytes::Bytes;
use cohabit_types::AttemptId;
use serde::{Deserialize, Serialize};

use crate::actor_spec::{ActorSpec, ActorState};
use crate::errors::{CallError, CreateError};
use crate::ids::{ActorId, CallNumber, IncarnationNumber, RequestNumber};

/// From a member to the coordinator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToCoordinator {
    /// Create an actor; answered by `Created`.
    Create {
        /// The number of the question.
        request: RequestNumber,
        /// The actor.
        spec: ActorSpec,
    },
    /// Find a live actor; answered by `Found`.
    Find {
        /// The number of the question.
        request: RequestNumber,
        /// Its name.
        name: String,
    },
    /// Stop an actor; answered by `Stopped` once its process has ended.
    Stop {
        /// The number of the question.
        request: RequestNumber,
        /// The actor.
        actor: ActorId,
    },
    /// Send the state of this actor now and after each change, until it is released.
    Watch {
        /// The actor.
        actor: ActorId,
    },
    /// A handle is on its way to another member. Sent before the frame that carries the handle.
    Lend {
        /// The actor.
        actor: ActorId,
        /// Who gets the handle.
        to: AttemptId,
    },
    /// The member holds the actor no longer.
    Release {
        /// The actor.
        actor: ActorId,
        /// The lends that arrived since the last release, by lender.
        settled: Vec<(AttemptId, u64)>,
    },
    /// Nothing that a member which has ended has sent will be read any more.
    Closed {
        /// The member that has ended.
        member: AttemptId,
        /// What arrived from it and is still held; from now on these lends count as the coordinator's.
        settled: Vec<(ActorId, u64)>,
    },
    /// The actor of this process is constructed and takes calls.
    Constructed {
        /// Its incarnation.
        incarnation: IncarnationNumber,
    },
    /// The constructor returned an error or panicked.
    ConstructorFailed {
        /// The text, with causes.
        text: String,
    },
}

/// From the coordinator to a member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromCoordinator {
    /// The answer to `Create`; on success a lend of the actor to the member.
    Created {
        /// The number of the question.
        request: RequestNumber,
        /// The actor, or why there is none.
        result: Result<ActorId, CreateError>,
    },
    /// The answer to `Find`; on success a lend of the actor to the member.
    Found {
        /// The number of the question.
        request: RequestNumber,
        /// The actor with the name, if one lives.
        actor: Option<ActorId>,
    },
    /// The answer to `Stop`.
    Stopped {
        /// The number of the question.
        request: RequestNumber,
    },
    /// The state of an actor that the member watches.
    State {
        /// The actor.
        actor: ActorId,
        /// Its state.
        state: ActorState,
    },
    /// A member has ended. Read nothing more from it and answer with `Closed`.
    MemberEnded {
        /// The member.
        member: AttemptId,
    },
    /// Construct the actor of this process; a lend of each actor that the arguments carry.
    Construct(Construction),
}

/// The construction of an actor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Construction {
    /// The actor.
    pub actor: ActorId,
    /// Index of its type in the registry of the binary.
    pub kind: u32,
    /// The incarnation that this construction makes.
    pub incarnation: IncarnationNumber,
    /// Most `&self` calls at the same time.
    pub concurrency: u32,
    /// Encoded arguments.
    pub arguments: Bytes,
    /// The actors whose handles are in the arguments, once for each handle.
    pub carries: Vec<ActorId>,
}

/// From a caller to the process of an actor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToCallee {
    /// A call.
    Call {
        /// The actor.
        actor: ActorId,
        /// The number of the call.
        call: CallNumber,
        /// What is called.
        request: CallRequest,
    },
    /// Do not start this call, or interrupt it. It is answered in any case.
    Cancel {
        /// The number of the call.
        call: CallNumber,
    },
}

/// What is called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallRequest {
    /// Index of the method in its actor.
    pub method: u32,
    /// Whether it runs alone.
    pub access: MethodAccess,
    /// What happens to it if the process of the actor ends.
    pub on_restart: OnRestart,
    /// Encoded arguments.
    pub arguments: Bytes,
    /// The actors whose handles are in the arguments, once for each handle.
    pub carries: Vec<ActorId>,
}

/// Whether a method runs beside others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum MethodAccess {
    /// `&self`: beside other `&self` methods.
    Shared,
    /// `&mut self`: alone.
    Exclusive,
}

/// What happens to a call that was handed over to a process which then ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnRestart {
    /// It ends as `CallError::Restarted`.
    Fail,
    /// `#[retry]`: the next incarnation gets it before all later calls.
    Retry,
}

/// From the process of an actor to a caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToCaller {
    /// A call has ended.
    Answer {
        /// The actor.
        actor: ActorId,
        /// The number of the call.
        call: CallNumber,
        /// The encoded value, or why there is none.
        result: Result<Bytes, CallError>,
        /// The actors whose handles are in the value, once for each handle.
        carries: Vec<ActorId>,
    },
}
