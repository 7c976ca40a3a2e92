//! The planner: the policy on a thread of its own, a limit on its time, and a cheap policy for when it is
//! exceeded.
//!
//! A slow or broken policy costs its own plans and nothing else: the driver never waits for it. The thread
//! keeps the policy's view of the cluster up to date by changes, which are handed over with the next
//! question, whatever became of the last one.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cohabit_actor::{Address, AskError, Reply};
use cohabit_proto::{Ticket, Time};
use cohabit_scheduler::interference::Knowledge;
use cohabit_scheduler::{
    Action, Change, Discipline, Expectation, Fifo, FirstFit, Pipeline, Plan, Policy, View, forecast,
};

use crate::thread::{self, Inbox, Thread};

/// Makes a new policy that has seen nothing.
pub(crate) type PolicyFactory = Arc<dyn Fn() -> Box<dyn Policy> + Send + Sync>;

/// Questions that may wait for a policy that is late.
const CAPACITY: usize = 4;

/// The driver's end of the planner.
#[derive(Debug)]
pub(crate) struct Planner {
    questions: Address<Question>,
    /// What the policy has not heard of yet.
    news: Arc<Mutex<News>>,
    limit: Duration,
    _thread: Thread,
}

/// What the policy is told before it answers the next question.
#[derive(Debug, Default)]
struct News {
    /// Of the cluster, in their order.
    changes: Vec<Change>,
    /// What is known of interference, if that is new.
    knowledge: Option<Knowledge>,
}

/// The answer to a question for a plan, in time.
#[derive(Debug)]
pub(crate) struct Planned {
    /// Which question.
    pub(crate) ticket: Ticket,
    /// The plan, or why there is none.
    pub(crate) plan: Result<Plan, String>,
}

/// To the thread: the moment, and where the answer goes.
enum Question {
    Plan(Time, Reply<Result<Plan, Panicked>>),
    Outlook(Time, Reply<Result<Vec<Expectation>, Panicked>>),
}

/// Makes a question of the place where its answer goes.
type Asker<T> = Box<dyn FnOnce(Reply<Result<T, Panicked>>) -> Question + Send>;

/// The policy panicked over the question.
#[derive(Debug)]
struct Panicked;

impl Planner {
    /// Starts the thread. Each answer may take as long as `limit`.
    pub(crate) fn start(policy: PolicyFactory, limit: Duration) -> io::Result<Planner> {
        let news = Arc::<Mutex<News>>::default();
        let mut thinker = Thinker::new(policy, Arc::clone(&news));
        let (questions, thread) = thread::spawn("planner", CAPACITY, move |inbox| thinker.answer_all(inbox))?;
        Ok(Planner { questions, news, limit, _thread: thread })
    }

    /// Hands over what changed; the policy hears of it with the next question.
    pub(crate) fn change(&self, changes: Vec<Change>) {
        self.news.lock().unwrap_or_else(PoisonError::into_inner).changes.extend(changes);
    }

    /// Hands over what is known of interference from now on.
    pub(crate) fn know(&self, knowledge: Knowledge) {
        self.news.lock().unwrap_or_else(PoisonError::into_inner).knowledge = Some(knowledge);
    }

    /// A question to wait for elsewhere; the answer never comes later than the limit.
    pub(crate) fn ask(&self, ticket: Ticket, now: Time) -> impl Future<Output = Planned> + use<> {
        let answer = self.answer(Box::new(move |reply_to| Question::Plan(now, reply_to)));
        async move { Planned { ticket, plan: answer.await } }
    }

    /// What pending jobs have to expect; nothing, if the policy cannot say in time.
    pub(crate) fn outlook(&self, now: Time) -> impl Future<Output = Vec<Expectation>> + use<> {
        let answer = self.answer(Box::new(move |reply_to| Question::Outlook(now, reply_to)));
        async move { answer.await.unwrap_or_default() }
    }

