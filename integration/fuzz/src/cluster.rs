//! What clients and workers may ask of a head, in any order: no request may break its invariants, for a
//! request is in the journal before the head acts on it, and would break it again at each start.

use cohabit_head::fuzzing::{admits, admits_job, admitted_inventory, admitted_reports};
use cohabit_net::fuzzing::decode;
use cohabit_policy::parse_policy;
use cohabit_scheduler_core::{Effect, Event, Head};
use cohabit_types::{
    ClientRequestId, Filter, Incarnation, Inventory, JobId, JobRef, JobRevision, JobSpec, NodeId, Principal,
    Report, Request, Role, Span, Submit, Time, WorkerKey,
};
use serde::{Deserialize, Serialize};

/// What a peer does, some time after what came before.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum PeerAction {
    /// A client asks for a change.
    Asks(User, Request),
    /// A client asks a question.
    Wonders(User, FuzzQuery),
    /// A worker joins by its next link.
    Joins(u8, Inventory),
    /// Its link breaks.
    Leaves(u8),
    /// It reports.
    Reports(u8, Report),
    /// The head's alarm rings, if one is set.
    Waits,
}

/// A question about the head's memory, or about a job that nobody has submitted.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum FuzzQuery {
    Resolve(Vec<JobRef>),
    List(Filter),
    Show(Vec<JobId>),
    Explain(JobId),
    DryRun(Box<JobSpec>),
    Nodes,
    Watch(Vec<JobRevision>),
}

/// Somebody with a token.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) enum User {
    Ada,
    Bea,
    Admin,
}

/// Steps of peers, as messages carry them; after each, the policy answers if the head asks it.
pub(crate) fn requests(bytes: &[u8]) {
    let Some(steps) = decode::<Vec<(Span, PeerAction)>>(bytes) else { return };
    let mut world = World { head: Head::new(), now: Time::EPOCH, links: 0 };
    for (pause, step) in steps.into_iter().take(MAX_STEPS) {
        world.now += pause.min(MAX_PAUSE);
        world.take(step);
        world.head.check().unwrap_or_else(|broken| panic!("{broken}"));
    }
}

/// More would only be slow.
const MAX_STEPS: usize = 32;
/// A wall clock cannot jump beyond all time.
const MAX_PAUSE: Span = Span::from_secs(1 << 30);
/// Arrays of this many members are as good as longer ones.
const LONG_ARRAY: u64 = 64;

struct World {
    head: Head,
    now: Time,
    /// How many links there were.
    links: u64,
}

impl World {
    fn take(&mut self, step: PeerAction) {
        match step {
            PeerAction::Asks(user, request) if admits(&request) && is_short(&request) => {
                self.apply_event(Event::Client(ClientRequestId(1), user.by(), request));
            }
            PeerAction::Asks(..) => {}
            PeerAction::Wonders(user, question) => self.answer(user, question),
            PeerAction::Joins(node, inventory) => {
                if let Some(inventory) = admitted_inventory(inventory) {
                    self.links += 1;
                    self.apply_event(Event::Joined(self.key(node), inventory));
                }
            }
            PeerAction::Leaves(node) => self.apply_event(Event::Lost(self.key(node), "gone".into())),
            PeerAction::Reports(node, report) => {
                for report in admitted_reports(vec![report]) {
                    self.report(self.key(node), report);
                }
            }
            PeerAction::Waits => {
                if let Some((at, _)) = self.head.deadline() {
                    self.now = self.now.max(at);
                    self.apply_event(Event::Alarm);
                }
            }
        }
    }

    /// A refusal is as good an answer as any.
    fn answer(&mut self, user: User, question: FuzzQuery) {
        let (head, now) = (&self.head, self.now);
        match question {
            FuzzQuery::Resolve(references) => _ = head.resolve(&user.by(), &references),
            FuzzQuery::List(filter) => _ = head.at(now).list(&filter),
            FuzzQuery::Show(jobs) => _ = head.at(now).show(&jobs),
            FuzzQuery::Explain(job) => _ = head.at(now).explain(job),
            FuzzQuery::DryRun(spec) => self.dry_run_job(user, *spec),
            FuzzQuery::Nodes => _ = head.node_records(),
            FuzzQuery::Watch(known) => _ = head.at(now).changed_since(&known),
        }
    }

    fn apply_event(&mut self, event: Event) {
        let mut effects = Vec::new();
        self.head.handle(self.now, event, &mut effects);
        while let Some(question) = effects.iter().find_map(question) {
            effects.clear();
            let view = self.head.view(self.now);
            let mut policy = parse_policy("hybrid").expect("the default policy is known");
            policy.learn(&view, &view.as_changes());
            let plan = policy.plan(&view);
            let _told_to_people = policy.explain_pending(&view);
            self.head.handle(self.now, Event::Planned(question, plan), &mut effects);
        }
    }

    /// A report that the driver would not write down changes nothing.
    fn report(&mut self, worker: WorkerKey, report: Report) {
        let before = self.head.changes_nothing(worker, &report).then(|| self.head.clone());
        self.apply_event(Event::Report(worker, report));
        if let Some(before) = before {
            assert!(before == self.head, "a report that was to change nothing changed the head");
        }
    }

    fn dry_run_job(&mut self, user: User, spec: JobSpec) {
        let submit = Submit { spec, idempotency_key: None, estimate: None };
        if admits_job(&submit.spec) && is_short(&Request::Submit(Box::new(submit.clone()))) {
            let _refused_or_imagined = self.head.prepare_dry_run(self.now, &user.by(), submit);
        }
    }

    /// The newest link of a node, of which there are four.
    fn key(&self, node: u8) -> WorkerKey {
        let node = NodeId(uuid::Uuid::from_u128(u128::from(node % 4)));
        WorkerKey { node, incarnation: Incarnation(self.links) }
    }
}

impl User {
    fn by(self) -> Principal {
        match self {
            User::Ada => Principal::new("ada", Role::User),
            User::Bea => Principal::new("bea", Role::User),
            User::Admin => Principal::new("admin", Role::Admin),
        }
    }
}

fn question(effect: &Effect) -> Option<cohabit_types::PlanRequestId> {
    if let Effect::Plan(ticket) = effect { Some(*ticket) } else { None }
}

fn is_short(request: &Request) -> bool {
    let Request::Submit(submit) = request else { return true };
    submit.spec.array.as_ref().is_none_or(|array| array.len() <= LONG_ARRAY || array.len() > 1_000_000)
}
