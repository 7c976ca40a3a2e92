//! Questions of users about live applications, which their coordinators answer.
//!
//! A coordinator waits for questions with a long poll, gets each once, and answers by its number. Questions
//! and answers are in memory only. Their number, their time and their bytes are bounded, and a question goes
//! when the user who has asked it does. Where several sessions of one coordinator wait, the links of all but
//! the newest have broken.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cohabit_types::{
    ApplicationAnswer, ApplicationQuestion, ApplicationTopic, AttemptId, Bytes, Refusal, RefusalCode,
};
use cohabit_wire::codec;
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, timeout, timeout_at};

/// Most questions about one application that are not answered.
const MOST_OPEN: usize = 16;

/// Longest answer, in bytes.
const LONGEST_ANSWER: usize = 4 << 20;

/// How long a coordinator has for an answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// The questions about all applications; cheap to clone.
#[derive(Debug, Default, Clone)]
pub(crate) struct ApplicationQuestions(Arc<Mutex<QuestionTable>>);

#[derive(Debug, Default)]
struct QuestionTable {
    last: u64,
    /// By the attempt of the root job, as long as there are any or its coordinator waits for some.
    applications: BTreeMap<AttemptId, OpenQuestions>,
}

#[derive(Debug, Default)]
struct OpenQuestions {
    /// Those that the coordinator has not got.
    new: VecDeque<ApplicationQuestion>,
    open: BTreeMap<u64, OpenQuestion>,
    /// Wakes the session of the coordinator that began to wait last.
    asked: Arc<Notify>,
    /// How many sessions of the coordinator wait.
    listeners: usize,
}

#[derive(Debug)]
struct OpenQuestion {
    topic: ApplicationTopic,
    reply_to: oneshot::Sender<SizedAnswer>,
}

/// An answer, with its size in bytes on a link.
type SizedAnswer = (ApplicationAnswer, usize);

/// A question, which is open as long as this exists.
#[derive(Debug)]
struct QuestionGuard {
    questions: ApplicationQuestions,
    application: AttemptId,
    number: u64,
}

/// A coordinator that waits for questions.
#[derive(Debug)]
struct ListenerGuard {
    questions: ApplicationQuestions,
    application: AttemptId,
    asked: Arc<Notify>,
}

impl ApplicationQuestions {
    /// The answer of a coordinator, with its size in bytes.
    ///
    /// # Errors
    /// If it does not answer in time, or too many questions to it are open.
    pub(crate) async fn ask(
        &self,
        application: AttemptId,
        topic: ApplicationTopic,
    ) -> Result<SizedAnswer, Refusal> {
        self.ask_within(application, topic, PATIENCE).await
    }

    async fn ask_within(
        &self,
        application: AttemptId,
        topic: ApplicationTopic,
        patience: Duration,
    ) -> Result<SizedAnswer, Refusal> {
        let (_open, answer) = self.open(application, topic)?;
        timeout(patience, answer).await.ok().and_then(Result::ok).ok_or_else(|| {
            let seconds = patience.as_secs();
            let root = application.job;
            Refusal::new(
                RefusalCode::Unavailable,
                format!(
                    "the coordinator of application {root} has not answered within {seconds} s: its node or its link \
                     to the head may be down, or the node is overloaded. See `cohabit show {root}` and `cohabit nodes`, \
                     and try again"
                ),
            )
        })
    }

    fn open(
        &self,
        application: AttemptId,
        topic: ApplicationTopic,
    ) -> Result<(QuestionGuard, oneshot::Receiver<SizedAnswer>), Refusal> {
        let mut table = self.table();
        let number = table.last + 1;
        let questions = table.applications.entry(application).or_default();
        if questions.open.len() >= MOST_OPEN {
            let message = format!(
                "{MOST_OPEN} questions about application {} are not answered yet: try again when they are",
                application.job
            );
            return Err(Refusal::new(RefusalCode::Unavailable, message));
        }
        let (reply_to, answer) = oneshot::channel();
        questions.new.push_back(ApplicationQuestion { number, topic });
        questions.open.insert(number, OpenQuestion { topic, reply_to });
        questions.asked.notify_one();
        table.last = number;
        Ok((QuestionGuard { questions: self.clone(), application, number }, answer))
    }

