//! Passes observations to the trainer, and what the trainer learns to the policy.
//!
//! One training runs at a time, with a pause after each; samples that arrive meanwhile go with the next. Sets
//! that did not fit are learned at once: no plan is requested until the policy knows them.

use cohabit_actor::{Context, ReplyTo};
use cohabit_scheduler_core::{Event, MemoryMisfit};
use cohabit_types::{
    ColocationSample, DeviceTelemetry, JobId, ModelChoice, Models, NodeId, Principal, Refusal, RefusalCode,
    Role,
};

use super::message::Message;
use super::state::Driver;
use crate::interference::{TrainingUpdate, resolve_misfit, resolve_sample};
use crate::journal::JournalWrite;

impl Driver {
    /// Queues co-location samples for the trainer, and notes the memory in them.
    pub(super) fn record_samples(&mut self, samples: &[ColocationSample]) {
        let head = &self.parts.head;
        let lookup = |job: JobId| head.demand_and_traits(job);
        for sample in samples {
            let job = sample.rank.attempt.job;
            sample.memory.iter().for_each(|it| self.parts.memory_tracker.observe(job, &sample.gpu, *it));
            let neighbors = sample.neighbors.iter().map(|rank| rank.attempt.job);
            let observed = resolve_sample(sample, neighbors, &lookup, self.parts.trainer.solos());
            observed.into_iter().for_each(|sample| self.training_queue.push(sample));
        }
    }

    /// Queues a misfit for the trainer and the history.
    pub(super) fn record_misfit(&mut self, misfit: MemoryMisfit) {
        let head = &self.parts.head;
        let lookup = |job: JobId| head.demand_and_traits(job);
        let observed = resolve_misfit(&misfit, &lookup, self.parts.trainer.solos());
        observed.into_iter().for_each(|misfit| self.training_queue.push_misfit(misfit));
        self.history.push(JournalWrite::Misfits(vec![misfit]));
    }

    /// Notes how much memory ranks hold on the GPUs of a node.
    pub(super) fn observe_telemetry(&mut self, node: NodeId, telemetry: &[DeviceTelemetry]) {
        for DeviceTelemetry { device, ranks, .. } in telemetry {
            let Some(gpu) = self.parts.head.model_of(node, device) else { continue };
            for (rank, memory) in ranks {
                self.parts.memory_tracker.observe(rank.attempt.job, gpu, *memory);
            }
        }
    }

    /// Whether the policy has to learn of misfits before it plans.
    pub(super) fn has_unlearned_misfits(&self) -> bool {
        self.parts.uses_interference && self.training_queue.has_unlearned_misfits()
    }

    /// Starts the next training, if there is something to learn.
    pub(super) fn start_training(&mut self, context: &mut Context<Driver>) {
        if let Some(misfits) = self.training_queue.begin_misfits() {
            context.pipe_to_self(self.parts.trainer.observe(misfits), Message::MisfitsLearned);
        }
        let Some(samples) = self.training_queue.begin_training() else { return };
        let update = self.parts.trainer.observe(samples);
        let (driver, pause) = (context.address().clone(), self.parts.learn_every);
        context.spawn_task(async move {
            // A driver that has stopped needs no update.
            let _ = driver.tell(Message::TrainingUpdate(update.await)).await;
            tokio::time::sleep(pause).await;
            let _ = driver.tell(Message::TrainingPauseEnded).await;
        });
    }

    /// Gives what was learned of misfits to the policy. A plan that waited for it may be requested.
    pub(super) fn misfits_learned(&mut self, update: TrainingUpdate, context: &mut Context<Driver>) {
        self.training_queue.end_misfits();
        self.training_update(update, context);
    }

    /// Gives new knowledge to the policy before the next plan is requested, and starts a refit that is due.
    pub(super) fn training_update(&mut self, update: TrainingUpdate, context: &mut Context<Driver>) {
        // Updates may overtake each other on their way here.
        let is_newer = update.number > self.knowledge_number;
        if let Some(knowledge) = update.knowledge.filter(|_| is_newer) {
            self.knowledge_number = update.number;
            self.parts.planner.set_interference(knowledge);
            if self.parts.uses_interference {
                self.queue(Event::InterferenceUpdated, None);
            }
        }
        if let Some(refit) = update.refit {
            context.pipe_to_self(self.parts.trainer.refit(refit), Message::TrainingUpdate);
        }
    }

    /// Lists the models, after the choice of another one if the request has one. Only admins may choose.
    pub(super) fn models(
        &mut self,
        by: &Principal,
        choice: Option<ModelChoice>,
        reply_to: ReplyTo<Result<Models, Refusal>>,
        context: &mut Context<Driver>,
    ) {
        if by.role != Role::Admin && choice.is_some() {
            let message = format!(
                "only an admin token can choose a model, and the token of {} has the role {}",
                by.user, by.role
            );
            return reply_to.send(Err(Refusal::new(RefusalCode::NotAllowed, message)));
        }
        if let Some(refusal) = self.state_check.refusal().filter(|_| choice.is_some()) {
            return reply_to.send(Err(refusal));
        }
        tracing::debug!(user = by.user, ?choice, "models");
        let chosen = self.parts.trainer.models(choice);
        let driver = context.address().clone();
        context.spawn_task(async move {
            let (models, update) = chosen.await;
            // The update is queued before the client hears of its choice.
            let _ = driver.tell(Message::TrainingUpdate(update)).await;
            reply_to.send(models);
        });
    }
}
