//! Small clusters on which jobs share devices: jobs of known models, some of which run already.

use std::sync::Arc;

use cohabit_types::{Demand, Estimate, JobId, ModelDescription, NodeId, Placement, RankPlacement, Span};

use super::kit::{job, part};
use crate::interference::{Configuration, GpuKind, InterferenceContext, SoloMetrics, SoloMetricsTable};
use crate::{Action, NodeView, PendingJob, Plan, RunningJob, View, parse_policy_with};

/// A fifth of a device, with 1 GiB of its memory.
pub(crate) fn fifth() -> Demand {
    part(200)
}

/// A job that takes a fifth of a device and, alone, this many seconds.
pub(crate) fn training(number: u64, model: &str, secs: u64) -> PendingJob {
    let mut job = job(number, fifth());
    let traits = Arc::make_mut(&mut job.traits);
    traits.model = Some(ModelDescription { name: Some(model.into()), ..ModelDescription::default() });
    let (iterations, runtime) = (Some(secs * 10), Some(Span::from_secs(secs)));
    traits.estimate = Some(Estimate { iterations, runtime, ..Estimate::default() });
    job
}

/// The job runs on a device for so many seconds more at its present speed, as it reports itself.
pub(crate) fn runs(view: &mut View, job: PendingJob, node: usize, device: usize, secs: u64) {
    let (id, demand) = (job.id, job.demand);
    let host = &mut view.nodes[node];
    let placement = Placement { parts: vec![host.part(&demand, vec![host.devices[device].id.clone()])] };
    let mut free = crate::FreeNodes::new(&view.nodes);
    free.take_as_resident(id, &demand, &placement);
    let after: Vec<NodeView> = free.nodes().cloned().collect();
    view.nodes = after;
    let (started_at, ends_at) = (job.submitted_at, Some(view.now + Span::from_secs(secs)));
    let running = RunningJob { ends_at, reported_end: ends_at, ..job.placed(placement, started_at) };
    view.running.insert(id, running);
}

/// The analytic model, and how busy each model keeps this kind of GPU alone.
pub(crate) fn context(gpu: &str, busy: &[(&str, f64)]) -> InterferenceContext {
    let mut book = SoloMetricsTable::default();
    for (model, busy) in busy {
        let configuration = Configuration { model: (*model).into(), ..Configuration::default() };
        let solo = SoloMetrics { utilization: Some(*busy), ..SoloMetrics::default() };
        book.insert(GpuKind::named(gpu), configuration, solo);
    }
    InterferenceContext { solos: Arc::new(book), ..InterferenceContext::default() }
}

/// The first plan of a new policy for this view.
pub(crate) fn plan_of(policy: &str, context: &InterferenceContext, view: &View) -> Plan {
    let mut policy = parse_policy_with(policy, context).unwrap();
    policy.learn(view, &view.as_changes());
    policy.plan(view)
}

/// Where each job starts: job, node, device.
pub(crate) fn placed_on(view: &View, plan: &Plan) -> Vec<(u64, usize, usize)> {
    let position = |node: NodeId| view.nodes.iter().position(|it| it.id == node).unwrap();
    let place = |job: JobId, part: &RankPlacement| {
        let node = position(part.node);
        let device = view.nodes[node].devices.iter().position(|it| it.id == part.devices[0]).unwrap();
        (job.number, node, device)
    };
    let placed = |action: &Action| match action {
        Action::Place { job, placement, .. } => place(*job, &placement.parts[0]),
        Action::Preempt { .. } | Action::Reclaim { .. } | Action::StopIdle { .. } | Action::Allot { .. } => {
            panic!("no job is stopped or changed")
        }
    };
    plan.actions.iter().map(placed).collect()
}
