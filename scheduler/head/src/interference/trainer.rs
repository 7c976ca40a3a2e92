//! The trainer: collects observations, manages the versions of the trained model, and provides what the
//! policy needs to predict interference.
//!
//! It runs on a thread of its own, so that the driver never waits for files. It fits no model itself: it
//! hands out the input of a [`Refit`] and takes in the result.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use cohabit_actor::{Address, ReplyTo};
use cohabit_policy::interference::{
    ColocationHistory, InterferenceContext, MeasuredSet, ObservedInterference, ObservedSet, SoloMetricsTable,
};
use cohabit_types::{ModelChoice, Models, Refusal, RefusalCode, Slowdown, Time};

use super::base_predictor::BasePredictor;
use super::digest::InterferenceDigest;
use super::guarded_model::GuardedModel;
use super::model_versions::{ModelVersions, VersionChoice};
use super::models::restore;
use super::observation::Observation;
use super::refit::{BetterModel, Refit};
use super::samples::member_count;
use crate::actor_thread::{self, ActorThread, Inbox};

/// How many requests may wait.
const CAPACITY: usize = 16;

/// What the trainer starts with.
#[derive(Debug)]
pub(crate) struct TrainerOptions {
    pub(crate) base: BasePredictor,
    /// What earlier runs of the head observed.
    pub(crate) experience: ColocationHistory,
    /// The largest slowdown that neighbors may cause to a job that sets no limit.
    pub(crate) max_slowdown: Option<Slowdown>,
    /// A refit is due after this many new samples; 0 turns refits off.
    pub(crate) refit_after: u64,
    /// The directory of the versions.
    pub(crate) folder: PathBuf,
}

/// The driver's end of the trainer.
#[derive(Debug)]
pub(crate) struct TrainerHandle {
    requests: Address<TrainRequest>,
    /// What was measured of configurations that run alone.
    solos: Arc<SoloMetricsTable>,
    _thread: ActorThread,
}

/// The result of a request.
#[derive(Debug, Default)]
pub(crate) struct TrainingUpdate {
    /// Counts the updates of a trainer: a later one includes what an earlier one knows.
    pub(crate) number: u64,
    /// The new knowledge of interference, if it changed.
    pub(crate) knowledge: Option<InterferenceContext>,
    /// A refit that is due.
    pub(crate) refit: Option<Refit>,
}

/// A request to the thread.
#[derive(Debug)]
enum TrainRequest {
    Observe(Vec<Observation>, ReplyTo<TrainingUpdate>),
    FinishRefit(Option<Box<BetterModel>>, ReplyTo<TrainingUpdate>),
    Models(Option<ModelChoice>, ReplyTo<(Result<Models, Refusal>, TrainingUpdate)>),
}

impl TrainerHandle {
    /// Starts the trainer, which blocks while it reads the versions. Returns what it knows already.
    pub(crate) fn start(options: TrainerOptions) -> io::Result<(TrainerHandle, InterferenceContext)> {
        let solos = Arc::clone(&options.base.solos);
        let mut trainer = Trainer::open(options);
        let knowledge = trainer.knowledge();
        let (requests, thread) = actor_thread::spawn("trainer", CAPACITY, move |inbox| trainer.serve(inbox))?;
        Ok((TrainerHandle { requests, solos, _thread: thread }, knowledge))
    }

    /// What was measured of configurations that run alone.
    pub(crate) fn solos(&self) -> &SoloMetricsTable {
        &self.solos
    }

    /// Adds observations.
    pub(crate) fn observe(
        &self,
        observations: Vec<Observation>,
    ) -> impl Future<Output = TrainingUpdate> + use<> {
        let requests = self.requests.clone();
        async move {
            let update = requests.ask(|reply_to| TrainRequest::Observe(observations, reply_to)).await;
            update.unwrap_or_default()
        }
    }

    /// Runs a refit on a thread of its own and hands its result to the trainer.
    pub(crate) fn refit(&self, refit: Refit) -> impl Future<Output = TrainingUpdate> + use<> {
        let requests = self.requests.clone();
        async move {
            let better = refit.run_on_thread().await.unwrap_or_default();
            requests.ask(|reply_to| TrainRequest::FinishRefit(better, reply_to)).await.unwrap_or_default()
        }
    }

