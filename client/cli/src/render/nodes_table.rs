//! The table of nodes: one line per node, or in the wide form one line per device.

use cohabit_client::types::{
    Bandwidth, DeviceKind, DeviceRecord, GpuPeer, Health, JobId, NodeDrain, NodeRecord, RefusedWorker,
    counted,
};
use cohabit_console::table::{self, cell};
use cohabit_console::{Screen, printable_line};
use comfy_table::Row;
use jiff::tz::TimeZone;

use super::jobs_table::ColumnSet;
use super::{local_time, states};

const NODES: [&str; 7] = ["NODE", "STATE", "DEVICES", "IN USE", "CORES", "MEMORY", "JOBS"];
const DEVICES: [&str; 25] = [
    "NODE",
    "STATE",
    "SINCE",
    "ADDRESS",
    "BUILD",
    "NETWORK",
    "INTERCONNECT",
    "DEVICE",
    "KIND",
    "HEALTH",
    "SHARING",
    "MEMORY",
    "FOREIGN",
    "HELD",
    "IN USE",
    "UTILIZED",
    "SM ACTIVE",
    "POWER",
    "TEMPERATURE",
    "COMPUTE",
    "DRIVER",
    "MIG",
    "MODE",
    "PEERS",
    "JOBS",
];

/// The table, with times in `zone`.
pub(crate) fn nodes_table(
    nodes: &[NodeRecord],
    columns: ColumnSet,
    zone: &TimeZone,
    screen: Screen,
) -> String {
    match columns {
        ColumnSet::Usual => {
            let mut table = table::table(&NODES, screen);
            table.add_rows(nodes.iter().map(node_row));
            table::text(&table) + &problems(nodes, zone)
        }
        ColumnSet::Wide => {
            let mut table = table::table(&DEVICES, screen);
            table.add_rows(nodes.iter().flat_map(|node| device_rows(node, zone)));
            table::text(&table) + &problems(nodes, zone)
        }
    }
}

/// One line for each node that starts no jobs: it was drained, or has a problem.
fn problems(nodes: &[NodeRecord], zone: &TimeZone) -> String {
    let problem =
        |node: &NodeRecord| Some(format!("{} starts no jobs: {}", node.name, node.problem.as_ref()?));
    let lines = nodes.iter().flat_map(|node| [drained(node, zone), problem(node)]).flatten();
    lines.map(|line| printable_line(&line).into_owned() + "\n").collect()
}

/// `gpu1 was drained by root at 10:00: new power supply; its jobs are queued again at 12:00`.
fn drained(node: &NodeRecord, zone: &TimeZone) -> Option<String> {
    let NodeDrain { by, at, reason, deadline, reservation } = node.drain.as_ref()?;
    let reason = reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    let deadline = deadline.filter(|_| !node.jobs.is_empty());
    let then = deadline.map(|at| format!("; its jobs are queued again at {}", local_time(at, zone)));
    let at = local_time(*at, zone);
    let reserved = reservation.map(|number| format!("; it is resumed when reservation {number} ends"));
    let (then, reserved) = (then.unwrap_or_default(), reserved.unwrap_or_default());
    Some(format!("{} was drained by {by} at {at}{reason}{then}{reserved}", node.name))
}

/// One line for each node that another worker wanted to be.
pub(crate) fn refused_workers(nodes: &[NodeRecord], refused: &[RefusedWorker], zone: &TimeZone) -> String {
    let line = |refused: &RefusedWorker| {
        let RefusedWorker { node, address, at, times } = refused;
        let name =
            nodes.iter().find(|it| it.id == *node).map_or_else(|| node.to_string(), |it| it.name.clone());
        let (times, at) = (counted(*times, "time", "times"), local_time(*at, zone));
        format!(
            "{name}: another worker wanted to be this node {times}, last at {at} from {address}, and was refused"
        )
    };
    refused.iter().map(line).map(|line| printable_line(&line).into_owned() + "\n").collect()
}

fn node_row(node: &NodeRecord) -> Row {
    let used = node.devices.iter().fold(0.0, |sum, device| sum + device.used.as_f64());
    let mut row = Row::new();
    row.add_cell(cell(&node.name))
        .add_cell(states::node_state(node.state))
        .add_cell(cell(devices(node)))
        .add_cell(cell(format!("{}/{}", (used * 1_000.0).round() / 1_000.0, node.devices.len())))
        .add_cell(cell(format!("{}/{}", node.cpus_used, node.cpus)))
        .add_cell(cell(format!("{}/{}", node.memory_used, node.memory)))
        .add_cell(cell(listed(&node.jobs)));
    row
}

