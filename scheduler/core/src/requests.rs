//! Requests of clients: checks permissions and passes each to the code that carries it out.
//!
//! A request that changes nothing is answered by [`Head::reply_without_change`] alone, so the shell need not
//! write it down.

use cohabit_types::{
    Cause, ClientRequestId, DrainRequest, JobChange, JobId, NodeDrain, NodeId, Principal, Refusal,
    RefusalCode, Reply, Request, Role, StopReason,
};

use crate::alarm::Alarm;
use crate::head::Head;
use crate::node::Schedulability;
use crate::transition::Transition;

impl Transition<'_> {
    pub(crate) fn request(&mut self, client: ClientRequestId, by: Principal, request: Request) {
        self.cause = Cause::User(by.user.clone());
        let reply = match (self.head.reply_without_change(&by, &request), request) {
            (Some(reply), _) => Ok(reply),
            (None, Request::Submit(submit)) => Ok(self.submit(&by, *submit)),
            (None, Request::Change(change, jobs)) => Ok(self.change_all(&by, change, &jobs)),
            (None, Request::Update(update, jobs)) => Ok(self.update_all(&by, &update, &jobs)),
            (None, Request::Drain(drain)) => self.drain(&by, drain),
            (None, Request::Resume(node)) => self.resume(&node),
            (None, Request::ApplyShares(table)) => Ok(self.apply_shares(*table)),
            (None, Request::Reserve(asked)) => self.reserve(&by, *asked),
            (None, Request::CancelReservation(number)) => self.cancel_reservation(number),
        };
        self.answer(client, reply);
    }

    /// A second drain replaces reason and deadline.
    fn drain(&mut self, by: &Principal, drain: DrainRequest) -> Result<Reply, Refusal> {
        let DrainRequest { node: name, reason, within } = drain;
        let id = self.head.node_meant(&name)?;
        let (at, deadline) = (self.now, within.map(|span| self.now + span));
        if let Some(deadline) = deadline {
            self.set_alarm(deadline, Alarm::DrainDeadline(id));
        }
        let drain = NodeDrain { by: by.user.clone(), at, reason, deadline, reservation: None };
        self.set_schedulability(id, Schedulability::Drained, Some(drain))
    }

    fn resume(&mut self, name: &str) -> Result<Reply, Refusal> {
        let id = self.head.node_meant(name)?;
        self.head.replan_needed = true;
        self.leave_maintenance(id);
        self.set_schedulability(id, Schedulability::Open, None)
    }

    fn set_schedulability(
        &mut self,
        id: NodeId,
        to: Schedulability,
        drain: Option<NodeDrain>,
    ) -> Result<Reply, Refusal> {
        let node = self.node_mut(id).expect("it was just found");
        (node.schedulability, node.drain) = (to, drain);
        Ok(Reply::Node(node.name.clone()))
    }

    /// The deadline of a drain has come, unless the node was resumed or drained anew: what still runs there
    /// is queued again.
    pub(crate) fn clear_drained_node(&mut self, id: NodeId) {
        let Some(node) = self.head.nodes.get(&id) else { return };
        let deadline = node.drain.as_ref().and_then(|drain| drain.deadline);
        if deadline.is_none_or(|at| at > self.now) {
            return;
        }
        let running = |job: &JobId| self.head.jobs.get(job).is_some_and(|it| it.stop_requested().is_none());
        let jobs: Vec<JobId> = node.jobs.iter().copied().filter(running).collect();
        for job in jobs {
            self.stop_attempt(job, StopReason::Requeued);
        }
    }
}

