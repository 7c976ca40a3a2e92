//! What the cluster lives through, told to the learner; and what the learner makes of it, told to the policy.
//!
//! One lesson is learned at a time, and after each there is a pause: what is lived meanwhile goes with the
//! next.

use cohabit_actor::{Context, Reply as ReplyTo};
use cohabit_policy::interference::Lived;
use cohabit_scheduler_core::Event;
use cohabit_types::{By, DeviceTelemetry, ModelRequest, Models, NodeId, Refusal, RefusalCode, Role, Stretch};

use super::{Driver, Message};
use crate::interference::{Taught, lived};

/// More that waits for a lesson than this is forgotten.
const MOST_LIVED: usize = 10_000;

/// What is still to be told to the learner.
#[derive(Debug, Default)]
pub(super) struct Lessons {
    lived: Vec<Lived>,
    state: State,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Idle,
    /// A lesson is being learned, or the pause after it is not over.
    Busy,
}

impl Driver {
    /// Takes note of how ranks got on.
    pub(super) fn live_through(&mut self, stretches: &[Stretch]) {
        let head = &self.parts.head;
        for stretch in stretches {
            let job = stretch.rank.attempt.job;
            stretch.memory.iter().for_each(|it| self.parts.memories.see(job, &stretch.gpu, *it));
            let neighbours = stretch.neighbours.iter().map(|rank| rank.attempt.job);
            let lived = lived(stretch, neighbours, &|job| head.told_of(job), self.parts.learner.solos());
            let room = self.lessons.lived.len() < MOST_LIVED;
            self.lessons.lived.extend(lived.filter(|_| room));
        }
    }

    /// Takes note of what ranks hold of the GPUs of a node.
    pub(super) fn look_at(&mut self, node: NodeId, telemetry: &[DeviceTelemetry]) {
        for DeviceTelemetry { device, ranks, .. } in telemetry {
            let Some(gpu) = self.parts.head.model_of(node, device) else { continue };
            for (rank, memory) in ranks {
                self.parts.memories.see(rank.attempt.job, gpu, *memory);
            }
        }
    }

    /// Begins the next lesson, if there is something to learn.
    pub(super) fn study(&mut self, context: &mut Context<Driver>) {
        if self.lessons.state == State::Busy || self.lessons.lived.is_empty() {
            return;
        }
        self.lessons.state = State::Busy;
        let taught = self.parts.learner.lived(std::mem::take(&mut self.lessons.lived));
        let (driver, pause) = (context.address().clone(), self.parts.learn_every);
        context.alongside(async move {
            // A driver that has stopped learns nothing more.
            let _ = driver.tell(Message::Taught(taught.await)).await;
            tokio::time::sleep(pause).await;
            let _ = driver.tell(Message::Rested).await;
        });
    }

    pub(super) fn rested(&mut self) {
        self.lessons.state = State::Idle;
    }

    /// What is new reaches the policy before the plan that it is asked for.
    pub(super) fn taught(&mut self, taught: Taught, context: &mut Context<Driver>) {
        if let Some(knowledge) = taught.knowledge {
            self.parts.planner.know(knowledge);
            if self.parts.policy_looks == Looks::AtInterference {
                self.queue(Event::Learned, None);
            }
        }
        if let Some(refit) = taught.refit {
            let taught = self.parts.learner.refit(refit);
            let driver = context.address().clone();
            context.alongside(async move {
                let _ = driver.tell(Message::Taught(taught.await)).await;
            });
        }
    }

    /// Lists the models, once another is chosen if one is.
    pub(super) fn models(
        &mut self,
        by: &By,
        request: ModelRequest,
        reply_to: ReplyTo<Result<Models, Refusal>>,
        context: &mut Context<Driver>,
    ) {
        if by.role != Role::Admin && request != ModelRequest::List {
            let message =
                format!("only an admin's token may choose a model, and {}'s is a {}'s", by.user, by.role);
            return reply_to.send(Err(Refusal::new(RefusalCode::NotAllowed, message)));
        }
        tracing::debug!(user = by.user, ?request, "models");
        let asked = self.parts.learner.models(request);
        let driver = context.address().clone();
        context.alongside(async move {
            let (models, taught) = asked.await;
            let _ = driver.tell(Message::Taught(taught)).await;
            reply_to.send(models);
        });
    }
}

/// Whether plans depend on what is known of interference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Looks {
    /// They do.
    AtInterference,
    /// They do not: nothing of it is to be read or journaled.
    Elsewhere,
}
