//! The loop of all programs: resume, step, report, save, and stop on request.
//!
//! A step is a pure function of the parameters, the moments and the number of the step. Therefore a training
//! that was interrupted and resumed ends with the same bits. The loop reads the clock only to decide when to
//! save. Ranks that train together start from the state of the first rank and take the same steps; only the
//! first rank saves. Start reading at [`train`].

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, ensure};
use candle_core::Tensor;

use crate::adam::Adam;
use crate::checkpoint::{Checkpoint, CheckpointLookup, CheckpointStore};
use crate::gradients::Gradients;
use crate::job_context::{JobContext, warn};
use crate::options::RunOptions;
use crate::parameters::Parameters;
use crate::process_group::{ProcessGroup, Shard, SignalRequests};
use crate::progress::ProgressLine;

const WEIGHT_PREFIX: &str = "weight.";

/// A network and its examples.
pub(crate) trait TrainingTask {
    /// The name of the program and of its checkpoint.
    const NAME: &str;

    /// The parameters to train.
    fn parameters(&self) -> &Parameters;

    /// Total number of steps.
    fn total_steps(&self) -> u64;

    /// The loss of a shard on the examples of a step, counted from 0: a scalar that depends on the
    /// parameters. The losses of all shards add up to the mean over all examples.
    fn loss(&self, step: u64, shard: Shard) -> Result<Tensor>;

    /// The line to print after this number of steps, if any.
    fn line_after(&self, steps: u64, loss: f32) -> Result<Option<String>>;
}

/// How a training ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TrainingEnd {
    /// All steps are done.
    Finished,
    /// SIGTERM was received.
    Terminated,
}

/// The configuration of a training.
pub(crate) struct TrainingConfig<'a> {
    pub(crate) learning_rate: f64,
    /// The options that determine the result, by flag.
    pub(crate) options: BTreeMap<String, String>,
    pub(crate) run: &'a RunOptions,
}

/// Trains a task together with the other ranks of a group.
pub(crate) fn train<T: TrainingTask>(
    task: &T,
    plan: TrainingConfig<'_>,
    group: ProcessGroup,
    job: &mut JobContext,
) -> Result<TrainingEnd> {
    let folder = plan.run.checkpoint_folder.as_deref().filter(|_| group.is_first());
    let store = folder.map(|folder| CheckpointStore::open(folder, T::NAME)).transpose()?;
    let optimizer = Adam::new(task.parameters(), plan.learning_rate)?;
    let options = plan.options;
    let mut trainer = TrainingLoop { task, group, optimizer, store, options, steps: 0, saved_steps: 0 };
    trainer.resume(job)?;
    trainer.synchronize_with_first()?;
    trainer.run(Duration::from_secs(plan.run.checkpoint_seconds), job)
}

struct TrainingLoop<'a, T> {
    task: &'a T,
    group: ProcessGroup,
    optimizer: Adam,
    /// Only on the first rank, and only if it saves checkpoints.
    store: Option<CheckpointStore>,
    options: BTreeMap<String, String>,
    /// Number of steps done.
    steps: u64,
    /// Number of steps in the latest checkpoint.
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
            Ok(()) => job.print_line(&format!("resumed at step {}", self.steps)),
            Err(damage) => warn(&format!(
                "warning: ignoring the damaged checkpoint {} ({damage:#}): starting at step 0",
                store.path().display()
            )),
        }
        Ok(())
    }

    /// All ranks start from the state of the first one, whether or not they could read its checkpoint.
    fn synchronize_with_first(&mut self) -> Result<()> {
        let own = self.checkpoint()?;
        let Some(bytes) = self.group.broadcast_from_first(|| own.to_bytes())? else { return Ok(()) };
        self.restore(&Checkpoint::from_bytes(&bytes).context("the first rank sent an invalid state")?)
    }

    /// Restores the state. On an error, nothing has changed.
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
            let requests = self.group.agree(asked).inspect_err(|_| self.save_if_possible())?;
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
        let loss = self.task.loss(self.steps, self.group.shard())?;
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
            job.print_line(&line);
        }
        Ok(())
    }

    /// Sums gradients over all ranks; if another rank is lost, saves a checkpoint first.
    fn summed(&mut self, own: Gradients) -> Result<Gradients> {
        own.summed(&mut self.group).inspect_err(|_| self.save_if_possible())
    }

    fn save_for_the_end(&mut self, job: &mut JobContext) -> Result<()> {
        self.save()?;
        job.print_line(&format!("asked to end after step {}: {}", self.steps, self.what_is_saved()));
        Ok(())
    }

    fn save_for_a_warning(&mut self, job: &mut JobContext) {
        self.save_if_possible();
        job.print_line(&format!("warned after step {}: {}, going on", self.steps, self.what_is_saved()));
    }

    fn what_is_saved(&self) -> String {
        match &self.store {
            Some(_) => format!("checkpoint of step {}", self.saved_steps),
            None => "no --checkpoint directory, nothing saved".to_owned(),
        }
    }

    /// Saves a checkpoint. A failure, such as a full disk, is only a warning: the training may still finish.
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

    /// The current state.
    fn checkpoint(&self) -> Result<Checkpoint> {
        let mut tensors = self.task.parameters().tensors(WEIGHT_PREFIX)?;
        tensors.extend(self.optimizer.tensors());
        Ok(Checkpoint { step: self.steps, options: self.options.clone(), tensors })
    }
}