impl Head {
    /// The reply to a request that changes nothing: it is refused, or what it asks for is so already. None
    /// where it changes something.
    pub fn reply_without_change(&self, by: &Principal, request: &Request) -> Option<Reply> {
        let refusal = match (by.role, request) {
            (Role::Worker, _) => {
                Err(not_allowed("a worker token cannot submit or change jobs: use a user token"))
            }
            (Role::Viewer, _) => {
                Err(not_allowed("a viewer token cannot submit or change anything: use a user token"))
            }
            (Role::User | Role::Admin, Request::Submit(submit)) => {
                let key = submit.idempotency_key.as_deref();
                match self.earlier_submission(&by.user, key) {
                    Some(number) if self.is_repeated(number, &submit.spec) => {
                        return Some(self.accepted(number));
                    }
                    Some(number) => Err(Refusal::new(
                        RefusalCode::Invalid,
                        format!(
                            "its idempotency key belongs to job {number}, which has another command or array: give \
                             another key"
                        ),
                    )),
                    None => self
                        .check_submission(by, &submit.spec)
                        .and_then(|()| self.check_application(by, &submit.spec)),
                }
            }
            (Role::User | Role::Admin, Request::Change(change, jobs)) => {
                let results = jobs.iter().map(|job| Some((*job, self.unchanged(by, *change, *job)?)));
                return results.collect::<Option<Vec<_>>>().map(Reply::Changed);
            }
            (Role::User | Role::Admin, Request::Update(update, jobs)) => {
                let results = jobs.iter().map(|job| Some((*job, self.not_updated(by, update, *job)?)));
                return results.collect::<Option<Vec<_>>>().map(Reply::Changed);
            }
            (Role::Admin, Request::Drain(DrainRequest { node, .. }) | Request::Resume(node)) => {
                self.node_meant(node).map(drop)
            }
            (Role::Admin, Request::ApplyShares(table)) => match self.check_shares(table) {
                Ok(()) if **table == **self.shares.table() => return Some(Reply::SharesApplied),
                checked => checked,
            },
            // What it depends on is the time, which only the transition knows.
            (Role::Admin, Request::Reserve(_) | Request::CancelReservation(_)) => Ok(()),
            (Role::User, Request::Reserve(_) | Request::CancelReservation(_)) => {
                Err(not_allowed("only an admin token can reserve nodes"))
            }
            (Role::User, Request::ApplyShares(_)) => {
                Err(not_allowed("only an admin token can change who has which share of the cluster"))
            }
            (Role::User, Request::Drain(_) | Request::Resume(_)) => {
                Err(not_allowed("only an admin token can drain or resume a node"))
            }
        };
        refusal.err().map(Reply::Refused)
    }

    /// The node with this name or id.
    pub(crate) fn node_meant(&self, name: &str) -> Result<NodeId, Refusal> {
        let mut named = self.nodes.iter().filter(|(id, node)| node.name == name || id.to_string() == name);
        let named = named.next().map(|(id, _)| *id);
        named.ok_or_else(|| Refusal::new(RefusalCode::NotFound, self.no_such_node(name)))
    }

    /// The refusal's sentence for an unknown node.
    fn no_such_node(&self, name: &str) -> String {
        let names: Vec<&str> = self.nodes.values().map(|node| node.name.as_str()).collect();
        match names.is_empty() {
            true => format!("there is no node '{name}': no worker has joined yet"),
            false => format!("there is no node '{name}': the nodes are {}", names.join(", ")),
        }
    }
}

/// Whether a user may change a job of this owner.
///
/// # Errors
/// The refusal, if not.
pub(crate) fn may_change(by: &Principal, owner: &str, change: JobChange, job: JobId) -> Result<(), Refusal> {
    check_owner(by, owner, change.verb(), job)
}

/// The same for any change, by its verb.
pub(crate) fn check_owner(by: &Principal, owner: &str, verb: &str, job: JobId) -> Result<(), Refusal> {
    if by.role == Role::Admin || by.user == owner {
        return Ok(());
    }
    Err(not_allowed(&format!("job {job} belongs to {owner}: only {owner} or an admin can {verb} it")))
}

fn not_allowed(message: &str) -> Refusal {
    Refusal::new(RefusalCode::NotAllowed, message)
}
