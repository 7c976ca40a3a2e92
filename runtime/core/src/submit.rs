//! Requests come in: who may ask, and how a job becomes known.

use cohabit_proto::{
    By, Cause, ClientKey, Demand, Dependency, Gpus, JobChange, JobId, JobState, Refusal, RefusalCode, Reply,
    Request, Role, Submit, When,
};
use cohabit_scheduler::{Fact, FreeNodes};

use crate::alarm::Alarm;
use crate::head::Head;
use crate::job::Job;
use crate::node::Node;
use crate::submission::Submission;
use crate::turn::Turn;

impl Turn<'_> {
    pub(crate) fn request(&mut self, client: ClientKey, by: By, request: Request) {
        self.cause = Cause::User(by.user.clone());
        let reply = match (by.role, request) {
            (Role::Worker, _) => {
                Err(not_allowed("a worker's token cannot submit or change jobs: use a user's"))
            }
            (Role::User | Role::Admin, Request::Submit(submit)) => self.submit(&by, *submit),
            (Role::User | Role::Admin, Request::Change(change, jobs)) => {
                Ok(self.change_all(&by, change, &jobs))
            }
            (Role::Admin, Request::Drain(node)) => self.drain(&node),
            (Role::Admin, Request::Resume(node)) => self.resume(&node),
            (Role::User, Request::Drain(_) | Request::Resume(_)) => {
                Err(not_allowed("only an admin's token may drain or resume a node"))
            }
        };
        self.answer(client, reply);
    }

    fn submit(&mut self, by: &By, submit: Submit) -> Result<Reply, Refusal> {
        if let Some(number) = self.head.earlier_submission(&by.user, submit.idempotency_key.as_deref()) {
            return Ok(self.accepted(number));
        }
        submit.spec.check().map_err(|why| Refusal::new(RefusalCode::Invalid, why))?;
        self.head.check_dependencies(&submit.spec.depends_on)?;
        self.head.check_satisfiable(&submit.spec.demand)?;
        self.head.last_number += 1;
        let number = self.head.last_number;
        self.book(number, by, submit);
        Ok(self.accepted(number))
    }

    fn accepted(&self, number: u64) -> Reply {
        let members = self.head.submissions.get(&number).map_or(1, |it| it.states.values().sum());
        Reply::Accepted { job: JobId::new(number), members }
    }

    fn book(&mut self, number: u64, by: &By, submit: Submit) {
        if let Some(key) = &submit.idempotency_key {
            self.head.keys.entry(by.user.clone()).or_default().insert(key.clone(), number);
        }
        let submission = Submission {
            spec: submit.spec,
            user: by.user.clone(),
            submitted_at: self.now,
            estimate: submit.estimate,
            idempotency_key: submit.idempotency_key,
            states: Default::default(),
            started_at: None,
            speaker: None,
            traits: Default::default(),
        };
        let depends_on = submission.spec.depends_on.clone();
        let jobs = submission.jobs(number);
        let job = self.first_state(&submission);
        self.head.submissions.insert(number, submission);
        for id in &jobs {
            self.add(*id, job.clone());
        }
        for dependency in depends_on {
            self.settle_dependency(&jobs, dependency);
        }
        self.revise(JobId::new(number));
        for id in jobs {
            self.refresh_eligibility(id);
        }
    }

    /// A job as it is before anything happened to it; all members of an array begin alike.
    fn first_state(&self, submission: &Submission) -> Job {
        let spec = &submission.spec;
        let mut job = Job::new(if spec.held { JobState::Held } else { JobState::Pending }, self.now);
        job.not_before = spec.begin.filter(|at| *at > self.now);
        job.waits_for = spec.depends_on.iter().map(|dependency| dependency.job).collect();
        job
    }

    fn add(&mut self, id: JobId, job: Job) {
        let submission = self.head.submissions.get_mut(&id.number).expect("a job is added to its submission");
        submission.count(None, Some(job.state));
        for earlier in &job.waits_for {
            self.head.dependents.entry(*earlier).or_default().insert(id);
        }
        if let Some(at) = job.not_before {
            self.set_alarm(at, Alarm::Job(id));
        }
        self.head.jobs.insert(id, job);
        self.head.unended.insert(id);
        self.revise(id);
        self.observe(Fact::Submitted(id));
    }

    /// An earlier job that already ended counts at once.
    fn settle_dependency(&mut self, jobs: &[JobId], dependency: Dependency) {
        if let Some(state) = self.head.final_state(dependency.job) {
            for id in jobs {
                self.dependency_ended(*id, dependency.job, state);
            }
        }
    }

    fn drain(&mut self, name: &str) -> Result<Reply, Refusal> {
        self.set_intake(name, crate::node::Intake::Closed)
    }

    fn resume(&mut self, name: &str) -> Result<Reply, Refusal> {
        self.head.plan_wanted = true;
        self.set_intake(name, crate::node::Intake::Open)
    }

    fn set_intake(&mut self, name: &str, intake: crate::node::Intake) -> Result<Reply, Refusal> {
        let mut named =
            self.head.nodes.iter_mut().filter(|(id, node)| node.name == name || id.to_string() == name);
        let Some((_, node)) = named.next() else {
            return Err(Refusal::new(RefusalCode::NotFound, self.head.no_such_node(name)));
        };
        node.intake = intake;
        Ok(Reply::Node(node.name.clone()))
    }
}