    /// Lists the models, after the choice of another one if the request has one.
    pub(crate) fn models(
        &self,
        choice: Option<ModelChoice>,
    ) -> impl Future<Output = (Result<Models, Refusal>, TrainingUpdate)> + use<> {
        let requests = self.requests.clone();
        async move {
            let asked = requests.ask(|reply_to| TrainRequest::Models(choice, reply_to)).await;
            asked.unwrap_or_else(|error| {
                let refusal =
                    format!("the trainer of interference models has failed ({error}): restart the head");
                (Err(Refusal::new(RefusalCode::Internal, refusal)), TrainingUpdate::default())
            })
        }
    }
}

/// The state of the thread.
pub(super) struct Trainer {
    base: BasePredictor,
    experience: ColocationHistory,
    max_slowdown: Option<Slowdown>,
    refit_after: u64,
    versions: ModelVersions,
    /// The model of the current version, or the base predictor.
    current: GuardedModel,
    /// The figures of the last update of the policy.
    published: InterferenceDigest,
    /// The number of samples at the last refit.
    fitted_samples: u64,
    /// Whether a refit is running.
    fitting: bool,
    /// The number of updates so far.
    updates: u64,
}

impl Trainer {
    pub(super) fn open(options: TrainerOptions) -> Trainer {
        let TrainerOptions { base, experience, max_slowdown, refit_after, folder } = options;
        let versions = ModelVersions::open(folder);
        let current = GuardedModel::new(Arc::clone(&base.interference));
        let mut trainer = Trainer {
            base,
            experience,
            max_slowdown,
            refit_after,
            versions,
            current,
            published: InterferenceDigest::default(),
            fitted_samples: 0,
            fitting: false,
            updates: 0,
        };
        trainer.restore_current();
        trainer
    }

    /// Continues with the version that was current; if that cannot be read, with the base predictor.
    fn restore_current(&mut self) {
        let Some(version) = self.versions.choice().current else { return };
        match self.restore_version(version) {
            Ok(model) => self.current = model,
            Err(refusal) => {
                let reason = refusal.message;
                tracing::warn!(version, reason, "predictions are made by '{}' instead", self.base.source);
                self.versions.fall_back_to_base();
            }
        }
        let record = self.versions.find(version);
        self.fitted_samples = record.map_or(0, |record| record.rows + record.validation_rows);
    }

    fn serve(&mut self, mut inbox: Inbox<TrainRequest>) {
        while let Some(request) = inbox.next() {
            match request {
                TrainRequest::Observe(observations, reply_to) => reply_to.send(self.observe(&observations)),
                TrainRequest::FinishRefit(better, reply_to) => reply_to.send(self.finish_refit(better)),
                TrainRequest::Models(choice, reply_to) => {
                    let answer = self.choose(choice);
                    let changed = matches!(answer, Ok(ModelChange::Changed));
                    let knowledge = changed.then(|| self.knowledge());
                    let update = self.numbered(knowledge, None);
                    reply_to.send((answer.map(|_| self.models()), update));
                }
            }
        }
    }

    /// Adds observations.
    pub(super) fn observe(&mut self, observations: &[Observation]) -> TrainingUpdate {
        observations.iter().for_each(|observation| observation.add_to(&mut self.experience));
        self.update()
    }

    /// Takes in the result of a refit.
    pub(super) fn finish_refit(&mut self, better: Option<Box<BetterModel>>) -> TrainingUpdate {
        self.fitting = false;
        let knowledge = better.and_then(|better| self.adopt(*better));
        self.numbered(knowledge, None)
    }

    fn numbered(&mut self, knowledge: Option<InterferenceContext>, refit: Option<Refit>) -> TrainingUpdate {
        self.updates += 1;
        TrainingUpdate { number: self.updates, knowledge, refit }
    }

    /// The number of the newest version.
    #[cfg(feature = "learned")]
    pub(super) fn version_count(&self) -> usize {
        self.versions.records().last().map_or(0, |record| record.version as usize)
    }

    /// The knowledge if it has changed enough, and the refit that is due.
    fn update(&mut self) -> TrainingUpdate {
        let (sets, solos) = (self.experience.sets(), self.experience.solos(&self.base.solos));
        let digest = InterferenceDigest::of(&sets, &solos);
        if digest.is_close_to(&self.published) {
            return self.numbered(None, None);
        }
        self.published = digest;
        let knowledge = self.build_interference_context(&sets, solos);
        let refit = self.start_refit(sets);
        self.numbered(Some(knowledge), refit)
    }

