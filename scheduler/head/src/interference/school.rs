//! The school: gathers what was lived through, keeps the versions of the model, and says what is known.
//!
//! It works on a thread of its own, which the driver asks and never waits for. It learns no model itself: it
//! hands out what there is to learn, and takes in what came of it.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use cohabit_actor::{Address, Reply};
use cohabit_policy::interference::{
    Experience, Experienced, Knowledge, Lived, LivedSet, MeasuredSet, SoloBook,
};
use cohabit_types::{ModelChoice, ModelRequest, Models, Refusal, RefusalCode, Slowdown};

use super::Base;
use super::base::source::restore;
use super::guarded::Guarded;
use super::news::Figures;
use super::refit::{Better, Refit, rows};
use super::versions::{Choice, Versions};
use crate::thread::{self, Inbox, Thread};

/// Lessons that may wait.
const CAPACITY: usize = 16;

/// What a school starts with.
#[derive(Debug)]
pub(crate) struct Curriculum {
    pub(crate) base: Base,
    pub(crate) experience: Experience,
    /// How much neighbours may slow down a job that does not say.
    pub(crate) max_slowdown: Slowdown,
    /// The model is learned anew after so many new rows; 0 for never.
    pub(crate) refit_after: u64,
    /// Where versions are kept.
    pub(crate) folder: PathBuf,
}

/// The driver's end of the school.
#[derive(Debug)]
pub(crate) struct Learner {
    lessons: Address<Lesson>,
    /// What configurations are known by.
    solos: Arc<SoloBook>,
    _thread: Thread,
}

/// What came of a lesson.
#[derive(Debug, Default)]
pub(crate) struct Taught {
    /// What is known from now on, if that is new.
    pub(crate) knowledge: Option<Knowledge>,
    /// A model that is to be learned now.
    pub(crate) refit: Option<Refit>,
}

/// To the thread.
#[derive(Debug)]
enum Lesson {
    Lived(Vec<Lived>, Reply<Taught>),
    Refitted(Option<Box<Better>>, Reply<Taught>),
    Models(ModelRequest, Reply<(Result<Models, Refusal>, Taught)>),
}

impl Learner {
    /// Opens the school; what it knows already is with it.
    pub(crate) fn start(curriculum: Curriculum) -> io::Result<(Learner, Knowledge)> {
        let solos = Arc::clone(&curriculum.base.solos);
        let mut school = School::open(curriculum);
        let knowledge = school.knowledge();
        let (lessons, thread) = thread::spawn("learner", CAPACITY, move |inbox| school.teach_all(inbox))?;
        Ok((Learner { lessons, solos, _thread: thread }, knowledge))
    }

    /// What configurations of jobs are known by.
    pub(crate) fn solos(&self) -> &SoloBook {
        &self.solos
    }

    /// Tells of what was lived through.
    pub(crate) fn lived(&self, lived: Vec<Lived>) -> impl Future<Output = Taught> + use<> {
        let lessons = self.lessons.clone();
        async move { lessons.ask(|reply_to| Lesson::Lived(lived, reply_to)).await.unwrap_or_default() }
    }

    /// Does a refit, and tells of it.
    pub(crate) fn refit(&self, refit: Refit) -> impl Future<Output = Taught> + use<> {
        let lessons = self.lessons.clone();
        async move {
            let better = refit.elsewhere().await.unwrap_or_default();
            lessons.ask(|reply_to| Lesson::Refitted(better, reply_to)).await.unwrap_or_default()
        }
    }

    /// Asks about the models, or for another one.
    pub(crate) fn models(
        &self,
        request: ModelRequest,
    ) -> impl Future<Output = (Result<Models, Refusal>, Taught)> + use<> {
        let lessons = self.lessons.clone();
        async move {
            let asked = lessons.ask(|reply_to| Lesson::Models(request, reply_to)).await;
            asked.unwrap_or_else(|error| {
                let refusal = format!("the models are not to be had ({error}): start the head anew");
                (Err(Refusal::new(RefusalCode::Internal, refusal)), Taught::default())
            })
        }
    }
}

/// On its thread.
struct School {
    base: Base,
    experience: Experience,
    max_slowdown: Slowdown,
    refit_after: u64,
    versions: Versions,
    /// The model of the current version.
    current: Guarded,
    /// What the policy was told last.
    told: Figures,
    /// How many rows there were at the last refit.
    fitted: u64,
    /// Whether one is under way.
    fitting: bool,
}

impl School {
    fn open(curriculum: Curriculum) -> School {
        let Curriculum { base, experience, max_slowdown, refit_after, folder } = curriculum;
        let versions = Versions::open(folder);
        let current = Guarded::new(Arc::clone(&base.interference));
        let mut school = School {
            base,
            experience,
            max_slowdown,
            refit_after,
            versions,
            current,
            told: Figures::default(),
            fitted: 0,
            fitting: false,
        };
        school.take_up();
        school
    }