    /// Questions that a coordinator has not got; waits for one until the limit.
    pub(crate) async fn next(&self, application: AttemptId, limit: Instant) -> Vec<ApplicationQuestion> {
        let listener = self.listen(application);
        loop {
            let new = self.take_new(&listener);
            if !new.is_empty() || timeout_at(limit, listener.asked.notified()).await.is_err() {
                return new;
            }
        }
    }

    fn listen(&self, application: AttemptId) -> ListenerGuard {
        let mut table = self.table();
        let questions = table.applications.entry(application).or_default();
        questions.listeners += 1;
        let asked = Arc::new(Notify::new());
        questions.asked = Arc::clone(&asked);
        ListenerGuard { questions: self.clone(), application, asked }
    }

    fn take_new(&self, listener: &ListenerGuard) -> Vec<ApplicationQuestion> {
        let mut table = self.table();
        let questions = table.applications.get_mut(&listener.application);
        let newest = questions.filter(|questions| Arc::ptr_eq(&questions.asked, &listener.asked));
        newest.map(|questions| questions.new.drain(..).collect()).unwrap_or_default()
    }

    /// A coordinator has answered. Who has asked may not wait any more.
    ///
    /// # Errors
    /// If the answer is too long, or is one to another question.
    pub(crate) fn answer(
        &self,
        application: AttemptId,
        number: u64,
        answer: ApplicationAnswer,
    ) -> Result<(), Refusal> {
        let bytes = size(&answer)?;
        let mut table = self.table();
        let Some(questions) = table.applications.get_mut(&application) else { return Ok(()) };
        let Some(question) = questions.open.get(&number) else { return Ok(()) };
        if question.topic != answer.topic() {
            let message = format!("question {number} is about {}, not {}", question.topic, answer.topic());
            return Err(Refusal::new(RefusalCode::Invalid, message));
        }
        if let Some(question) = questions.open.remove(&number) {
            // Nobody may wait for it any more.
            let _answered = question.reply_to.send((answer, bytes));
        }
        Ok(())
    }

    /// The table is whole after each of its short changes.
    fn table(&self) -> MutexGuard<'_, QuestionTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, application: AttemptId, change: impl FnOnce(&mut OpenQuestions)) {
        let mut table = self.table();
        let Some(questions) = table.applications.get_mut(&application) else { return };
        change(questions);
        if questions.open.is_empty() && questions.listeners == 0 {
            table.applications.remove(&application);
        }
    }
}

impl Drop for QuestionGuard {
    fn drop(&mut self) {
        self.questions.change(self.application, |questions| {
            questions.new.retain(|question| question.number != self.number);
            questions.open.remove(&self.number);
        });
    }
}

impl Drop for ListenerGuard {
    fn drop(&mut self) {
        self.questions.change(self.application, |questions| questions.listeners -= 1);
    }
}

fn size(answer: &ApplicationAnswer) -> Result<usize, Refusal> {
    let mut bytes = Vec::new();
    codec::encode_into(answer, LONGEST_ANSWER, &mut bytes).map_err(|_| {
        let most = Bytes(LONGEST_ANSWER as u64);
        Refusal::new(RefusalCode::Invalid, format!("an answer has at most {most}: leave more out of it"))
    })?;
    Ok(bytes.len())
}

#[cfg(test)]
mod tests {
    use cohabit_types::{ActorListing, JobId, ObjectListing, TaskListing, TaskRecord, TaskStatus};
    use futures::FutureExt;

    use super::*;

    fn application() -> AttemptId {
        JobId::new(3).attempt(1)
    }

    fn actors() -> ApplicationAnswer {
        ApplicationAnswer::Actors(ActorListing::default())
    }

