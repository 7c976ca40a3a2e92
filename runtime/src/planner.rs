//! The planner: the policy on a thread of its own, a limit on its time, and a cheap policy for when it is
//! exceeded.
//!
//! A slow or broken policy costs its own plans and nothing else: the driver never waits for it. Facts are
//! hints and travel with the next question, so a policy that hangs fills no mailbox.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use cohabit_actor::{Address, AskError, Reply};
use cohabit_proto::{Ticket, Time};
use cohabit_scheduler::{Action, Fact, Fifo, FirstFit, Pipeline, Plan, Policy, View};

use crate::thread::{self, Inbox, Thread};

/// Makes a new policy that has seen nothing.
pub(crate) type PolicyFactory = Arc<dyn Fn() -> Box<dyn Policy> + Send + Sync>;

/// Questions that may wait for a policy that is late.
const CAPACITY: usize = 4;

/// The driver's end of the planner.
#[derive(Debug)]
pub(crate) struct Planner {
    questions: Address<Question>,
    /// What happened since the last question.
    facts: Vec<(Time, Fact)>,
    limit: Duration,
    _thread: Thread,
}

/// The answer to a question, in time.
#[derive(Debug)]
pub(crate) struct Planned {
    /// Which question.
    pub(crate) ticket: Ticket,
    /// The plan of the policy, or of the cheap one.
    pub(crate) plan: Plan,
    /// What the policy remembers now.
    pub(crate) memory: Memory,
}

/// What a policy remembers after a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Memory {
    /// Everything it was told.
    Kept,
    /// Nothing: it panicked, and a new one took its place.
    Lost,
}

struct Question {
    facts: Vec<(Time, Fact)>,
    view: Arc<View>,
    reply_to: Reply<Result<Plan, Panicked>>,
}

/// The policy panicked over the question.
#[derive(Debug)]
struct Panicked;

impl Planner {
    /// Starts the thread. Each of its plans may take as long as `limit`.
    pub(crate) fn start(policy: PolicyFactory, limit: Duration) -> io::Result<Planner> {
        let (questions, thread) =
            thread::spawn("planner", CAPACITY, move |inbox| answer_all(&policy, inbox))?;
        Ok(Planner { questions, facts: Vec::new(), limit, _thread: thread })
    }

    /// Takes note of a fact.
    pub(crate) fn observe(&mut self, now: Time, fact: Fact) {
        self.facts.push((now, fact));
    }

    /// A question to wait for elsewhere; the answer never comes later than the limit.
    pub(crate) fn ask(&mut self, ticket: Ticket, view: View) -> impl Future<Output = Planned> + use<> {
        let (facts, view) = (std::mem::take(&mut self.facts), Arc::new(view));
        let (questions, limit) = (self.questions.clone(), self.limit);
        async move {
            let seen = Arc::clone(&view);
            let question = |reply_to| Question { facts, view: seen, reply_to };
            match questions.ask_within(limit, question).await {
                Ok(Ok(plan)) => Planned { ticket, plan, memory: Memory::Kept },
                Ok(Err(Panicked)) => fall_back(ticket, &view, "it panicked", Memory::Lost),
                Err(AskError::TimedOut { .. }) => {
                    fall_back(ticket, &view, &format!("it took longer than {limit:?}"), Memory::Kept)
                }
                Err(AskError::Closed(_) | AskError::NoReply) => {
                    fall_back(ticket, &view, "its thread has ended", Memory::Kept)
                }
            }
        }
    }
}

/// The plan of first come, first served, which says in each story whose place it takes.
fn fall_back(ticket: Ticket, view: &View, trouble: &str, memory: Memory) -> Planned {
    tracing::warn!(
        ticket = ticket.0,
        trouble,
        "the policy gave no plan; this one is first come, first served"
    );
    let mut plan = Pipeline::new(Fifo, FirstFit).plan(view);
    for action in &mut plan.actions {
        let (Action::Place { why, .. } | Action::Preempt { why, .. }) = action;
        let separator = if why.is_empty() { "" } else { "; " };
        *why = format!(
            "{why}{separator}planned first come, first served, for the policy gave no plan: {trouble}"
        );
    }
    Planned { ticket, plan, memory }
}

