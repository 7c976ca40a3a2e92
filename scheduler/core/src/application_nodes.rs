//! On which nodes the processes of an application run.
//!
//! Its `main` runs on the node of its coordinator, a store on the node that its work names, and actors and
//! tasks on any node that has room and lets applications listen at its ports. Stores claim nothing, and what
//! runs on their node waits for them: they start at once, without a plan.

use cohabit_policy::NodeView;
use cohabit_types::{
    ApplicationPlace, AttemptId, Demand, Entrypoint, JobId, JobSpec, NodeId, Placement, Rendezvous,
    RunnerRole, Time,
};

use crate::head::Head;
use crate::job::Attempt;
use crate::node::{Node, NodeLink, Schedulability};
use crate::placement::PlannedStart;
use crate::transition::Transition;

impl Transition<'_> {
    /// Starts the stores that wait and fit their nodes.
    pub(crate) fn start_stores(&mut self) {
        let waiting: Vec<JobId> =
            self.head.volatile.applications.stores().filter(|id| self.head.eligible.contains(id)).collect();
        for id in waiting {
            if let Ok((node, view)) = self.head.node_of_store(id, self.now) {
                let part = view.part(&self.head.placeable_demand(id), Vec::new());
                let placement = Placement { parts: vec![part] };
                let why = format!("it keeps the objects of its application on node {}", view.name);
                debug_assert_eq!(placement.parts[0].node, node);
                self.start(id, PlannedStart { placement, runtime: None, slowdown: None, why });
            }
        }
    }
}

impl Transition<'_> {
    /// A worker joined. If applications may listen on it now and could not before, or the other way round,
    /// their children that wait are shown to the policy anew.
    pub(crate) fn update_children(&mut self, node: NodeId, had_ports: bool) {
        if self.head.nodes.get(&node).is_some_and(|node| node.has_application_ports() != had_ports) {
            let roots = self.head.live_roots();
            let children = roots.flat_map(|root| self.head.volatile.applications.children(root));
            self.changed_ids.jobs.extend(children.filter(|id| self.head.eligible.contains(id)));
        }
    }
}

impl Head {
    /// This demand of a job, with what its part in an application says about nodes.
    pub(crate) fn on_nodes_of_application(&self, spec: &JobSpec, demand: Demand) -> Demand {
        let (node, spans_nodes) = match &spec.entrypoint {
            Entrypoint::Command(_) | Entrypoint::Application(_) => (None, false),
            Entrypoint::Runner(work) => match work.role {
                RunnerRole::Main => (self.root_node(work.application), false),
                RunnerRole::Store => (work.node.as_deref().and_then(|name| self.node_named(name)), false),
                RunnerRole::Actor | RunnerRole::Tasks => match self.spans_nodes(work.application) {
                    true => (None, true),
                    false => (self.root_node(work.application), false),
                },
            },
        };
        Demand { node, spans_nodes, ..demand }
    }

    /// Whether the processes of an application may run on several nodes.
    pub(crate) fn spans_nodes(&self, application: AttemptId) -> bool {
        let root = self.root_node(application).and_then(|node| self.nodes.get(&node));
        root.is_some_and(Node::has_application_ports)
    }

    /// Whether all jobs of a submission are stores.
    pub(crate) fn is_store(&self, number: u64) -> bool {
        self.submissions.get(&number).is_some_and(|submission| submission.is_store())
    }

    fn root_attempt(&self, application: AttemptId) -> Option<&Attempt> {
        Some(self.jobs.get(&application.job)?.attempt(application.attempt)?.attempt)
    }

    /// The node of this attempt of a root.
    fn root_node(&self, application: AttemptId) -> Option<NodeId> {
        self.root_attempt(application)?.placement.parts.first().map(|part| part.node)
    }

    /// The node on which a store starts now, or why it does not, as a clause.
    fn node_of_store(&self, id: JobId, now: Time) -> Result<(NodeId, NodeView), String> {
        let Some(submission) = self.submissions.get(&id.number) else {
            return Err("it is unknown".to_owned());
        };
        let Entrypoint::Runner(work) = &submission.spec.entrypoint else {
            return Err("it is no store".to_owned());
        };
        let name = work.node.as_deref().unwrap_or_default();
        let found = self.node_named(name).and_then(|id| Some((id, self.nodes.get(&id)?)));
        let Some((node_id, node)) = found else {
            return Err(format!("it has to run on node {name}, which has not joined this cluster"));
        };
        if let Some(why) = self.why_closed(node, work.application) {
            return Err(format!("it has to run on node {name}, which {why}"));
        }
        if let Some(reservation) = self.reservation_against(submission, name, now) {
            let whom = if reservation.admits.is_maintenance() { "maintenance" } else { "others" };
            let number = reservation.number;
            return Err(format!("it has to run on node {name}, which reservation {number} keeps for {whom}"));
        }
        let (view, demand) = (self.node_view(node_id, node), self.placeable_demand(id));
        view.fits(&demand, &view.part(&demand, Vec::new()))?;
        Ok((node_id, view))
    }