    fn answer<T: Send + 'static>(
        &self,
        question: Asker<T>,
    ) -> impl Future<Output = Result<T, String>> + use<T> {
        let (questions, limit) = (self.questions.clone(), self.limit);
        async move {
            match questions.ask_within(limit, question).await {
                Ok(Ok(answer)) => Ok(answer),
                Ok(Err(Panicked)) => Err("it panicked".to_owned()),
                Err(AskError::TimedOut { .. }) => Err(format!("it took longer than {limit:?}")),
                Err(AskError::Closed(_) | AskError::NoReply) => Err("its thread has ended".to_owned()),
            }
        }
    }
}

/// The plan of first come, first served, which says in each story whose place it takes.
pub(crate) fn fall_back(ticket: Ticket, view: &View, trouble: &str) -> Plan {
    tracing::warn!(
        ticket = ticket.0,
        trouble,
        "the policy gave no plan; this one is first come, first served"
    );
    let mut policy = Pipeline::new(Fifo, FirstFit, Discipline::Strict);
    policy.learn(view, &view.as_changes());
    let mut plan = policy.plan(view);
    for action in &mut plan.actions {
        let (Action::Place { why, .. } | Action::Preempt { why, .. }) = action;
        let separator = if why.is_empty() { "" } else { "; " };
        *why = format!(
            "{why}{separator}planned first come, first served, for the policy gave no plan: {trouble}"
        );
    }
    plan
}

/// The policy with its view, on the planner's thread.
struct Thinker {
    new_policy: PolicyFactory,
    policy: Box<dyn Policy>,
    view: View,
    /// What is known of interference; nothing but what the policy was made with, until that is told.
    knowledge: Option<Knowledge>,
    news: Arc<Mutex<News>>,
}

impl Thinker {
    fn new(new_policy: PolicyFactory, news: Arc<Mutex<News>>) -> Thinker {
        Thinker { policy: new_policy(), new_policy, view: View::default(), knowledge: None, news }
    }

    fn answer_all(&mut self, mut inbox: Inbox<Question>) {
        while let Some(question) = inbox.next() {
            match question {
                Question::Plan(now, reply_to) => reply_to.send(self.think(now, |it, view| it.plan(view))),
                Question::Outlook(now, reply_to) => reply_to
                    .send(self.think(now, |it, view| it.outlook(view)).map(|it| forecast(&self.view, it))),
            }
        }
    }

