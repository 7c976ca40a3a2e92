//! The school: gathers what was lived through, keeps the versions of the model, and says what is known.
//!
//! It works on a thread of its own, which the driver asks and never waits for. It learns no model itself: it
//! hands out what there is to learn, and takes in what came of it.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use cohabit_actor::{Address, ReplyTo};
use cohabit_policy::interference::{
    ColocationHistory, InterferenceContext, MeasuredSet, ObservedInterference, ObservedSample, ObservedSet,
    SoloMetricsTable,
};
use cohabit_types::{ModelChoice, Models, Refusal, RefusalCode, Slowdown};

use super::Base;
use super::base::source::restore;
use super::guarded::GuardedModel;
use super::news::InterferenceDigest;
use super::refit::{BetterModel, Refit, rows};
use super::versions::{ModelVersions, VersionChoice};
use crate::thread::{self, ActorThread, Inbox};

/// Lessons that may wait.
const CAPACITY: usize = 16;

/// What a school starts with.
#[derive(Debug)]
pub(crate) struct TrainerOptions {
    pub(crate) base: Base,
    pub(crate) experience: ColocationHistory,
    /// How much neighbours may slow down a job that does not say.
    pub(crate) max_slowdown: Slowdown,
    /// The model is learned anew after so many new rows; 0 for never.
    pub(crate) refit_after: u64,
    /// Where versions are kept.
    pub(crate) folder: PathBuf,
}

/// The driver's end of the school.
#[derive(Debug)]
pub(crate) struct TrainerHandle {
    requests: Address<TrainRequest>,
    /// What configurations are known by.
    solos: Arc<SoloMetricsTable>,
    _thread: ActorThread,
}

/// What came of a lesson.
#[derive(Debug, Default)]
pub(crate) struct TrainingUpdate {
    /// What is known from now on, if that is new.
    pub(crate) knowledge: Option<InterferenceContext>,
    /// A model that is to be learned now.
    pub(crate) refit: Option<Refit>,
}

/// To the thread.
#[derive(Debug)]
enum TrainRequest {
    ObservedSample(Vec<ObservedSample>, ReplyTo<TrainingUpdate>),
    Refitted(Option<Box<BetterModel>>, ReplyTo<TrainingUpdate>),
    Models(Option<ModelChoice>, ReplyTo<(Result<Models, Refusal>, TrainingUpdate)>),
}

impl TrainerHandle {
    /// Opens the school; what it knows already is with it.
    pub(crate) fn start(curriculum: TrainerOptions) -> io::Result<(TrainerHandle, InterferenceContext)> {
        let solos = Arc::clone(&curriculum.base.solos);
        let mut trainer = Trainer::open(curriculum);
        let knowledge = trainer.knowledge();
        let (requests, thread) = thread::spawn("learner", CAPACITY, move |inbox| trainer.serve(inbox))?;
        Ok((TrainerHandle { requests, solos, _thread: thread }, knowledge))
    }

    /// What configurations of jobs are known by.
    pub(crate) fn solos(&self) -> &SoloMetricsTable {
        &self.solos
    }

    /// Tells of what was lived through.
    pub(crate) fn lived(&self, lived: Vec<ObservedSample>) -> impl Future<Output = TrainingUpdate> + use<> {
        let requests = self.requests.clone();
        async move {
            requests.ask(|reply_to| TrainRequest::ObservedSample(lived, reply_to)).await.unwrap_or_default()
        }
    }

    /// Does a refit, and tells of it.
    pub(crate) fn refit(&self, refit: Refit) -> impl Future<Output = TrainingUpdate> + use<> {
        let requests = self.requests.clone();
        async move {
            let better = refit.run_on_thread().await.unwrap_or_default();
            requests.ask(|reply_to| TrainRequest::Refitted(better, reply_to)).await.unwrap_or_default()
        }
    }

    /// Asks about the models, or for another one.
    pub(crate) fn models(
        &self,
        choice: Option<ModelChoice>,
    ) -> impl Future<Output = (Result<Models, Refusal>, TrainingUpdate)> + use<> {
        let requests = self.requests.clone();
        async move {
            let asked = requests.ask(|reply_to| TrainRequest::Models(choice, reply_to)).await;
            asked.unwrap_or_else(|error| {
                let refusal = format!("the models are not to be had ({error}): start the head anew");
                (Err(Refusal::new(RefusalCode::Internal, refusal)), TrainingUpdate::default())
            })
        }
    }
}

/// On its thread.
struct Trainer {
    base: Base,
    experience: ColocationHistory,
    max_slowdown: Slowdown,
    refit_after: u64,
    versions: ModelVersions,
    /// The model of the current version.
    current: GuardedModel,
    /// What the policy was told last.
    told: InterferenceDigest,
    /// How many rows there were at the last refit.
    fitted: u64,
    /// Whether one is under way.
    fitting: bool,
}

impl Trainer {
    fn open(curriculum: TrainerOptions) -> Trainer {
        let TrainerOptions { base, experience, max_slowdown, refit_after, folder } = curriculum;
        let versions = ModelVersions::open(folder);
        let current = GuardedModel::new(Arc::clone(&base.interference));
        let mut trainer = Trainer {
            base,
            experience,
            max_slowdown,
            refit_after,
            versions,
            current,
            told: InterferenceDigest::default(),
            fitted: 0,
            fitting: false,
        };
        trainer.restore_current();
        trainer
    }