    /// Why a node takes no store of this application. One that is being drained does while other processes
    /// of the application go on there, which could not do so without it.
    fn why_closed(&self, node: &Node, application: AttemptId) -> Option<&'static str> {
        let goes_on = |job: &JobId| self.jobs.get(job).is_some_and(|it| it.stop_requested().is_none());
        let of_application = |job: &JobId| self.is_child(*job, application) && goes_on(job);
        match (node.link, node.schedulability) {
            (NodeLink::Lost(_), _) => Some("has left"),
            (NodeLink::Unreachable(_), _) => Some("is unreachable"),
            (NodeLink::Up(_), _) if node.is_paused() => {
                Some("could not start a rank and will be tried again soon")
            }
            (NodeLink::Up(_), Schedulability::Drained) if !node.jobs.iter().any(of_application) => {
                Some("is drained")
            }
            (NodeLink::Up(_), Schedulability::Drained | Schedulability::Open) => None,
        }
    }

    /// Why a child of an application waits for one node, if it does.
    pub(crate) fn node_reason(&self, id: JobId, now: Time) -> Option<String> {
        let submission = self.submissions.get(&id.number)?;
        let application = submission.spec.entrypoint.parent()?;
        if submission.is_store() {
            return self.node_of_store(id, now).err();
        }
        let node = self.nodes.get(&self.placeable_demand(id).node?)?;
        let why = match (self.why_closed(node, application), node.schedulability) {
            (Some(why), _) => why,
            (None, Schedulability::Drained) => "is drained",
            (None, Schedulability::Open) => return None,
        };
        Some(format!("it has to run on the node of its application, {}, which {why}", node.name))
    }

    /// A clause about an application that stays within its node, for a child that this keeps there.
    pub(crate) fn stays_reason(&self, spec: &JobSpec) -> Option<String> {
        let Entrypoint::Runner(work) = &spec.entrypoint else { return None };
        match work.role {
            RunnerRole::Actor | RunnerRole::Tasks => {}
            RunnerRole::Main | RunnerRole::Store => return None,
        }
        let node = self.nodes.get(&self.root_node(work.application)?)?;
        let why = match (node.application_ports, node.rendezvous_ports.is_empty()) {
            (false, _) => "its worker does not let applications listen at ports (--no-application-ports)",
            (true, true) => "its worker has no free ports",
            (true, false) => return None,
        };
        Some(format!("its application stays on node {}, because {why}", node.name))
    }

    /// What an attempt of this job is told on this node about the processes of its application. `own` is
    /// where it can listen.
    pub(crate) fn application_place(
        &self,
        attempt: AttemptId,
        node: NodeId,
        own: Option<&Rendezvous>,
    ) -> Option<ApplicationPlace> {
        let spec = &self.submissions.get(&attempt.job.number)?.spec;
        let application = spec.entrypoint.application_of(attempt)?;
        let here = self.nodes.get(&node)?;
        let (root, coordinator) = match &spec.entrypoint {
            Entrypoint::Command(_) => return None,
            Entrypoint::Application(_) => (here, own.cloned()),
            Entrypoint::Runner(_) => {
                let root = self.root_attempt(application)?;
                let there = root.placement.parts.first().and_then(|part| self.nodes.get(&part.node))?;
                (there, self.rendezvous(root.rendezvous))
            }
        };
        let spans_nodes = root.has_application_ports();
        let listens = match &spec.entrypoint {
            Entrypoint::Command(_) => false,
            Entrypoint::Application(_) => spans_nodes,
            Entrypoint::Runner(work) => work.role == RunnerRole::Store && here.has_application_ports(),
        };
        let usable = self.nodes.values().filter(|node| !node.is_lost() && node.has_application_ports());
        let gpus: usize = match spans_nodes {
            true => usable.map(|node| node.devices.len()).sum(),
            false => root.devices.len(),
        };
        Some(ApplicationPlace {
            node: here.name.clone(),
            port: own.filter(|_| listens).cloned(),
            coordinator: coordinator.filter(|_| spans_nodes),
            coordinator_node: root.name.clone(),
            gpus: u32::try_from(gpus).unwrap_or(u32::MAX),
        })
    }

    /// Whether a job offers a port: single actors, tasks and `main` do not listen, so that the ports of a
    /// node are left for those that do. The members of a gang may find each other there.
    pub(crate) fn needs_port(&self, number: u64) -> bool {
        match self.submissions.get(&number).map(|submission| &submission.spec.entrypoint) {
            Some(Entrypoint::Runner(work)) => work.role == RunnerRole::Store || work.ranks > 1,
            Some(Entrypoint::Command(_) | Entrypoint::Application(_)) | None => true,
        }
    }

    /// Checks that a child runs where it may.
    pub(crate) fn check_node_of_child(&self, child: JobId, attempt: &Attempt) -> Result<(), String> {
        let Some(Entrypoint::Runner(work)) =
            self.submissions.get(&child.number).map(|it| &it.spec.entrypoint)
        else {
            return Ok(());
        };
        let application = work.application;
        let here = attempt.placement.parts.first().map(|part| part.node);
        // Its node may have got another name since.
        let name = attempt.ranks.first().map(|rank| rank.node_name.as_str());
        match work.role {
            RunnerRole::Main if self.root_node(application) != here => {
                Err(format!("main {child} runs on another node than its application {application}"))
            }
            RunnerRole::Store if work.node.as_deref() != name => {
                Err(format!("store {child} runs on another node than the one that it names"))
            }
            RunnerRole::Main | RunnerRole::Store | RunnerRole::Actor | RunnerRole::Tasks => Ok(()),
        }
    }
}
