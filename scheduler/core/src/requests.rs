//! Requests of clients: checks permissions and passes each to the code that carries it out.

use cohabit_types::{
    Cause, ClientRequestId, JobChange, JobId, Principal, Refusal, RefusalCode, Reply, Request, Role,
};

use crate::head::Head;
use crate::node::Schedulability;
use crate::transition::Transition;

impl Transition<'_> {
    pub(crate) fn request(&mut self, client: ClientRequestId, by: Principal, request: Request) {
        self.cause = Cause::User(by.user.clone());
        let reply = match (by.role, request) {
            (Role::Worker, _) => {
                Err(not_allowed("a worker token cannot submit or change jobs: use a user token"))
            }
            (Role::User | Role::Admin, Request::Submit(submit)) => self.submit(&by, *submit),
            (Role::User | Role::Admin, Request::Change(change, jobs)) => {
                Ok(self.change_all(&by, change, &jobs))
            }
            (Role::Admin, Request::Drain(node)) => self.drain(&node),
            (Role::Admin, Request::Resume(node)) => self.resume(&node),
            (Role::User, Request::Drain(_) | Request::Resume(_)) => {
                Err(not_allowed("only an admin token can drain or resume a node"))
            }
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
        let mut named =
            self.head.nodes.iter().filter(|(id, node)| node.name == name || id.to_string() == name);
        let named = named.next().map(|(id, _)| *id);
        let Some(node) = named.and_then(|id| self.node_mut(id)) else {
            return Err(Refusal::new(RefusalCode::NotFound, self.head.no_such_node(name)));
        };
        node.schedulability = to;
        Ok(Reply::Node(node.name.clone()))
    }
}

impl Head {
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