    async fn next(questions: &ApplicationQuestions) -> Vec<ApplicationQuestion> {
        questions.next(application(), Instant::now() + Duration::from_secs(60)).await
    }

    #[tokio::test]
    async fn a_coordinator_gets_each_question_once_and_its_answer_reaches_who_asked() {
        let questions = ApplicationQuestions::default();
        let asking = tokio::spawn({
            let questions = questions.clone();
            async move { questions.ask(application(), ApplicationTopic::Actors).await }
        });
        let [question] = next(&questions).await[..] else { panic!() };
        assert_eq!(question.topic, ApplicationTopic::Actors);
        assert_eq!(questions.next(application(), Instant::now()).await, []);
        let number = question.number;
        let objects = ApplicationAnswer::Objects(ObjectListing::default());
        let refused = questions.answer(application(), number, objects).unwrap_err();
        assert!(refused.message.contains("is about actors, not objects"), "{refused:?}");
        let other = JobId::new(4).attempt(1);
        assert_eq!(questions.answer(other, number, actors()), Ok(()), "nobody asked it that");
        assert_eq!(questions.answer(application(), number, actors()), Ok(()));
        assert_eq!(asking.await.unwrap().map(|(answer, _)| answer), Ok(actors()));
        assert_eq!(questions.answer(application(), number, actors()), Ok(()), "it is answered");
        assert!(questions.table().applications.is_empty());
    }

    #[tokio::test]
    async fn a_coordinator_that_waits_is_woken() {
        let questions = ApplicationQuestions::default();
        let mut waiting = Box::pin(next(&questions));
        assert!(waiting.as_mut().now_or_never().is_none());
        let (_open, _answer) = questions.open(application(), ApplicationTopic::Tasks).unwrap();
        assert_eq!(waiting.await.len(), 1);
    }

    /// The older one waits on a link that has broken unnoticed.
    #[tokio::test]
    async fn the_session_that_began_to_wait_last_gets_the_question() {
        let questions = ApplicationQuestions::default();
        let mut older = Box::pin(next(&questions));
        assert!(older.as_mut().now_or_never().is_none());
        let mut newer = Box::pin(next(&questions));
        assert!(newer.as_mut().now_or_never().is_none());
        let (_open, _answer) = questions.open(application(), ApplicationTopic::Tasks).unwrap();
        assert!(older.as_mut().now_or_never().is_none());
        assert_eq!(newer.await.len(), 1);
    }

    #[tokio::test]
    async fn a_coordinator_that_does_not_answer_is_told_with_what_to_do() {
        let questions = ApplicationQuestions::default();
        let asked = questions.ask_within(application(), ApplicationTopic::Actors, Duration::ZERO).await;
        let refused = asked.unwrap_err();
        assert_eq!(refused.code, RefusalCode::Unavailable);
        assert!(refused.message.contains("coordinator of application 3 has not answered"), "{refused:?}");
        assert!(refused.message.contains("cohabit show 3"), "{refused:?}");
        assert!(questions.table().applications.is_empty(), "a question ends with who asked it");
    }

    #[test]
    fn questions_and_answers_are_bounded() {
        let questions = ApplicationQuestions::default();
        let open = || questions.open(application(), ApplicationTopic::Tasks);
        let mut all: Vec<_> = (0..MOST_OPEN).map(|_| open().unwrap()).collect();
        assert!(open().unwrap_err().message.contains("16 questions about application 3"));
        all.pop();
        open().unwrap();
        let task = TaskRecord {
            name: "x".repeat(1 << 20),
            caller: application().rank(0),
            call: 1,
            depth: 0,
            class: None,
            state: TaskStatus::Returned,
            why: String::new(),
            runner: None,
            took: None,
        };
        let long = ApplicationAnswer::Tasks(TaskListing { tasks: vec![task; 4], ..TaskListing::default() });
        let refused = questions.answer(application(), 1, long).unwrap_err();
        assert!(refused.message.contains("at most 4 MiB"), "{refused:?}");
    }
}
