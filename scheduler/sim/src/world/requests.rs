//! Requests of clients to the head, and the replies.
//!
//! A crash of the head loses requests and replies. Submissions are repeated, changes are not.

use cohabit_scheduler_core::{Event, Head};
use cohabit_types::{ClientRequestId, JobId, Principal, Reply, Request, Role, Span};

use super::World;
use crate::checks;
use crate::clients::{ClientRequest, RootStatus};
use crate::failure::SimFailure;
use crate::planted_bug::PlantedBug;
use crate::sim_event::SimEvent;

/// How long a client waits for a reply before it repeats a submission.
const CLIENT_TIMEOUT: Span = Span::from_secs(30);

/// The state of the root of an application, as a coordinator or its absence shows it.
fn root_status(head: &Head, root: JobId) -> RootStatus {
    match head.running_application(root) {
        Some((attempt, _)) => RootStatus::Running(attempt),
        None if head.live_jobs().any(|job| job == root) => RootStatus::Waiting,
        None => RootStatus::Ended,
    }
}

impl World<'_> {
    /// Sends a submission, and schedules its repetition until there is a reply.
    pub(super) fn submit(&mut self, index: usize) {
        if self.clients.is_open(index) {
            let head = self.head.is_up().then(|| self.head.head());
            let request = self
                .clients
                .submit(index, |root| head.map_or(RootStatus::Waiting, |it| root_status(it, root)));
            request.into_iter().for_each(|request| self.send_request(request));
            self.queue.put(self.now + CLIENT_TIMEOUT, SimEvent::RetrySubmission(index));
        }
    }

    /// Sends a request of an administrator.
    pub(super) fn administer(&mut self, request: Request) {
        let request = self.clients.administer(request);
        self.send_request(request);
    }

    pub(super) fn send_request(&mut self, (client, by, request): ClientRequest) {
        self.schedule_delivery(SimEvent::Request(client, by, request));
    }

    /// Delivers a request to the head; a submission gets its estimate first.
    pub(super) fn request(
        &mut self,
        client: ClientRequestId,
        mut by: Principal,
        mut request: Request,
    ) -> Result<(), SimFailure> {
        let now = self.head_now();
        if self.plant == Some(PlantedBug::TrustedEverybody) {
            by.role = Role::Admin;
        }
        if let Request::Submit(submit) = &mut request {
            submit.estimate = self.hooks.estimate(now, &by.user, &submit.spec);
        }
        let archived = self.head.archived_for(&by, &request);
        for part in self.invariant(archived)? {
            self.head_event(Event::Restored(part))?;
        }
        self.head_event(Event::Client(client, by, request))
    }

    /// Delivers a reply to its client, and checks that every job gives a reason.
    pub(super) fn reply(&mut self, client: ClientRequestId, reply: Reply) -> Result<(), SimFailure> {
        let result = self.clients.reply(self.head_now(), client, reply);
        self.invariant(result)?;
        self.check(|| checks::check_reasons(self.head.head(), self.head_now()))
    }
}
