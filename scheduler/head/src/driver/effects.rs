//! What the head wants done, done: orders to sessions, replies to clients, bells for watchers, rows for the
//! history.
//!
//! None of it waits for anybody. A worker that takes its orders too slowly loses its link, and learns what it
//! missed when it joins again.

use std::slice;

use cohabit_actor::TryTellError;
use cohabit_scheduler_core::Effect;
use cohabit_types::{JobId, Notice, Order, WorkerKey};

use super::{Driver, WorkerSessionMessage};
use crate::journal::Write;

impl Driver {
    pub(super) fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Tell(key, order) => self.tell(key, order),
            Effect::Answer(client, reply) => {
                if let Some(reply_to) = self.clients.remove(&client) {
                    reply_to.send(reply);
                }
            }
            Effect::Publish(job, notice) => self.publish(job, notice),
            // Asked after the batch, so that one plan answers all of it.
            Effect::Plan(ticket) => self.wanted_plan = Some(ticket),
            Effect::Close(key, why) => self.close(key, why),
        }
    }

    /// Without a session the worker has just gone, and will hear the present state when it comes back.
    fn tell(&mut self, key: WorkerKey, order: Order) {
        let Some(session) = self.sessions.get(&key) else { return };
        match session.orders.try_tell(WorkerSessionMessage::Order(order)) {
            Ok(()) | Err(TryTellError::Closed(_)) => {}
            Err(TryTellError::Full(_)) => {
                tracing::warn!(worker = %key, "takes its orders too slowly");
                self.close(key, "it takes its orders too slowly".to_owned());
            }
        }
    }

    fn publish(&mut self, job: JobId, notice: Notice) {
        match notice {
            Notice::Changed(_) => {}
            Notice::Ended(record) => {
                self.parts.estimates.learn(slice::from_ref(&record));
                self.parts.memory_tracker.end(&record);
                self.history.push(Write::Ended(record));
            }
        }
        self.parts.watchers.notify(job);
    }

    fn close(&mut self, key: WorkerKey, why: String) {
        if let Some(session) = self.sessions.remove(&key) {
            // A session that has just ended needs no cut.
            let _ = session.cut.send(why);
        }
    }
}