impl Head {
    fn earlier_submission(&self, user: &str, key: Option<&str>) -> Option<u64> {
        self.keys.get(user)?.get(key?).copied()
    }

    fn check_dependencies(&self, dependencies: &[Dependency]) -> Result<(), Refusal> {
        let known = |job: JobId| self.jobs.contains_key(&job) || self.is_array(job);
        match dependencies.iter().find(|dependency| !known(dependency.job)) {
            None => Ok(()),
            Some(unknown) => Err(Refusal::new(
                RefusalCode::NotFound,
                format!(
                    "it cannot depend on job {}: there is no such job, or it ended long ago",
                    unknown.job
                ),
            )),
        }
    }

    /// How a job, or an array as a whole, ended; none while it lives.
    pub(crate) fn final_state(&self, job: JobId) -> Option<JobState> {
        let state = match self.jobs.get(&job) {
            Some(job) => job.state,
            None => self.submissions.get(&job.number).filter(|it| it.has_ended())?.state(),
        };
        state.is_terminal().then_some(state)
    }

    /// Refuses what the nodes could not hold even if nothing ran on them. While no node is known, anything
    /// may come.
    pub(crate) fn check_satisfiable(&self, demand: &Demand) -> Result<(), Refusal> {
        let present: Vec<(_, &Node)> = self.nodes.iter().filter(|(_, node)| !node.is_lost()).collect();
        let views: Vec<_> = present.iter().map(|(id, node)| node.view(**id)).collect();
        if present.is_empty() || FreeNodes::new(&views).could_ever_hold(demand) {
            return Ok(());
        }
        let nodes: Vec<&Node> = present.into_iter().map(|(_, node)| node).collect();
        Err(Refusal::new(
            RefusalCode::Unsatisfiable,
            format!("no node can ever run this job: {}", too_large(demand, &nodes)),
        ))
    }

    fn no_such_node(&self, name: &str) -> String {
        let names: Vec<&str> = self.nodes.values().map(|node| node.name.as_str()).collect();
        match names.is_empty() {
            true => format!("there is no node '{name}': no worker has joined yet"),
            false => format!("there is no node '{name}': there are {}", names.join(", ")),
        }
    }
}

pub(crate) fn may_change(by: &By, owner: &str, change: JobChange, job: JobId) -> Result<(), Refusal> {
    if by.role == Role::Admin || by.user == owner {
        return Ok(());
    }
    let verb = change.verb();
    Err(not_allowed(&format!("job {job} belongs to {owner}: only they or an admin may {verb} it")))
}

fn not_allowed(message: &str) -> Refusal {
    Refusal::new(RefusalCode::NotAllowed, message)
}

/// Whether the end of an earlier job is the one that was waited for.
pub(crate) fn satisfies(when: When, state: JobState) -> bool {
    match when {
        When::AfterAny => true,
        When::AfterOk => state == JobState::Completed,
        When::AfterNotOk => state != JobState::Completed,
    }
}

/// What is too large, beside the largest there is.
fn too_large(demand: &Demand, nodes: &[&Node]) -> String {
    let largest = |amount: fn(&Node) -> u64| {
        nodes
            .iter()
            .map(|node| (amount(node), node.name.as_str()))
            .max_by_key(|(most, _)| *most)
            .unwrap_or_default()
    };
    let (devices, on) = largest(|node| node.devices.len() as u64);
    if let Gpus::Whole(wanted) = demand.gpus
        && u64::from(wanted) > devices
    {
        return format!("it needs {wanted} devices on a node, the largest node is {on} with {devices}");
    }
    let (memory, on) =
        largest(|node| node.devices.iter().filter_map(|it| it.device.memory).max().map_or(0, |it| it.0));
    if let Some(wanted) = demand.gpu_memory.filter(|wanted| wanted.0 > memory && memory > 0) {
        return format!(
            "it needs {wanted} of memory on each device, the largest device is on {on} with {}",
            cohabit_proto::Bytes(memory)
        );
    }
    let (cpus, on) = largest(|node| u64::from(node.cpus));
    if u64::from(demand.cpus) > cpus {
        return format!("it needs {} cores on a node, the largest node is {on} with {cpus}", demand.cpus);
    }
    let (memory, on) = largest(|node| node.memory.0);
    if demand.memory.0 > memory {
        let (wanted, most) = (demand.memory, cohabit_proto::Bytes(memory));
        return format!("it needs {wanted} of host memory on a node, the largest node is {on} with {most}");
    }
    match demand.nodes as usize > nodes.len() {
        true => format!("it needs {} nodes at once, the cluster has {}", demand.nodes, nodes.len()),
        false => format!("too few nodes have all at once that it needs on each of {} node(s)", demand.nodes),
    }
}
