//! Whether the cluster can ever meet a demand. If not, the refusal names the largest node or device there is.

use std::collections::BTreeMap;

use cohabit_policy::{NodeView, could_ever_hold};
use cohabit_types::{
    Bytes, Demand, DeviceSharing, EnforcementRequirement, GpuRequest, NodeId, Refusal, RefusalCode, Spread,
    counted,
};

use crate::head::Head;
use crate::node::Node;

impl Head {
    /// Refuses what the nodes could not hold even if they were idle. While no node is known, everything is
    /// accepted.
    pub(crate) fn check_satisfiable(&self, demand: &Demand) -> Result<(), Refusal> {
        let mut views = Vec::new();
        let mut nodes = Vec::new();
        for (id, node) in self.nodes.iter().filter(|(id, node)| may_hold(demand, **id, node)) {
            nodes.push(node);
            views.push(node.view(*id));
            // The first few nodes are enough for nearly every job.
            if views.len().is_power_of_two() && could_ever_hold(&views, demand) {
                return Ok(());
            }
        }
        if nodes.is_empty() || could_ever_hold(&views, demand) {
            return Ok(());
        }
        Err(Refusal::new(
            RefusalCode::Unsatisfiable,
            format!("no node can ever run this job: {}", why_not(demand, &nodes, &views)),
        ))
    }
}

/// Whether a node is there, and may hold such a demand if it is large enough.
fn may_hold(demand: &Demand, id: NodeId, node: &Node) -> bool {
    !node.is_lost()
        && demand.node.is_none_or(|only| only == id)
        && (!demand.spans_nodes || node.has_application_ports())
}

fn why_not(demand: &Demand, nodes: &[&Node], views: &[NodeView]) -> String {
    let lenient = Demand { limits: EnforcementRequirement::BestEffort, ..*demand };
    match could_ever_hold(views, &lenient) {
        true => not_enforced(nodes),
        false => too_large(demand, nodes),
    }
}

/// Why devices do not enforce limits: each reason once, with the first device that has it.
fn not_enforced(nodes: &[&Node]) -> String {
    let mut reasons: BTreeMap<&str, (String, usize)> = BTreeMap::new();
    for (node, device) in nodes.iter().flat_map(|node| node.devices.iter().map(move |it| (node, &it.device)))
    {
        if let DeviceSharing::Unenforced(why) = &device.condition.sharing {
            let place = || (format!("{} of {}", device.id, node.name), 0);
            reasons.entry(why).or_insert_with(place).1 += 1;
        }
    }
    let listed = reasons.iter().map(|(why, (first, count))| match count {
        1 => format!("{why} ({first})"),
        _ => format!("{why} ({first} and {} more)", count - 1),
    });
    format!(
        "it requires enforced limits on a shared GPU, and no GPU that is large enough enforces them: {}",
        listed.collect::<Vec<_>>().join("; ")
    )
}

/// Which part of the demand is too large, compared with the largest node or device.
fn too_large(demand: &Demand, nodes: &[&Node]) -> String {
    let largest = |amount: fn(&Node) -> u64| {
        nodes
            .iter()
            .map(|node| (amount(node), node.name.as_str()))
            .max_by_key(|(most, _)| *most)
            .unwrap_or_default()
    };
    if demand.spread == Spread::Free {
        let devices: usize = nodes.iter().map(|node| node.devices.len()).sum();
        return format!(
            "it needs {} on nodes that also have its other resources; all nodes together have {devices}",
            counted(demand.devices(), "device", "devices")
        );
    }
    let (devices, on) = largest(|node| node.devices.len() as u64);
    if let GpuRequest::Whole(wanted) = demand.gpus
        && u64::from(wanted) > devices
    {
        let wanted = counted(wanted, "device", "devices");
        return format!("it needs {wanted} on one node; the largest node is {on} with {devices}");
    }
    let (memory, on) =
        largest(|node| node.devices.iter().filter_map(|it| it.device.memory).max().map_or(0, |it| it.0));
    let reserve = nodes.iter().map(|node| node.sharing.reserve).min().unwrap_or_default();
    let reserve = if demand.may_have_neighbors() { reserve } else { Bytes::ZERO };
    if let Some(wanted) = demand.gpu_memory.filter(|wanted| (*wanted + reserve).0 > memory && memory > 0) {
        let reserve = match reserve {
            Bytes::ZERO => String::new(),
            reserve => format!(" plus a reserve of {reserve}"),
        };
        return format!(
            "it needs {wanted} of memory on each device{reserve}; the largest device is on {on} with {}",
            Bytes(memory)
        );
    }
    let (cpus, on) = largest(|node| u64::from(node.cpus));
    if u64::from(demand.cpus) > cpus {
        let wanted = counted(demand.cpus, "core", "cores");
        return format!("it needs {wanted} on one node; the largest node is {on} with {cpus}");
    }
    let (memory, on) = largest(|node| node.memory.0);
    if demand.memory.0 > memory {
        let (wanted, most) = (demand.memory, Bytes(memory));
        return format!("it needs {wanted} of host memory on one node; the largest node is {on} with {most}");
    }
    match demand.nodes as usize > nodes.len() {
        true => format!(
            "it needs {} at once; the cluster has {}",
            counted(demand.nodes, "node", "nodes"),
            nodes.len()
        ),
        false if demand.nodes == 1 => {
            "it needs all its resources on one node, and no node has them all".to_owned()
        }
        false => format!(
            "it needs all its resources on each of {} nodes, and too few nodes have them all",
            demand.nodes
        ),
    }
}