    /// All knowledge of interference.
    fn knowledge(&mut self) -> InterferenceContext {
        let (sets, solos) = (self.experience.sets(), self.experience.solos(&self.base.solos));
        self.published = InterferenceDigest::of(&sets, &solos);
        self.build_interference_context(&sets, solos)
    }

    fn build_interference_context(
        &self,
        sets: &[ObservedSet],
        solos: SoloMetricsTable,
    ) -> InterferenceContext {
        let interference = Arc::new(ObservedInterference::over(Arc::new(self.current.clone()), sets));
        InterferenceContext { interference, solos: Arc::new(solos), max_slowdown: self.max_slowdown }
    }

    /// A refit, if one is due. None is while an admin has pinned a version.
    fn start_refit(&mut self, sets: Vec<ObservedSet>) -> Option<Refit> {
        let samples = member_count(sets.iter().map(|it| &it.measured));
        let is_due = self.refit_after > 0 && samples >= self.fitted_samples + self.refit_after;
        if !is_due || self.fitting || self.versions.choice().pinned {
            return None;
        }
        (self.fitted_samples, self.fitting) = (samples, true);
        let version = self.versions.next();
        Some(Refit {
            sets,
            base: self.base.clone(),
            current: self.current.clone(),
            learned_until: self.learned_until(),
            version,
            folder: self.versions.folder(version),
        })
    }

    /// Until when the current model, or the base that candidates are adapted from, may have learned sets that
    /// judge others.
    fn learned_until(&self) -> Option<Time> {
        let current = self.versions.choice().current.and_then(|version| self.versions.learned_until(version));
        current.max(self.base.learned_until)
    }

    /// Uses the result of a refit, unless an admin has pinned a version meanwhile.
    fn adopt(&mut self, better: BetterModel) -> Option<InterferenceContext> {
        if self.versions.choice().pinned {
            return None;
        }
        let BetterModel { record, model } = better;
        tracing::info!(version = record.version, kind = record.kind, "a better interference model is in use");
        if let Err(error) = self.versions.add(record) {
            tracing::warn!(%error, "cannot save the new version: after a restart the previous one is in use");
        }
        self.current = GuardedModel::new(model);
        Some(self.knowledge())
    }

    fn choose(&mut self, choice: Option<ModelChoice>) -> Result<ModelChange, Refusal> {
        let current = self.versions.choice().current;
        match choice {
            None => Ok(ModelChange::Unchanged),
            Some(ModelChoice::Auto) => {
                self.save_choice(VersionChoice { current, pinned: false });
                Ok(ModelChange::Unchanged)
            }
            Some(ModelChoice::Base) => {
                self.current = GuardedModel::new(Arc::clone(&self.base.interference));
                self.save_choice(VersionChoice { current: None, pinned: true });
                Ok(ModelChange::Changed)
            }
            Some(ModelChoice::Version(version)) => {
                self.current = self.restore_version(version)?;
                self.save_choice(VersionChoice { current: Some(version), pinned: true });
                Ok(ModelChange::Changed)
            }
        }
    }

    fn save_choice(&mut self, choice: VersionChoice) {
        if let Err(error) = self.versions.choose(choice) {
            tracing::warn!(%error, "cannot save the choice of the model: a restart forgets it");
        }
    }

    fn restore_version(&self, version: u32) -> Result<GuardedModel, Refusal> {
        let record = self.versions.find(version).ok_or_else(|| {
            let known = self.versions.records().iter().map(|it| it.version.to_string());
            let known: Vec<String> = known.chain(["base".to_owned()]).collect();
            let message =
                format!("there is no version {version} of the model: there are {}", known.join(", "));
            Refusal::new(RefusalCode::NotFound, message)
        })?;
        let model = restore(&self.versions.folder(version), record, &self.base);
        model.map(GuardedModel::new).map_err(|why| {
            let message = format!("version {version} of the model cannot be used: {why}");
            Refusal::new(RefusalCode::WrongState, message)
        })
    }

    fn models(&self) -> Models {
        let measured: Vec<MeasuredSet> = self.experience.sets().into_iter().map(|it| it.measured).collect();
        let VersionChoice { current, pinned } = self.versions.choice();
        Models {
            base: self.base.source.to_string(),
            versions: self.versions.records().to_vec(),
            current,
            pinned,
            sets: measured.len() as u64,
            rows: member_count(&measured),
            failure: self.current.failure().map(str::to_owned),
        }
    }
}

/// Whether a request changed the model in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ModelChange {
    Changed,
    Unchanged,
}