    /// Goes on with the version that was current; without it, with the base.
    fn take_up(&mut self) {
        let Some(version) = self.versions.choice().current else { return };
        match self.model_of(version) {
            Ok(model) => self.current = model,
            Err(refusal) => {
                tracing::warn!(version, why = refusal.message, "the head goes by '{}'", self.base.basis);
                self.versions.pass_over();
            }
        }
        let learned_from = self.versions.find(version);
        self.fitted = learned_from.map_or(0, |record| record.rows + record.judged_on);
    }

    fn teach_all(&mut self, mut inbox: Inbox<Lesson>) {
        while let Some(lesson) = inbox.next() {
            match lesson {
                Lesson::Lived(lived, reply_to) => {
                    lived.iter().for_each(|it| self.experience.note(it));
                    reply_to.send(self.taught());
                }
                Lesson::Refitted(better, reply_to) => {
                    self.fitting = false;
                    let news = better.and_then(|better| self.adopt(*better));
                    reply_to.send(Taught { knowledge: news, ..Taught::default() });
                }
                Lesson::Models(request, reply_to) => {
                    let answer = self.choose(request);
                    let changed = matches!(answer, Ok(Changed::Yes));
                    let knowledge = changed.then(|| self.knowledge());
                    let taught = Taught { knowledge, ..Taught::default() };
                    reply_to.send((answer.map(|_| self.models()), taught));
                }
            }
        }
    }

    /// What is new of all that is known, and what there is to learn.
    fn taught(&mut self) -> Taught {
        let (sets, solos) = (self.experience.sets(), self.experience.solos(&self.base.solos));
        let figures = Figures::of(&sets, &solos);
        if figures.is_like(&self.told) {
            return Taught::default();
        }
        self.told = figures;
        Taught { knowledge: Some(self.knowing(&sets, solos)), refit: self.refit(sets) }
    }

    /// All that is known.
    fn knowledge(&mut self) -> Knowledge {
        let (sets, solos) = (self.experience.sets(), self.experience.solos(&self.base.solos));
        self.told = Figures::of(&sets, &solos);
        self.knowing(&sets, solos)
    }

    fn knowing(&self, sets: &[LivedSet], solos: SoloBook) -> Knowledge {
        let interference = Arc::new(Experienced::over(Arc::new(self.current.clone()), sets));
        Knowledge { interference, solos: Arc::new(solos), max_slowdown: self.max_slowdown }
    }

    /// A refit, if one is due. While an admin holds a version, none is.
    fn refit(&mut self, sets: Vec<LivedSet>) -> Option<Refit> {
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
    fn adopt(&mut self, better: Better) -> Option<Knowledge> {
        if self.versions.choice().held {
            return None;
        }
        let Better { record, model } = better;
        tracing::info!(version = record.version, kind = record.kind, "the head goes by a better model");
        if let Err(error) = self.versions.add(record) {
            tracing::warn!(%error, "the new version is not kept: after a restart the one before is back");
        }
        self.current = Guarded::new(model);
        Some(self.knowledge())
    }

    fn choose(&mut self, request: ModelRequest) -> Result<Changed, Refusal> {
        let current = self.versions.choice().current;
        match request {
            ModelRequest::List => Ok(Changed::No),
            ModelRequest::Use(ModelChoice::Auto) => {
                self.go_by(Choice { current, held: false });
                Ok(Changed::No)
            }
            ModelRequest::Use(ModelChoice::Base) => {
                self.current = Guarded::new(Arc::clone(&self.base.interference));
                self.go_by(Choice { current: None, held: true });
                Ok(Changed::Yes)
            }
            ModelRequest::Use(ModelChoice::Version(version)) => {
                self.current = self.model_of(version)?;
                self.go_by(Choice { current: Some(version), held: true });
                Ok(Changed::Yes)
            }
        }
    }

    fn go_by(&mut self, choice: Choice) {
        if let Err(error) = self.versions.choose(choice) {
            tracing::warn!(%error, "the choice of the model cannot be kept: after a restart it is forgotten");
        }
    }

    fn model_of(&self, version: u32) -> Result<Guarded, Refusal> {
        let record = self.versions.find(version).ok_or_else(|| {
            let known = self.versions.records().iter().map(|it| it.version.to_string());
            let known: Vec<String> = known.chain(["base".to_owned()]).collect();
            let message =
                format!("there is no version {version} of the model: there are {}", known.join(", "));
            Refusal::new(RefusalCode::NotFound, message)
        })?;
        let model = restore(&self.versions.folder(version), record, &self.base);
        model.map(Guarded::new).map_err(|why| {
            let message = format!("version {version} of the model cannot be used: {why}");
            Refusal::new(RefusalCode::WrongState, message)
        })
    }

    fn models(&self) -> Models {
        let measured: Vec<MeasuredSet> = self.experience.sets().into_iter().map(|it| it.measured).collect();
        let Choice { current, held } = self.versions.choice();
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
