//! The loop that all programs share: resume, step, report, save, and end when asked to.
//!
//! A step is a pure function of the parameters, the moments and the number of the step; that is why a
//! training that was interrupted and resumed ends with the same bits. The loop never looks at the clock but
//! to decide when to save. Ranks that train together start from the first one's state and take the same
//! steps; only the first one saves.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, ensure};
use candle_core::Tensor;

use super::adam::Adam;
use super::checkpoint::{Checkpoint, CheckpointLookup, CheckpointStore};
use super::gradients::Gradients;
use super::job_context::{JobContext, warn};
use super::options::RunOptions;
use super::parameters::Parameters;
use super::process_group::{ProcessGroup, Shard, SignalRequests};
use super::progress::ProgressLine;

const WEIGHT_PREFIX: &str = "weight.";

/// What the loop asks of a network with its examples.
pub(crate) trait TrainingTask {
    /// The program's name, which its checkpoint carries too.
    const NAME: &str;

    /// What is trained.
    fn parameters(&self) -> &Parameters;

    /// Steps in the whole training.
    fn total_steps(&self) -> u64;

    /// A shard's part of the loss on the examples of a step, counted from 0: a scalar that leads back to the
    /// parameters. The parts of all shards add up to the mean over all examples.
    fn loss(&self, step: u64, shard: Shard) -> Result<Tensor>;

    /// What to print once `steps` are done, if anything.
    fn line_after(&self, steps: u64, loss: f32) -> Result<Option<String>>;
}

/// How a training came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TrainingEnd {
    /// All steps are done.
    Finished,
    /// SIGTERM came first.
    Terminated,
}

/// How a task is trained.
pub(crate) struct TrainingConfig<'a> {
    pub(crate) learning_rate: f64,
    /// The options that decide what is computed, by flag.
    pub(crate) options: BTreeMap<String, String>,
    pub(crate) run: &'a RunOptions,
}

/// Trains `task` to its end, together with a team.
pub(crate) fn train<T: TrainingTask>(
    task: &T,
    plan: TrainingConfig<'_>,
    team: ProcessGroup,
    job: &mut JobContext,
) -> Result<TrainingEnd> {
    let folder = plan.run.checkpoint_folder.as_deref().filter(|_| team.is_first());
    let store = folder.map(|folder| CheckpointStore::open(folder, T::NAME)).transpose()?;
    let optimizer = Adam::new(task.parameters(), plan.learning_rate)?;
    let options = plan.options;
    let mut trainer = TrainingLoop { task, team, optimizer, store, options, steps: 0, saved_steps: 0 };
    trainer.resume(job)?;
    trainer.synchronize_with_first()?;
    trainer.run(Duration::from_secs(plan.run.checkpoint_seconds), job)
}

struct TrainingLoop<'a, T> {
    task: &'a T,
    team: ProcessGroup,
    optimizer: Adam,
    /// The first rank's, if it saves at all.
    store: Option<CheckpointStore>,
    options: BTreeMap<String, String>,
    /// Steps done.
    steps: u64,
    /// Steps done in the newest checkpoint.
    saved_steps: u64,
}

