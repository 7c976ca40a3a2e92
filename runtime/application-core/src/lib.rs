//! An application with its actors as state machines. They decide who is called, constructed, kept and ended,
//! and do none of it: effects are data that the shells of processes, or the simulator, carry out. They read
//! no clock, draw no random numbers and know no sockets.
//!
//! # Processes
//!
//! Each process is a *member*, named by its attempt. Each member has one *coordinator session*; a caller has
//! one *call session* with each member whose actor it calls. A member that calls another one and is called
//! by it has two call sessions with it. All of them are [`Session`]s: frames arrive exactly once and in
//! order as long as both processes live.
//!
//! ```text
//!                     reports of jobs, answers to submissions
//!                                    |
//!                                    v
//!   Submit, CancelRunner, Exit <- Coordinator          (names, ceiling, restarts, holders)
//!                                 ^         |
//!                   ToCoordinator |         | FromCoordinator
//!                  (member dials) |         v
//!        +------------------------+---------+------------------------+
//!        |                                                           |
//!      Member (main, or an actor that calls)                       Member (holds an actor)
//!        |  call queues, local holds                                 |  gate, local holds
//!        |                                                           |
//!        +---------------- ToCallee (caller dials) ----------------->+
//!        +<--------------- ToCaller ---------------------------------+
//! ```
//!
//! | Session | Who dials | The dialing end sends | The other end sends | Opened |
//! |---|---|---|---|---|
//! | coordinator session | the member | [`ToCoordinator`] | [`FromCoordinator`] | when the process starts |
//! | call session | the caller | [`ToCallee`] | [`ToCaller`] | at the first `ToCallee` effect to the member |
//!
//! # A connection
//!
//! 1. The dialing end makes or finds its [`Session`], calls [`Session::dial`] and sends the [`SessionHello`]
//!    (besides the application's secret, which the shell checks): who it is, whom it wants, which connection
//!    of the session this is, and the number of the last frame that it has received.
//! 2. The accepting end checks `to`, asks [`Coordinator::admits`] or [`Member::admits`] whether `from` still
//!    lives, makes or finds the session, and calls [`Session::accept`]. It sends the hello that it gets, then
//!    the packets. With no hello it closes the connection: a newer one came first. If there is an older
//!    connection of the session, it closes that. A coordinator then calls [`Coordinator::connected`].
//! 3. The dialing end gets that hello, calls [`Session::opened`] and sends the packets.
//! 4. Now both send what [`Session::send`] returns, pass what comes to [`Session::receive`], carry out the
//!    effects of a batch of frames, and then send [`Session::acknowledgement`] if there is one.
//! 5. When the connection breaks, both call [`Session::closed`]; the dialing end dials again, for as long as
//!    it has not been told that the other end has ended. A [`SessionError`] cannot be repaired: the process
//!    that finds one ends.
//!
//! # The shell of a member
//!
//! One [`Member`], one coordinator session, a call session for each member that it calls (made at the first
//! effect [`MemberEffect::ToCallee`]) and for each that calls it (made when it connects).
//!
//! - Effects are carried out in order. What a method adds while they are carried out comes after them: a
//!   release must not overtake the lend before it.
//! - A frame from a session: [`Member::receive`], [`Member::receive_from_caller`],
//!   [`Member::receive_from_callee`].
//! - [`MemberEffect::Close`]: drop both call sessions with the member and read nothing more from it. A shell
//!   that reads a connection at its end before it passes `MemberEnded` on saves answers that were sent.
//! - An actor may call itself: the session is one from the process to itself.
//! - A handle is cloned or decoded: [`Member::hold`]; dropped: [`Member::release`]. Effects with `carries`
//!   give the shell one handle of each to release after decoding, also if nobody waits for the value.
//! - A call: [`Member::call`], whose number comes back in [`MemberEffect::Finish`]. A dropped future or a
//!   deadline: [`Member::cancel`].
//! - In the process of an actor: [`MemberEffect::Construct`] is answered with [`Member::constructed`] and
//!   [`MemberEffect::Start`] with [`Member::finished`] or [`Member::panicked`].
//!
//! If the coordinator session cannot be opened again because the coordinator has ended, the process ends.
//!
//! # The shell of the coordinator
//!
//! It submits the first main and calls [`Coordinator::main`] with its job and with that of each other main
//! that the head lists. Each change of a child's job becomes a [`RunnerReport`] for [`Coordinator::report`],
//! each frame goes to [`Coordinator::received`], and each answer to a [`CoordinatorEffect::Submit`] to
//! [`Coordinator::submitted`]. When the head cannot be reached, the shell tries again until it has an answer.
//!
//! # Where to start reading
//!
//! ```text
//! frames       what processes send each other       session     exactly once, in order
//! member       one process                          coordinator the application
//!   call_queue   its calls to one actor               actors      names, ceiling, restarts (actor_entry)
//!   local_holds  what it holds                        holders     who holds what
//!   held_actor   the actor in it                      mains       how long the application lives
//!   gate         when calls start                     runner_report what the head says
//! ```

mod actor_entry;
mod actor_spec;
mod actors;
mod call_queue;
mod coordinator;
mod coordinator_effect;
mod errors;
mod frames;
mod gate;
mod held_actor;
mod holders;
mod ids;
mod limits;
mod local_holds;
mod mains;
mod member;
mod member_effect;
mod runner_report;
mod session;
#[cfg(test)]
mod tests;

pub use actor_spec::{ActorSpec, ActorState, Lifetime};
pub use coordinator::Coordinator;
pub use coordinator_effect::CoordinatorEffect;
pub use errors::{ActorEnd, CallError, CreateError};
pub use frames::{
    CallRequest, Construction, FromCoordinator, MethodAccess, OnRestart, ToCallee, ToCaller, ToCoordinator,
};
pub use ids::{ActorId, CallNumber, IncarnationNumber, LinkNumber, RequestNumber, Ticket};
pub use limits::{MAX_ACTORS, MAX_ARGUMENTS, MAX_CALLS, MAX_NAME};
pub use member::Member;
pub use member_effect::MemberEffect;
pub use runner_report::{RunnerReport, RunnerState};
pub use session::{Packet, Session, SessionError, SessionHello};