    /// After a panic a new policy takes the place of the old one, and is told of everything that lives.
    fn think<T>(
        &mut self,
        now: Time,
        thought: impl FnOnce(&mut dyn Policy, &View) -> T,
    ) -> Result<T, Panicked> {
        let News { changes, knowledge } =
            std::mem::take(&mut *self.news.lock().unwrap_or_else(PoisonError::into_inner));
        self.view.now = now;
        self.view.apply(&changes);
        let is_new = knowledge.is_some();
        self.knowledge = knowledge.or_else(|| self.knowledge.take());
        let (policy, view, knowledge) = (&mut self.policy, &self.view, self.knowledge.as_ref());
        let answer = catch_unwind(AssertUnwindSafe(|| {
            if let Some(knowledge) = knowledge.filter(|_| is_new) {
                policy.know(knowledge);
            }
            policy.learn(view, &changes);
            thought(policy.as_mut(), view)
        }));
        if answer.is_err() {
            self.policy = (self.new_policy)();
            let everything = self.view.as_changes();
            let mut news = self.news.lock().unwrap_or_else(PoisonError::into_inner);
            news.changes.splice(..0, everything);
            news.knowledge = news.knowledge.take().or_else(|| self.knowledge.clone());
        }
        answer.map_err(|_| Panicked)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::mpsc::{Receiver, channel};

    use cohabit_scheduler::{PendingJob, Proposal, Prospect, Shortage};

    use super::*;
    use crate::kit::{at, pending_view};

    /// Does with each plan what the test says.
    struct Moody {
        moods: Arc<Mutex<Receiver<Mood>>>,
        seen: u64,
    }

    enum Mood {
        /// Wakes after as many seconds as there were changes.
        Count,
        Panic,
        /// Hangs until the other end is dropped.
        Hang(Receiver<()>),
    }

    impl Policy for Moody {
        fn learn(&mut self, _: &View, changes: &[Change]) {
            self.seen += changes.len() as u64;
        }

        fn outlook(&mut self, _: &View) -> Vec<Prospect> {
            Vec::new()
        }

        fn plan(&mut self, _: &View) -> Plan {
            let mood = self.moods.lock().unwrap().recv().unwrap();
            match mood {
                Mood::Count => Plan { wake: Some(at(self.seen)), ..Plan::default() },
                Mood::Panic => panic!("a policy of a test panics on purpose"),
                Mood::Hang(until) => {
                    assert!(until.recv().is_err());
                    Plan::default()
                }
            }
        }

        fn consider(&mut self, _: &View, _: &PendingJob) -> Result<Proposal, Shortage> {
            unreachable!("nobody asks")
        }
    }

    fn moody(limit: Duration) -> (std::sync::mpsc::Sender<Mood>, Planner) {
        let (tell, moods) = channel();
        let moods = Arc::new(Mutex::new(moods));
        let policy = move || Box::new(Moody { moods: Arc::clone(&moods), seen: 0 }) as Box<dyn Policy>;
        (tell, Planner::start(Arc::new(policy), limit).unwrap())
    }

    fn gone(job: u64) -> Vec<Change> {
        vec![Change::Gone(cohabit_proto::JobId::new(job))]
    }

    async fn wake(planner: &Planner, ticket: u64) -> Option<Time> {
        planner.ask(Ticket(ticket), at(0)).await.plan.unwrap().wake
    }

    #[tokio::test]
    async fn changes_reach_the_policy_before_the_question_that_follows_them() {
        let (tell, planner) = moody(Duration::from_secs(60));
        for question in 1..3 {
            planner.change(gone(question));
            tell.send(Mood::Count).unwrap();
            assert_eq!(wake(&planner, question).await, Some(at(question)));
        }
    }

    #[tokio::test]
    async fn a_policy_that_hangs_answers_in_time_that_it_does_and_misses_no_change() {
        let (tell, mut planner) = moody(Duration::from_millis(1));
        let (release, until) = channel();
        tell.send(Mood::Hang(until)).unwrap();
        let planned = planner.ask(Ticket(1), at(0)).await;
        assert_eq!(planned.plan.unwrap_err(), "it took longer than 1ms");
        planner.change(gone(1));
        drop(release);
        planner.limit = Duration::from_secs(60);
        tell.send(Mood::Count).unwrap();
        assert_eq!(wake(&planner, 2).await, Some(at(1)));
    }

    #[tokio::test]
    async fn after_a_panic_a_new_policy_hears_of_everything_that_lives() {
        let (tell, planner) = moody(Duration::from_secs(60));
        planner.change(pending_view().as_changes());
        tell.send(Mood::Panic).unwrap();
        assert_eq!(planner.ask(Ticket(1), at(0)).await.plan.unwrap_err(), "it panicked");
        planner.change(gone(7));
        tell.send(Mood::Count).unwrap();
        let (nodes_and_jobs, later) = (pending_view().as_changes().len() as u64, 1);
        assert_eq!(wake(&planner, 2).await, Some(at(nodes_and_jobs + later)));
    }

    #[test]
    fn the_cheap_policy_says_whose_place_it_takes() {
        let plan = fall_back(Ticket(1), &pending_view(), "it panicked");
        let [Action::Place { why, .. }] = &plan.actions[..] else { panic!("{plan:?}") };
        assert!(why.contains("it panicked"), "{why}");
    }
}