    /// Goes on with the version that was current; without it, with the base.
    fn restore_current(&mut self) {
        let Some(version) = self.versions.choice().current else { return };
        match self.model_of(version) {
            Ok(model) => self.current = model,
            Err(refusal) => {
                tracing::warn!(version, why = refusal.message, "the head goes by '{}'", self.base.basis);
                self.versions.fall_back_to_base();
            }
        }
        let learned_from = self.versions.find(version);
        self.fitted = learned_from.map_or(0, |record| record.rows + record.judged_on);
    }

    fn serve(&mut self, mut inbox: Inbox<TrainRequest>) {
        while let Some(lesson) = inbox.next() {
            match lesson {
                TrainRequest::ObservedSample(lived, reply_to) => {
                    lived.iter().for_each(|it| self.experience.note(it));
                    reply_to.send(self.update());
                }
                TrainRequest::Refitted(better, reply_to) => {
                    self.fitting = false;
                    let news = better.and_then(|better| self.adopt(*better));
                    reply_to.send(TrainingUpdate { knowledge: news, ..TrainingUpdate::default() });
                }
                TrainRequest::Models(choice, reply_to) => {
                    let answer = self.choose(choice);
                    let changed = matches!(answer, Ok(Changed::Yes));
                    let knowledge = changed.then(|| self.knowledge());
                    let update = TrainingUpdate { knowledge, ..TrainingUpdate::default() };
                    reply_to.send((answer.map(|_| self.models()), update));
                }
            }
        }
    }

    /// What is new of all that is known, and what there is to learn.
    fn update(&mut self) -> TrainingUpdate {
        let (sets, solos) = (self.experience.sets(), self.experience.solos(&self.base.solos));
        let figures = InterferenceDigest::of(&sets, &solos);
        if figures.is_like(&self.told) {
            return TrainingUpdate::default();
        }
        self.told = figures;
        TrainingUpdate {
            knowledge: Some(self.build_interference_context(&sets, solos)),
            refit: self.refit(sets),
        }
    }

    /// All that is known.
    fn knowledge(&mut self) -> InterferenceContext {
        let (sets, solos) = (self.experience.sets(), self.experience.solos(&self.base.solos));
        self.told = InterferenceDigest::of(&sets, &solos);
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

    /// A refit, if one is due. While an admin holds a version, none is.
    fn refit(&mut self, sets: Vec<ObservedSet>) -> Option<Refit> {
        let rows = rows(sets.iter().map(|it| &it.measured));
        let is_due = self.refit_after > 0 && rows >= self.fitted + self.refit_after;
        if !is_due || self.fitting || self.versions.choice().held {
            return None;
        }
        (self.fitted, self.fitting) = (rows, true);
        let version = self.versions.next();
        Some(Refit {
            sets,
            base: self.base.clone(),
            current: self.current.clone(),
            version,
            folder: self.versions.folder(version),
        })
    }

    /// Goes by what a refit gave, unless an admin has chosen otherwise meanwhile.
    fn adopt(&mut self, better: BetterModel) -> Option<InterferenceContext> {
        if self.versions.choice().held {
            return None;
        }
        let BetterModel { record, model } = better;
        tracing::info!(version = record.version, kind = record.kind, "the head goes by a better model");
        if let Err(error) = self.versions.add(record) {
            tracing::warn!(%error, "the new version is not kept: after a restart the one before is back");
        }
        self.current = GuardedModel::new(model);
        Some(self.knowledge())
    }

    fn choose(&mut self, choice: Option<ModelChoice>) -> Result<Changed, Refusal> {
        let current = self.versions.choice().current;
        match choice {
            None => Ok(Changed::No),
            Some(ModelChoice::Auto) => {
                self.save_choice(VersionChoice { current, held: false });
                Ok(Changed::No)
            }
            Some(ModelChoice::Base) => {
                self.current = GuardedModel::new(Arc::clone(&self.base.interference));
                self.save_choice(VersionChoice { current: None, held: true });
                Ok(Changed::Yes)
            }
            Some(ModelChoice::Version(version)) => {
                self.current = self.model_of(version)?;
                self.save_choice(VersionChoice { current: Some(version), held: true });
                Ok(Changed::Yes)
            }
        }
    }

    fn save_choice(&mut self, choice: VersionChoice) {
        if let Err(error) = self.versions.choose(choice) {
            tracing::warn!(%error, "the choice of the model cannot be kept: after a restart it is forgotten");
        }
    }

    fn model_of(&self, version: u32) -> Result<GuardedModel, Refusal> {
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
        let VersionChoice { current, held } = self.versions.choice();
        Models {
            base: self.base.basis.to_string(),
            versions: self.versions.records().to_vec(),
            current,
            held,
            sets: measured.len() as u64,
            rows: rows(&measured),
            trouble: self.current.trouble().map(str::to_owned),
        }
    }
}

/// Whether the head goes by another model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Changed {
    Yes,
    No,
}