impl<T: TrainingTask> TrainingLoop<'_, T> {
    fn resume(&mut self, job: &mut JobContext) -> Result<()> {
        let Some(store) = self.store.clone() else { return Ok(()) };
        let restored = match store.find(&self.options)? {
            CheckpointLookup::Nothing => return Ok(()),
            CheckpointLookup::Damaged(damage) => Err(anyhow!(damage)),
            CheckpointLookup::Checkpoint(checkpoint) => self.restore(&checkpoint),
        };
        match restored {
            Ok(()) => job.say(&format!("resumed at step {}", self.steps)),
            Err(damage) => warn(&format!(
                "warning: ignoring the damaged checkpoint {} ({damage:#}): starting at step 0",
                store.path().display()
            )),
        }
        Ok(())
    }

    /// The ranks of a team begin where the first one does, whether or not they could read its checkpoint.
    fn synchronize_with_first(&mut self) -> Result<()> {
        let own = self.checkpoint()?;
        let Some(said) = self.team.broadcast_from_first(|| own.to_bytes())? else { return Ok(()) };
        self.restore(&Checkpoint::from_bytes(&said).context("what the first rank says makes no sense")?)
    }

    /// Takes everything from the checkpoint or, on an error, nothing.
    fn restore(&mut self, checkpoint: &Checkpoint) -> Result<()> {
        let parameters = self.task.parameters();
        let weights = parameters.matching(&checkpoint.tensors, WEIGHT_PREFIX)?;
        self.optimizer.restore(parameters, &checkpoint.tensors)?;
        parameters.set(&weights)?;
        (self.steps, self.saved_steps) = (checkpoint.step, checkpoint.step);
        Ok(())
    }

    fn run(&mut self, save_interval: Duration, job: &mut JobContext) -> Result<TrainingEnd> {
        let mut save_at = Instant::now() + save_interval;
        while self.steps < self.task.total_steps() {
            let asked = SignalRequests {
                end: job.stop_signals.is_terminated(),
                checkpoint: job.stop_signals.take_warning(),
            };
            let requests = self.team.agree(asked).inspect_err(|_| self.save_if_possible())?;
            if requests.end {
                self.save_for_the_end(job)?;
                return Ok(TrainingEnd::Terminated);
            }
            if requests.checkpoint {
                self.save_for_a_warning(job);
            }
            if Instant::now() >= save_at {
                self.save_if_possible();
                save_at = Instant::now() + save_interval;
            }
            self.step(job)?;
        }
        self.save()?;
        Ok(TrainingEnd::Finished)
    }

    fn step(&mut self, job: &mut JobContext) -> Result<()> {
        let loss = self.task.loss(self.steps, self.team.shard())?;
        let own = Gradients::of_loss(&loss, self.task.parameters())?;
        let gradients = self.summed(own)?;
        let loss = gradients.loss;
        ensure!(
            loss.is_finite(),
            "the loss at step {} is {loss}: try a lower --learning-rate",
            self.steps + 1
        );
        self.optimizer.update(self.task.parameters(), &gradients, self.steps + 1)?;
        self.steps += 1;
        job.progress.report(ProgressLine { step: self.steps, total: self.task.total_steps(), loss });
        if let Some(line) = self.task.line_after(self.steps, loss)? {
            job.say(&line);
        }
        Ok(())
    }

    /// What is done is not lost with another rank.
    fn summed(&mut self, own: Gradients) -> Result<Gradients> {
        own.summed(&mut self.team).inspect_err(|_| self.save_if_possible())
    }

    fn save_for_the_end(&mut self, job: &mut JobContext) -> Result<()> {
        self.save()?;
        job.say(&format!("asked to end after step {}: {}", self.steps, self.what_is_saved()));
        Ok(())
    }

    fn save_for_a_warning(&mut self, job: &mut JobContext) {
        self.save_if_possible();
        job.say(&format!("warned after step {}: {}, going on", self.steps, self.what_is_saved()));
    }

    fn what_is_saved(&self) -> String {
        match &self.store {
            Some(_) => format!("checkpoint of step {}", self.saved_steps),
            None => "no --checkpoint folder, nothing saved".to_owned(),
        }
    }

    /// A full disk is no reason to throw away a training that could still finish.
    fn save_if_possible(&mut self) {
        if let Err(error) = self.save() {
            warn(&format!("warning: {error:#}"));
        }
    }

    fn save(&mut self) -> Result<()> {
        let Some(store) = &self.store else { return Ok(()) };
        if self.saved_steps == self.steps && self.steps > 0 {
            return Ok(());
        }
        store.save(&self.checkpoint()?)?;
        self.saved_steps = self.steps;
        Ok(())
    }

    /// The present state.
    fn checkpoint(&self) -> Result<Checkpoint> {
        let mut tensors = self.task.parameters().tensors(WEIGHT_PREFIX)?;
        tensors.extend(self.optimizer.tensors());
        Ok(Checkpoint { step: self.steps, options: self.options.clone(), tensors })
    }
}
