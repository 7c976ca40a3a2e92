//! What the cluster lives through, told to the learner; and what the learner makes of it, told to the policy.
//!
//! One lesson is learned at a time, and after each there is a pause: what is lived meanwhile goes with the
//! next.

use cohabit_actor::{Context, ReplyTo};
use cohabit_policy::interference::ObservedSample;
use cohabit_scheduler_core::Event;
use cohabit_types::{
    ColocationSample, DeviceTelemetry, ModelChoice, Models, NodeId, Principal, Refusal, RefusalCode, Role,
};

use super::{Driver, Message};
use crate::interference::{TrainingUpdate, lived};

/// More that waits for a lesson than this is forgotten.
const MAX_QUEUED_SAMPLES: usize = 10_000;

/// What is still to be told to the learner.
#[derive(Debug, Default)]
pub(super) struct TrainingQueue {
    lived: Vec<ObservedSample>,
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
    pub(super) fn record_samples(&mut self, stretches: &[ColocationSample]) {
        let head = &self.parts.head;
        for stretch in stretches {
            let job = stretch.rank.attempt.job;
            stretch.memory.iter().for_each(|it| self.parts.memory_tracker.see(job, &stretch.gpu, *it));
            let neighbours = stretch.neighbours.iter().map(|rank| rank.attempt.job);
            let lived =
                lived(stretch, neighbours, &|job| head.demand_and_traits(job), self.parts.learner.solos());
            let room = self.training_queue.lived.len() < MAX_QUEUED_SAMPLES;
            self.training_queue.lived.extend(lived.filter(|_| room));
        }
    }

    /// Takes note of what ranks hold of the GPUs of a node.
    pub(super) fn observe_telemetry(&mut self, node: NodeId, telemetry: &[DeviceTelemetry]) {
        for DeviceTelemetry { device, ranks, .. } in telemetry {
            let Some(gpu) = self.parts.head.model_of(node, device) else { continue };
            for (rank, memory) in ranks {
                self.parts.memory_tracker.see(rank.attempt.job, gpu, *memory);
            }
        }
    }

    /// Begins the next lesson, if there is something to learn.
    pub(super) fn start_training(&mut self, context: &mut Context<Driver>) {
        if self.training_queue.state == State::Busy || self.training_queue.lived.is_empty() {
            return;
        }
        self.training_queue.state = State::Busy;
        let training_update = self.parts.learner.lived(std::mem::take(&mut self.training_queue.lived));
        let (driver, pause) = (context.address().clone(), self.parts.learn_every);
        context.spawn_task(async move {
            // A driver that has stopped learns nothing more.
            let _ = driver.tell(Message::TrainingUpdate(training_update.await)).await;
            tokio::time::sleep(pause).await;
            let _ = driver.tell(Message::TrainingPauseEnded).await;
        });
    }

    pub(super) fn training_pause_ended(&mut self) {
        self.training_queue.state = State::Idle;
    }

    /// What is new reaches the policy before the plan that it is asked for.
    pub(super) fn training_update(&mut self, training_update: TrainingUpdate, context: &mut Context<Driver>) {
        if let Some(knowledge) = training_update.knowledge {
            self.parts.planner.set_interference(knowledge);
            if self.parts.policy_awareness == InterferenceAwareness::Aware {
                self.queue(Event::Learned, None);
            }
        }
        if let Some(refit) = training_update.refit {
            let training_update = self.parts.learner.refit(refit);
            let driver = context.address().clone();
            context.spawn_task(async move {
                let _ = driver.tell(Message::TrainingUpdate(training_update.await)).await;
            });
        }
    }

    /// Lists the models, once another is chosen if one is.
    pub(super) fn models(
        &mut self,
        by: &Principal,
        choice: Option<ModelChoice>,
        reply_to: ReplyTo<Result<Models, Refusal>>,
        context: &mut Context<Driver>,
    ) {
        if by.role != Role::Admin && choice.is_some() {
            let message =
                format!("only an admin's token may choose a model, and {}'s is a {}'s", by.user, by.role);
            return reply_to.send(Err(Refusal::new(RefusalCode::NotAllowed, message)));
        }
        tracing::debug!(user = by.user, ?choice, "models");
        let asked = self.parts.learner.models(choice);
        let driver = context.address().clone();
        context.spawn_task(async move {
            let (models, training_update) = asked.await;
            let _ = driver.tell(Message::TrainingUpdate(training_update)).await;
            reply_to.send(models);
        });
    }
}

/// Whether plans depend on what is known of interference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InterferenceAwareness {
    /// They do.
    Aware,
    /// They do not: nothing of it is to be read or journaled.
    Unaware,
}
