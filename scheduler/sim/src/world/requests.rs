//! What clients ask of the head, and what they hear.
//!
//! Requests and replies are lost with a head that crashes. Submissions are asked again, changes are not.

use cohabit_scheduler_core::Event;
use cohabit_types::{ClientRequestId, Principal, Reply, Request, Span};

use super::World;
use crate::checks;
use crate::clients::ClientRequest;
use crate::failure::SimFailure;
use crate::sim_event::SimEvent;

/// How long a client waits for a reply before it asks again.
const CLIENT_TIMEOUT: Span = Span::from_secs(30);

impl World<'_> {
    /// Asks until there is a reply.
    pub(super) fn submit(&mut self, index: usize) {
        if self.clients.is_open(index) {
            let asked = self.clients.submit(index);
            asked.into_iter().for_each(|asked| self.ask(asked));
            self.queue.put(self.now + CLIENT_TIMEOUT, SimEvent::RetrySubmission(index));
        }
    }

    pub(super) fn administer(&mut self, request: Request) {
        let asked = self.clients.administer(request);
        self.ask(asked);
    }

    pub(super) fn ask(&mut self, (client, by, request): ClientRequest) {
        self.after_travel(SimEvent::Request(client, by, request));
    }

    /// A request comes to the head; a new job gets its estimate on the way in.
    pub(super) fn request(
        &mut self,
        client: ClientRequestId,
        by: Principal,
        mut request: Request,
    ) -> Result<(), SimFailure> {
        let now = self.head_now();
        if let Request::Submit(submit) = &mut request {
            submit.estimate = self.shell.expect(now, &by.user, &submit.spec);
        }
        self.head_event(Event::Client(client, by, request))
    }

    pub(super) fn reply(&mut self, client: ClientRequestId, reply: Reply) -> Result<(), SimFailure> {
        let heard = self.clients.reply(self.head_now(), client, reply);
        self.invariant(heard)?;
        self.check(|| checks::reasons(self.head.head(), self.head_now()))
    }
}
