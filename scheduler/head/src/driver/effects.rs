//! Carries out the head's effects: orders to sessions, replies to clients, notices to watchers, rows for
//! the history.
//!
//! Nothing here waits. A worker that takes its orders too slowly loses its link, and gets what it missed
//! when it joins again.

use std::slice;

use cohabit_actor::TryTellError;
use cohabit_scheduler_core::Effect;
use cohabit_types::{JobId, Notice, Order, Reply, RunOrder, WorkerKey};

use super::message::WorkerSessionMessage;
use super::state::Driver;
use crate::journal::JournalWrite;

impl Driver {
    pub(super) fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::SendOrder(key, order) => self.send_order(key, self.with_credentials(order)),
            Effect::Answer(client, reply) => {
                // Nobody can have watched a job that is new; who shows all jobs has to hear of it.
                if let Reply::Accepted { job, .. } = &reply {
                    self.parts.updates.push(*job);
                }
                if let Some(reply_to) = self.clients.remove(&client) {
                    reply_to.send(reply);
                }
            }
            Effect::Publish(job, notice) => self.publish(job, notice),
            Effect::RecordMisfit(misfit) => self.record_misfit(misfit),
            Effect::RecordUsage(usage) => self.history.push(JournalWrite::Usage(usage)),
            Effect::AddToFeed(event) => self.add_to_feed(event),
            Effect::Account(entry) => self.account(entry),
            Effect::Archive(part) => self.history.push(JournalWrite::Archive(part)),
            // Passed on after the batch, so that one plan covers all of it.
            Effect::Plan(request) => self.plan_request = Some(request),
            Effect::Close(key, why) => self.close(key, why),
        }
    }

    /// The order with what the ranks of an application get besides, which no effect and no journal has.
    fn with_credentials(&self, order: Order) -> Order {
        match order {
            Order::Run(run) => {
                let application = run.spec.entrypoint.application_of(run.attempt);
                let credentials = application.map(|application| {
                    self.parts.applications.credentials(application, application == run.attempt)
                });
                Order::Run(Box::new(RunOrder { application: credentials, ..*run }))
            }
            order @ (Order::Stop { .. }
            | Order::Withdraw(_)
            | Order::Acknowledge(_)
            | Order::Allot { .. }) => order,
        }
    }

    /// Lets in the coordinators of the applications that run now.
    pub(super) fn allow_running_applications(&self) {
        for job in self.parts.head.live_roots() {
            self.allow_application(job);
        }
    }

    /// Lets in the coordinator of this application, if it is one and runs.
    fn allow_application(&self, job: JobId) {
        self.parts.applications.allow(job, self.parts.head.running_application(job));
    }

    /// Without a session the worker has just gone; it gets the current state when it joins again.
    fn send_order(&mut self, key: WorkerKey, order: Order) {
        let Some(session) = self.sessions.get(&key) else { return };
        match session.orders.try_tell(WorkerSessionMessage::Order(order)) {
            Ok(()) | Err(TryTellError::Closed(_)) => {}
            Err(TryTellError::Full(_)) => {
                tracing::warn!(worker = %key, "the worker accepts its orders too slowly");
                self.close(key, "it accepts its orders too slowly".to_owned());
            }
        }
    }

    fn publish(&mut self, job: JobId, notice: Notice) {
        match notice {
            Notice::Changed(_) => {}
            Notice::Ended(record) => {
                self.parts.estimates.learn(slice::from_ref(&record));
                self.parts.memory_tracker.finish_job(&record);
                self.history.push(JournalWrite::Ended(record));
            }
        }
        if self.parts.head.is_application(job) {
            self.allow_application(job);
        }
        self.parts.updates.push(job);
        self.parts.watchers.notify(job);
    }

    fn close(&mut self, key: WorkerKey, why: String) {
        if let Some(session) = self.sessions.remove(&key) {
            // The session may just have ended.
            let _ = session.close.send(why);
        }
    }
}