fn answer_all(new_policy: &PolicyFactory, mut inbox: Inbox<Question>) {
    let mut policy = new_policy();
    while let Some(Question { facts, view, reply_to }) = inbox.next() {
        let planned = catch_unwind(AssertUnwindSafe(|| {
            facts.iter().for_each(|(at, fact)| policy.observe(*at, fact));
            policy.plan(&view)
        }));
        if planned.is_err() {
            policy = new_policy();
        }
        reply_to.send(planned.map_err(|_| Panicked));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::mpsc::{Receiver, channel};

    use super::*;
    use crate::kit::{at, pending_view};

    /// Does with each plan what the test says.
    struct Moody {
        moods: Arc<Mutex<Receiver<Mood>>>,
        seen: Vec<Fact>,
    }

    enum Mood {
        /// Answers with as many empty waits as there were facts.
        Count,
        Panic,
        /// Hangs until the other end is dropped.
        Hang(Receiver<()>),
    }

    impl Policy for Moody {
        fn observe(&mut self, _: Time, fact: &Fact) {
            self.seen.push(fact.clone());
        }

        fn plan(&mut self, _: &View) -> Plan {
            let mood = self.moods.lock().unwrap().recv().unwrap();
            match mood {
                Mood::Count => Plan { wake: Some(at(self.seen.len() as u64)), ..Plan::default() },
                Mood::Panic => panic!("a policy of a test panics on purpose"),
                Mood::Hang(until) => {
                    assert!(until.recv().is_err());
                    Plan::default()
                }
            }
        }
    }

    fn moody(limit: Duration) -> (std::sync::mpsc::Sender<Mood>, Planner) {
        let (tell, moods) = channel();
        let moods = Arc::new(Mutex::new(moods));
        let policy = move || Box::new(Moody { moods: Arc::clone(&moods), seen: vec![] }) as Box<dyn Policy>;
        (tell, Planner::start(Arc::new(policy), limit).unwrap())
    }

    #[tokio::test]
    async fn facts_reach_the_policy_before_the_question_that_follows_them() {
        let (tell, mut planner) = moody(Duration::from_secs(60));
        for questions in 1..3 {
            planner.observe(at(0), Fact::Submitted("1".parse().unwrap()));
            tell.send(Mood::Count).unwrap();
            let planned = planner.ask(Ticket(questions), pending_view()).await;
            assert_eq!((planned.plan.wake, planned.memory), (Some(at(questions)), Memory::Kept));
        }
    }

    #[tokio::test]
    async fn a_policy_that_hangs_is_replaced_by_the_cheap_one_for_that_question() {
        let (tell, mut planner) = moody(Duration::from_millis(1));
        let (release, until) = channel();
        tell.send(Mood::Hang(until)).unwrap();
        let planned = planner.ask(Ticket(1), pending_view()).await;
        let [Action::Place { why, .. }] = &planned.plan.actions[..] else { panic!("{:?}", planned.plan) };
        assert!(why.contains("it took longer than 1ms"), "{why}");
        drop(release);
        planner.limit = Duration::from_secs(60);
        tell.send(Mood::Count).unwrap();
        assert_eq!(planner.ask(Ticket(2), pending_view()).await.plan.wake, Some(at(0)));
    }

    #[tokio::test]
    async fn after_a_panic_a_new_policy_answers() {
        let (tell, mut planner) = moody(Duration::from_secs(60));
        planner.observe(at(0), Fact::Submitted("1".parse().unwrap()));
        tell.send(Mood::Panic).unwrap();
        let planned = planner.ask(Ticket(1), pending_view()).await;
        assert_eq!((planned.plan.actions.len(), planned.memory), (1, Memory::Lost));
        tell.send(Mood::Count).unwrap();
        assert_eq!(planner.ask(Ticket(2), pending_view()).await.plan.wake, Some(at(0)));
    }
}
