//! The rows of devices on the screen of `top`.

use cohabit_client::types::{DeviceKind, DeviceRecord, Health, NodeRecord};

use super::text_table::{TextCell, TextColumn};
use crate::render::nodes_table::per_cent;

/// Width in cells of the bar that shows how much of a device is in use.
const BAR: usize = 10;

/// The columns of the table.
pub(super) fn device_columns() -> Vec<TextColumn> {
    let sizes = [
        ("NODE", 6, 24),
        ("DEVICE", 6, 40),
        ("STATE", 6, 12),
        ("IN USE", 15, 15),
        ("UTILIZED", 8, 8),
        ("MEMORY", 8, 18),
        ("JOBS", 6, 40),
        ("KIND", 6, 40),
    ];
    let column = |(heading, least, most): (&str, usize, usize)| TextColumn {
        heading: heading.to_owned(),
        least,
        most,
    };
    sizes.into_iter().map(column).collect()
}

/// A row for each device, and one for each node that has none.
pub(super) fn device_rows(nodes: &[NodeRecord]) -> Vec<Vec<TextCell>> {
    nodes.iter().flat_map(node_rows).collect()
}

fn node_rows(node: &NodeRecord) -> Vec<Vec<TextCell>> {
    if !node.devices.is_empty() {
        return node.devices.iter().map(|device| device_row(node, device)).collect();
    }
    let problem = node.problem.clone().unwrap_or_default();
    let cells = [node.name.as_str(), "none", node.state.word(), "", "", "", "", &problem];
    vec![cells.map(TextCell::plain).into()]
}

fn device_row(node: &NodeRecord, device: &DeviceRecord) -> Vec<TextCell> {
    let used = device.used.as_f64();
    let full = (used * BAR as f64).round() as usize;
    let jobs = device.jobs.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    let reading = device.telemetry.as_ref().map(|it| &it.reading);
    let cells = [
        node.name.clone(),
        device.device.id.to_string(),
        state(node, device),
        format!("{:·<BAR$} {:>4}", "█".repeat(full.min(BAR)), per_cent(used)),
        reading.and_then(|it| it.utilization).map_or(String::new(), per_cent),
        memory(device),
        jobs,
        kind(device),
    ];
    cells.map(TextCell::plain).into()
}

/// The model; the mark of a simulated GPU is short, so that it fits into the column.
fn kind(device: &DeviceRecord) -> String {
    match device.device.kind {
        DeviceKind::Gpu | DeviceKind::Host => device.device.model.clone(),
        DeviceKind::Fake => format!("{} (sim)", device.device.model),
    }
}

/// The state of the node, unless its device is unhealthy.
fn state(node: &NodeRecord, device: &DeviceRecord) -> String {
    let health = &device.device.condition.health;
    match health {
        Health::Well => node.state.word().to_owned(),
        Health::Recovering(_) | Health::Fenced(_) => health.words().0.to_uppercase(),
    }
}

/// Used and total memory if the driver reports it, otherwise the total.
fn memory(device: &DeviceRecord) -> String {
    let held = device.telemetry.as_ref().and_then(|it| it.reading.memory_used);
    match (held, device.device.memory) {
        (Some(held), Some(all)) => format!("{held}/{all}"),
        (None, Some(all)) => all.to_string(),
        (_, None) => String::new(),
    }
}
