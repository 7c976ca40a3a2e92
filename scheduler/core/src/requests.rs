//! Requests of clients: checks permissions and passes each to the code that carries it out.
//!
//! A request that changes nothing is answered by [`Head::reply_without_change`] alone, so the shell need not
//! write it down.

use cohabit_types::{
    Cause, ClientRequestId, JobChange, JobId, NodeId, Principal, Refusal, RefusalCode, Reply, Request, Role,
};

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
            (None, Request::Drain(node)) => self.drain(&node),
            (None, Request::Resume(node)) => self.resume(&node),
        };
        self.answer(client, reply);
    }

    fn drain(&mut self, name: &str) -> Result<Reply, Refusal> {
        self.set_schedulability(name, Schedulability::Drained)
    }

    fn resume(&mut self, name: &str) -> Result<Reply, Refusal> {
        self.head.replan_needed = true;
        self.set_schedulability(name, Schedulability::Open)
    }

    fn set_schedulability(&mut self, name: &str, to: Schedulability) -> Result<Reply, Refusal> {
        let id = self.head.node_meant(name)?;
        let node = self.node_mut(id).expect("it was just found");
        node.schedulability = to;
        Ok(Reply::Node(node.name.clone()))
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
                        .check_submission(&submit.spec)
                        .and_then(|()| self.check_application(by, &submit.spec)),
                }
            }
            (Role::User | Role::Admin, Request::Change(change, jobs)) => {
                let results = jobs.iter().map(|job| Some((*job, self.unchanged(by, *change, *job)?)));
                return results.collect::<Option<Vec<_>>>().map(Reply::Changed);
            }
            (Role::Admin, Request::Drain(node) | Request::Resume(node)) => self.node_meant(node).map(drop),
            (Role::User, Request::Drain(_) | Request::Resume(_)) => {
                Err(not_allowed("only an admin token can drain or resume a node"))
            }
        };
        refusal.err().map(Reply::Refused)
    }

    /// The node with this name or id.
    fn node_meant(&self, name: &str) -> Result<NodeId, Refusal> {
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
    if by.role == Role::Admin || by.user == owner {
        return Ok(());
    }
    let verb = change.verb();
    Err(not_allowed(&format!("job {job} belongs to {owner}: only {owner} or an admin can {verb} it")))
}

fn not_allowed(message: &str) -> Refusal {
    Refusal::new(RefusalCode::NotAllowed, message)
}
