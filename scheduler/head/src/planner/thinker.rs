//! The policy with its view, on the planner's thread, and beside it the foresight that answers people.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use cohabit_policy::interference::Knowledge;
use cohabit_policy::{Change, Expectation, Foresight, PendingJob, Policy, Thought, View, forecast};
use cohabit_types::Time;

use super::{Foretold, News, Panicked, PolicyFactory, Question};
use crate::thread::Inbox;

pub(super) struct Thinker {
    new_policy: PolicyFactory,
    policy: Box<dyn Policy>,
    foresight: Foresight,
    view: View,
    /// What is known of interference; nothing but what the policy was made with, until that is told.
    knowledge: Option<Knowledge>,
    news: Arc<Mutex<News>>,
}

impl Thinker {
    pub(super) fn new(new_policy: PolicyFactory, news: Arc<Mutex<News>>) -> Thinker {
        Thinker {
            policy: new_policy(),
            new_policy,
            foresight: Foresight::default(),
            view: View::default(),
            knowledge: None,
            news,
        }
    }

    pub(super) fn answer_all(&mut self, mut inbox: Inbox<Question>) {
        while let Some(question) = inbox.next() {
            match question {
                Question::Plan(now, reply_to) => {
                    reply_to.send(self.think(now, |it| it.policy.plan(&it.view)));
                }
                Question::Outlook(now, reply_to) => reply_to.send(self.think(now, Thinker::foretell)),
                Question::Consider(now, job, reply_to) => {
                    reply_to.send(self.think(now, |it| it.consider(&job)));
                }
            }
        }
    }

    /// After a panic a new policy takes the place of the old one, and is told of everything that lives.
    fn think<T>(&mut self, now: Time, thought: impl FnOnce(&mut Thinker) -> T) -> Result<T, Panicked> {
        let News { changes, knowledge } =
            std::mem::take(&mut *self.news.lock().unwrap_or_else(PoisonError::into_inner));
        self.view.now = now;
        self.view.apply(&changes);
        self.knowledge = knowledge.clone().or_else(|| self.knowledge.take());
        let answer = catch_unwind(AssertUnwindSafe(|| {
            if let Some(knowledge) = knowledge {
                self.policy.know(&knowledge);
                self.foresight.know(&knowledge);
            }
            self.policy.learn(&self.view, &changes);
            self.foresight.learn(&self.view, &changes);
            thought(self)
        }));
        if answer.is_err() {
            self.policy = (self.new_policy)();
            self.foresight = Foresight::default();
            let everything = self.view.as_changes();
            let mut news = self.news.lock().unwrap_or_else(PoisonError::into_inner);
            news.changes.splice(..0, everything);
            news.knowledge = news.knowledge.take().or_else(|| self.knowledge.clone());
        }
        answer.map_err(|_| Panicked)
    }

    fn foretell(&mut self) -> Foretold {
        let prospects = self.policy.outlook(&self.view);
        Foretold { expected: forecast(&self.view, prospects), company: self.foresight.beside(&self.view) }
    }

    fn consider(&mut self, job: &PendingJob) -> Thought {
        let place = self.policy.consider(&self.view, job);
        let company = match &place {
            Ok(proposal) => self.foresight.with(&self.view, job, &proposal.placement),
            Err(_) => Vec::new(),
        };
        let present = self.foresight.beside(&self.view);
        Thought { place, company, present, expected: self.expected_of(job) }
    }

    /// What the job has to expect behind those that wait. A policy of its own is asked: in the books of the
    /// one that plans, nothing may be left of a job that nobody submitted.
    fn expected_of(&self, job: &PendingJob) -> Option<Expectation> {
        let mut view = self.view.clone();
        view.apply(&[Change::Pending(job.clone())]);
        let mut policy = (self.new_policy)();
        if let Some(knowledge) = &self.knowledge {
            policy.know(knowledge);
        }
        policy.learn(&view, &view.as_changes());
        forecast(&view, policy.outlook(&view)).into_iter().find(|it| it.job == job.id)
    }
}
