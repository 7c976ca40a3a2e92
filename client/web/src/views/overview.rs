//! The cluster: each device, who sits on it, and how busy it is.

use askama::Template;
use cohabit_client::types::{
    DeviceKind, DeviceRecord, Enforcement, JobId, JobPhase, JobRecord, JobState, NodeRecord, NodeState,
    Progress,
};
use cohabit_console::records::short_name::short_name;

use super::curve_path::curve_path;
use super::line;
use super::state_badge::StateBadge;
use crate::cluster::Cluster;
use crate::cluster::utilization::MINUTES;

/// Names of jobs are cut to so many characters beside a device.
const LONGEST_NAME: usize = 24;

/// All devices, and the jobs in numbers.
#[derive(Template)]
#[template(path = "overview.html")]
pub(crate) struct Overview {
    pub(crate) totals: Totals,
    pub(crate) nodes: Vec<NodeGroup>,
}

/// The cluster in numbers.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    pub(crate) devices: usize,
    pub(crate) held: String,
    pub(crate) free: usize,
    pub(crate) nodes: usize,
    pub(crate) nodes_up: usize,
    pub(crate) running: u64,
    pub(crate) pending: u64,
    pub(crate) on_hold: u64,
}

/// A node and its devices.
#[derive(Debug)]
pub(crate) struct NodeGroup {
    pub(crate) name: String,
    pub(crate) state: StateBadge,
    pub(crate) is_up: bool,
    pub(crate) devices: Vec<DeviceRow>,
}

/// A device.
#[derive(Debug)]
pub(crate) struct DeviceRow {
    pub(crate) id: String,
    pub(crate) model: String,
    pub(crate) health: StateBadge,
    pub(crate) health_reason: String,
    pub(crate) busy: Option<Busy>,
    pub(crate) history: Option<String>,
    pub(crate) memory: String,
    pub(crate) residents: Vec<Resident>,
}

/// How busy a device is, as a number and as one of eleven shades.
#[derive(Debug)]
pub(crate) struct Busy {
    pub(crate) per_cent: u32,
    pub(crate) shade: u32,
}

/// A job on a device.
#[derive(Debug)]
pub(crate) struct Resident {
    pub(crate) id: JobId,
    pub(crate) name: String,
    pub(crate) user: String,
    pub(crate) share: String,
    pub(crate) progress: Option<u64>,
    /// Whether its limits hold, where it shares the device and that is known.
    pub(crate) limits: Option<&'static str>,
}

impl Overview {
    pub(crate) fn new(cluster: &Cluster) -> Overview {
        let nodes = cluster.nodes.iter().map(|node| NodeGroup::new(cluster, node)).collect();
        Overview { totals: Totals::new(cluster), nodes }
    }
}

impl Totals {
    fn new(cluster: &Cluster) -> Totals {
        let devices = || cluster.nodes.iter().flat_map(|node| &node.devices);
        let held: f64 = devices().map(|device| device.used.as_f64()).sum();
        let mut totals = Totals {
            devices: devices().count(),
            held: format!("{}", (held * 100.0).round() / 100.0),
            free: devices().filter(|device| device.jobs.is_empty()).count(),
            nodes: cluster.nodes.len(),
            nodes_up: cluster.nodes.iter().filter(|node| node.state == NodeState::Up).count(),
            ..Totals::default()
        };
        cluster.jobs.submissions().for_each(|job| totals.count(job));
        totals
    }

    fn count(&mut self, job: &JobRecord) {
        let single = [(job.state, 1)].into();
        for (state, count) in job.array.as_ref().map_or(&single, |array| &array.states) {
            match (state, state.phase()) {
                (JobState::Held, _) => self.on_hold += count,
                (_, JobPhase::Waiting) => self.pending += count,
                (_, JobPhase::Placed) => self.running += count,
                (_, JobPhase::Ended) => {}
            }
        }
    }
}

impl NodeGroup {
    fn new(cluster: &Cluster, node: &NodeRecord) -> NodeGroup {
        NodeGroup {
            name: line(&node.name),
            state: node.state.into(),
            is_up: node.state == NodeState::Up,
            devices: node.devices.iter().map(|device| DeviceRow::new(cluster, node, device)).collect(),
        }
    }
}