/// `2x NVIDIA H200, 1x host slot`.
fn devices(node: &NodeRecord) -> String {
    let mut counts: Vec<(String, usize)> = Vec::new();
    for device in &node.devices {
        let health = &device.device.condition.health;
        let model = match health {
            Health::Well => model(device),
            Health::Recovering(_) | Health::Fenced(_) => format!("{} ({})", model(device), health.words().0),
        };
        match counts.iter_mut().find(|(known, _)| *known == model) {
            Some((_, count)) => *count += 1,
            None => counts.push((model, 1)),
        }
    }
    counts.iter().map(|(model, count)| format!("{count}x {model}")).collect::<Vec<_>>().join(", ")
}

/// Simulated GPUs are marked wherever they are shown.
fn model(device: &DeviceRecord) -> String {
    match device.device.kind {
        DeviceKind::Gpu | DeviceKind::Host => device.device.model.clone(),
        DeviceKind::Fake => format!("{} (simulated)", device.device.model),
    }
}

fn device_rows(node: &NodeRecord, zone: &TimeZone) -> Vec<Row> {
    let start = || {
        let mut row = Row::new();
        row.add_cell(cell(&node.name))
            .add_cell(states::node_state(node.state))
            .add_cell(cell(local_time(node.since, zone)))
            .add_cell(cell(&node.address))
            .add_cell(cell(&node.build))
            .add_cell(cell(speed(node.links.network)))
            .add_cell(cell(speed(node.links.interconnect)));
        row
    };
    if node.devices.is_empty() {
        return vec![start()];
    }
    let with_device = |device: &DeviceRecord| {
        let mut row = start();
        device_cells(device).into_iter().for_each(|text| {
            row.add_cell(cell(text));
        });
        row
    };
    node.devices.iter().map(with_device).collect()
}

/// The cells of a device, from its id to its jobs; empty for unknown values.
fn device_cells(record: &DeviceRecord) -> [String; 18] {
    let device = &record.device;
    let (condition, facts) = (&device.condition, device.gpu.as_ref());
    let reading = record.telemetry.as_ref().map(|it| &it.reading);
    let text = |fact: Option<String>| fact.unwrap_or_default();
    [
        device.id.to_string(),
        model(record),
        condition.health.to_string(),
        condition.sharing.to_string(),
        memory(record),
        text(device.memory.map(|_| condition.foreign_memory.to_string())),
        text(reading.and_then(|it| it.memory_used).map(|held| held.to_string())),
        record.used.to_string(),
        text(reading.and_then(|it| it.utilization).map(per_cent)),
        text(reading.and_then(|it| it.performance.as_ref()?.sm_active).map(per_cent)),
        text(reading.and_then(|it| it.power).map(|watts| format!("{watts:.0} W"))),
        text(reading.and_then(|it| it.temperature).map(|celsius| format!("{celsius:.0} °C"))),
        text(facts.and_then(|it| it.compute_capability).map(|(major, minor)| format!("{major}.{minor}"))),
        text(facts.map(|it| it.driver.clone())),
        text(facts.map(|it| it.mig.to_string())),
        text(facts.map(|it| it.compute_mode.to_string())),
        text(facts.map(|it| peers(&it.peers))),
        listed(&record.jobs),
    ]
}

/// A fraction as a percentage.
pub(crate) fn per_cent(part: f64) -> String {
    format!("{:.0}%", part * 100.0)
}

fn peers(peers: &[GpuPeer]) -> String {
    peers.iter().map(|peer| format!("{} by {}", peer.device, peer.path)).collect::<Vec<_>>().join(", ")
}

/// Empty if unknown.
fn speed(speed: Option<Bandwidth>) -> String {
    speed.map_or(String::new(), |speed| speed.to_string())
}

fn memory(device: &DeviceRecord) -> String {
    device.device.memory.map_or(String::new(), |memory| format!("{}/{memory}", device.memory_used))
}

fn listed(jobs: &[JobId]) -> String {
    jobs.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}