impl DeviceRow {
    fn new(cluster: &Cluster, node: &NodeRecord, record: &DeviceRecord) -> DeviceRow {
        let device = &record.device;
        let reading = record.telemetry.as_ref().map(|it| &it.reading);
        let held = reading.and_then(|it| it.memory_used).unwrap_or(record.memory_used);
        let history = cluster.utilization.of(&node.name, &device.id, cluster.as_of());
        DeviceRow {
            id: line(&device.id.to_string()),
            model: line(&model(record)),
            health: StateBadge::from(&device.condition.health),
            health_reason: line(device.condition.health.words().1.unwrap_or_default()),
            busy: reading.and_then(|it| it.utilization).map(Busy::new),
            history: history.map(|minutes| curve(&minutes)),
            memory: device.memory.map_or(String::new(), |all| format!("{held} of {all}")),
            residents: record.jobs.iter().map(|job| Resident::new(cluster, node, record, *job)).collect(),
        }
    }
}

/// Simulated devices are marked wherever they are shown.
pub(crate) fn model(record: &DeviceRecord) -> String {
    match record.device.kind {
        DeviceKind::Gpu | DeviceKind::Host => record.device.model.clone(),
        DeviceKind::Fake => format!("{} (simulated)", record.device.model),
    }
}

impl Busy {
    fn new(fraction: f64) -> Busy {
        let per_cent = (fraction * 100.0).round().clamp(0.0, 100.0) as u32;
        Busy { per_cent, shade: per_cent / 10 }
    }
}

impl Resident {
    fn new(cluster: &Cluster, node: &NodeRecord, record: &DeviceRecord, id: JobId) -> Resident {
        let job = cluster.jobs.get(id);
        let ranks = job.and_then(JobRecord::latest).map_or(&[][..], |attempt| &attempt.ranks);
        let rank =
            ranks.iter().find(|rank| rank.node == node.name && rank.devices.contains(&record.device.id));
        Resident {
            id,
            name: job.map_or(String::new(), |job| short_name(&job.name, LONGEST_NAME)),
            user: job.map_or(String::new(), |job| line(&job.user)),
            share: rank.map_or(String::new(), |rank| rank.share.to_string()),
            progress: job.and_then(|job| job.progress.as_ref()).and_then(per_cent_done),
            limits: rank.and_then(|rank| rank.enforcement.as_ref()).map(|enforcement| match enforcement {
                Enforcement::Enforced => "limits enforced",
                Enforcement::Unenforced(_) => "limits not enforced",
            }),
        }
    }
}

/// How much of its steps a job has done.
pub(crate) fn per_cent_done(progress: &Progress) -> Option<u64> {
    let total = progress.total.filter(|total| *total > 0)?;
    Some((progress.step.saturating_mul(100) / total).min(100))
}

/// The path of a curve through the minutes, in a field of 60 by 20.
fn curve(minutes: &[Option<f64>; MINUTES]) -> String {
    let place = |(x, busy): (usize, &Option<f64>)| Some((x as f64, 19.0 - (*busy)?.clamp(0.0, 1.0) * 18.0));
    curve_path(minutes.iter().enumerate().map(place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_has_gaps_where_nothing_was_seen() {
        let mut minutes = [None; MINUTES];
        minutes[0] = Some(0.0);
        minutes[1] = Some(1.0);
        minutes[3] = Some(0.5);
        assert_eq!(curve(&minutes), "M0.0 19.0h.9L1.0 1.0M3.0 10.0h.9");
    }

    #[test]
    fn a_shade_follows_the_number() {
        for (fraction, per_cent, shade) in
            [(0.0, 0, 0), (0.094, 9, 0), (0.5, 50, 5), (1.0, 100, 10), (7.0, 100, 10)]
        {
            let busy = Busy::new(fraction);
            assert_eq!((busy.per_cent, busy.shade), (per_cent, shade));
        }
    }
}
