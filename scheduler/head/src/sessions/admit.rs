//! Checks of input from workers. Whoever has root on one of them may send anything: it has bounds in bytes
//! and count, numbers are finite (JSON in the journal has no NaN), and a device is there once.

use std::collections::BTreeSet;
use std::time::Instant;

use cohabit_net::{HelloRefusalCode, WorkerPeer};
use cohabit_types::{
    CheckpointResult, ColocationSample, Condition, Device, DeviceSharing, DeviceUsage, Enforcement, Health,
    Inventory, Progress, Report,
};

use super::context::SessionContext;
use crate::clock::wall_clock;
use crate::rates::BucketRate;

/// Each join is written to the journal with the description of the node. Enough for a link that breaks again
/// and again for a minute, and then one join in five seconds.
const JOINS: BucketRate = BucketRate { per_second: 0.2, burst: 30.0 };
/// The most devices of a node.
const MOST_DEVICES: usize = 1_024;
/// The most ranks that a joining worker holds, or of which it reports the progress at once.
const MOST_RANKS: usize = 8_192;
/// The most ports for rendezvous.
const MOST_PORTS: usize = 4_096;
/// The most bytes of texts in an inventory: the journal keeps them with each join.
const MOST_TEXT: usize = 256 << 10;
/// The longest name of a node, an address or a device, in bytes.
const LONGEST_NAME: usize = 255;
/// The longest sentence about a device or an outcome, in bytes.
const LONGEST_SENTENCE: usize = 1_024;
/// The most neighbors of a rank on a device.
const MOST_NEIGHBORS: usize = 64;
/// The most GPUs of one rank.
const MOST_DEVICES_OF_RANK: usize = 64;
/// The most metrics in one report of progress.
const MOST_METRICS: usize = 64;
/// The most reports in one call; our own workers send 256.
const MOST_REPORTS: usize = 4_096;

/// Whether a worker may join now as the node that it claims to be. Blocks.
///
/// # Errors
/// The answer to it. A stranger who claims a node is refused before that counts as a join of the node.
pub(super) fn admit(peer: &WorkerPeer, context: &SessionContext) -> Result<(), (HelloRefusalCode, String)> {
    check(peer.inventory()).map_err(|why| (HelloRefusalCode::Undecodable, why))?;
    let admitted = context.credentials.admit(peer, wall_clock());
    admitted.map_err(|error| (error.code(), error.to_string()))?;
    if !context.joins.take(peer.key().node, 1, JOINS, Instant::now()) {
        let why = "it connects too often: it may try again in some seconds";
        return Err((HelloRefusalCode::Busy, why.to_owned()));
    }
    Ok(())
}

/// Refuses a description of a node that is beyond these bounds.
pub(crate) fn check(inventory: &Inventory) -> Result<(), String> {
    let counts = [
        ("devices", inventory.devices.len(), MOST_DEVICES),
        ("ranks", inventory.held_ranks.len(), MOST_RANKS),
        ("ports for rendezvous", inventory.rendezvous_ports.len(), MOST_PORTS),
        ("bytes of texts", text_of(inventory), MOST_TEXT),
    ];
    for (what, count, most) in counts {
        if count > most {
            return Err(format!(
                "the worker describes its node with {count} {what}, and {most} are the most"
            ));
        }
    }
    let names = [&inventory.name, &inventory.address, &inventory.build];
    let ids = inventory.devices.iter().flat_map(|device| [device.id.as_str(), &device.model]);
    match names.into_iter().map(String::as_str).chain(ids).map(str::len).find(|it| *it > LONGEST_NAME) {
        None => Ok(()),
        Some(length) => Err(format!(
            "a name, an address or a device of the node has {length} bytes, and {LONGEST_NAME} are the most"
        )),
    }
}

fn text_of(inventory: &Inventory) -> usize {
    let device = |device: &Device| {
        let peers = device.gpu.iter().flat_map(|gpu| &gpu.peers).map(|peer| peer.device.as_str().len() + 16);
        let Condition { health, sharing, foreign_memory: _ } = &device.condition;
        let health = match health {
            Health::Well => 0,
            Health::Recovering(why) | Health::Fenced(why) => why.len(),
        };
        let sharing = match sharing {
            DeviceSharing::Enforced => 0,
            DeviceSharing::Unenforced(why) | DeviceSharing::Alone(why) | DeviceSharing::OneUser(why) => {
                why.len()
            }
        };
        device.id.as_str().len() + device.model.len() + health + sharing + peers.sum::<usize>()
    };
    let isolation = [&inventory.isolation.host_limits, &inventory.isolation.devices];
    let isolation = isolation.into_iter().map(|it| match it {
        Enforcement::Enforced => 0,
        Enforcement::Unenforced(why) => why.len(),
    });
    inventory.devices.iter().map(device).sum::<usize>() + isolation.sum::<usize>()
}

/// The node as the head knows it: with short sentences, and each device once, for a driver that lists one
/// twice must not have it booked twice.
pub(crate) fn inventory(mut inventory: Inventory) -> Inventory {
    let mut known = BTreeSet::new();
    inventory.devices.retain(|device| known.insert(device.id.clone()));
    inventory.devices.iter_mut().for_each(|device| shorten_condition(&mut device.condition));
    shorten_enforcement(&mut inventory.isolation.host_limits);
    shorten_enforcement(&mut inventory.isolation.devices);
    inventory
}

/// As many reports as one call may have, with short texts and finite numbers.
pub(crate) fn reports(mut reports: Vec<Report>) -> Vec<Report> {
    if reports.len() > MOST_REPORTS {
        tracing::warn!(reports = reports.len(), most = MOST_REPORTS, "a worker reports too much in one call");
        reports.truncate(MOST_REPORTS);
    }
    for report in &mut reports {
        match report {
            Report::Started { .. }
            | Report::PrivateUser { .. }
            | Report::Allotted { .. }
            | Report::Stalled { .. }
            | Report::Idle { .. }
            | Report::Active(_)
            | Report::SignalSent { .. } => {}
            Report::Checkpoints { source, result, .. } => {
                shorten(&mut source.node);
                if let CheckpointResult::Missing(why) = result {
                    shorten(why);
                }
            }
            Report::Ended { outcome, progress, usage, .. } => {
                outcome.text_mut().map(shorten);
                progress.iter_mut().for_each(bound_progress);
                bound_usage(usage);
            }
            Report::Sharing { enforcement, .. } => shorten_enforcement(enforcement),
            Report::Condition { condition, .. } => shorten_condition(condition),
            Report::Telemetry(all) => all.truncate(MOST_DEVICES),
            Report::Usage(all) => {
                all.truncate(MOST_RANKS);
                all.iter_mut().for_each(|it| bound_usage(&mut it.devices));
            }
            Report::ColocationSamples(all) => {
                all.truncate(MOST_RANKS);
                all.retain(is_plausible);
            }
            Report::Progress(all) => {
                all.truncate(MOST_RANKS);
                all.iter_mut().for_each(|it| bound_progress(&mut it.progress));
            }
        }
    }
    reports
}

/// How many rows a report adds to the journal beyond those that starts and ends of ranks bound.
pub(crate) fn rows(report: &Report) -> u64 {
    match report {
        Report::Sharing { .. }
        | Report::PrivateUser { .. }
        | Report::Condition { .. }
        | Report::Allotted { .. }
        | Report::Stalled { .. }
        | Report::Idle { .. }
        | Report::Active(_)
        | Report::SignalSent { .. }
        | Report::Checkpoints { .. } => 1,
        Report::ColocationSamples(all) => all.len() as u64,
        Report::Started { .. }
        | Report::Ended { .. }
        | Report::Progress(_)
        | Report::Telemetry(_)
        | Report::Usage(_) => 0,
    }
}

fn is_plausible(sample: &ColocationSample) -> bool {
    sample.rate.is_finite()
        && sample.utilization.is_none_or(f64::is_finite)
        && sample.neighbors.len() <= MOST_NEIGHBORS
        && sample.gpu.len() <= LONGEST_NAME
        && sample.device.as_str().len() <= LONGEST_NAME
}

fn bound_usage(usage: &mut Vec<DeviceUsage>) {
    usage.retain(|it| it.device.as_str().len() <= LONGEST_NAME);
    usage.truncate(MOST_DEVICES_OF_RANK);
    usage.iter_mut().for_each(DeviceUsage::bound);
}

fn bound_progress(progress: &mut Progress) {
    progress.rate = progress.rate.filter(|rate| rate.is_finite());
    progress.metrics.retain(|name, _| name.len() <= LONGEST_NAME);
    while progress.metrics.len() > MOST_METRICS {
        progress.metrics.pop_last();
    }
}

fn shorten_enforcement(enforcement: &mut Enforcement) {
    match enforcement {
        Enforcement::Enforced => {}
        Enforcement::Unenforced(why) => shorten(why),
    }
}

fn shorten_condition(condition: &mut Condition) {
    match &mut condition.health {
        Health::Well => {}
        Health::Recovering(why) | Health::Fenced(why) => shorten(why),
    }
    match &mut condition.sharing {
        DeviceSharing::Enforced => {}
        DeviceSharing::Unenforced(why) | DeviceSharing::Alone(why) | DeviceSharing::OneUser(why) => {
            shorten(why)
        }
    }
}

fn shorten(text: &mut String) {
    if text.len() > LONGEST_SENTENCE {
        text.truncate(text.floor_char_boundary(LONGEST_SENTENCE));
        text.push('…');
    }
}

#[cfg(test)]
mod tests {
    use cohabit_types::DeviceId;

    use super::*;

    #[test]
    fn a_device_that_is_listed_twice_is_there_once() {
        let listed = crate::test_kit::inventory();
        let twice = Inventory { devices: [&listed.devices[..], &listed.devices].concat(), ..listed.clone() };
        assert_eq!(inventory(twice), listed);
    }

    /// Of 70,000 devices the head was busy for a minute with each join, and again after each restart.
    #[test]
    fn a_description_of_a_node_has_bounds() {
        let usual = crate::test_kit::inventory();
        check(&usual).unwrap();
        let device = |n: usize| Device { id: DeviceId(format!("{n}").into()), ..usual.devices[0].clone() };
        let many = Inventory { devices: (0..=MOST_DEVICES).map(device).collect(), ..usual.clone() };
        assert!(check(&many).unwrap_err().contains("1025 devices, and 1024 are the most"));
        let long = Inventory { name: "x".repeat(LONGEST_NAME + 1), ..usual.clone() };
        assert!(check(&long).unwrap_err().contains("has 256 bytes, and 255 are the most"));
        let health = Health::Fenced("y".repeat(MOST_TEXT));
        let condition = Condition { health, ..Condition::default() };
        let wordy = Inventory { devices: vec![Device { condition, ..device(1) }], ..usual.clone() };
        assert!(check(&wordy).unwrap_err().contains("bytes of texts"));
        let Health::Fenced(why) = &inventory(wordy).devices[0].condition.health else { panic!() };
        assert_eq!(why.len(), LONGEST_SENTENCE + '…'.len_utf8());
        let ports = Inventory { rendezvous_ports: vec![1; MOST_PORTS + 1], ..usual };
        assert!(check(&ports).unwrap_err().contains("4097 ports for rendezvous"));
    }

    #[test]
    fn reports_have_bounds() {
        let rank = "1#1/0".parse().unwrap();
        let long = || Enforcement::Unenforced("ä".repeat(1 << 20));
        let mut many = vec![Report::PrivateUser { rank, uid: 1 }; MOST_REPORTS];
        many.splice(..0, [Report::Sharing { rank, enforcement: long() }]);
        let kept = reports(many);
        assert_eq!(kept.len(), MOST_REPORTS);
        let Report::Sharing { enforcement: Enforcement::Unenforced(why), .. } = &kept[0] else { panic!() };
        assert!(why.len() <= LONGEST_SENTENCE + '…'.len_utf8() && why.ends_with("ä…"), "{}", why.len());
        let metrics = (0..1_000).map(|n| (format!("metric {n}"), 1.0.into())).collect();
        let mut progress = Progress { metrics, ..Progress::default() };
        bound_progress(&mut progress);
        assert_eq!(progress.metrics.len(), MOST_METRICS);
    }

    #[test]
    fn a_rate_is_finite_and_a_metric_need_not_be() {
        let metrics = [("loss".to_owned(), f64::NAN.into()), ("lr".to_owned(), 0.1.into())].into();
        let progress = Progress { rate: Some(f64::INFINITY), metrics, ..Progress::default() };
        let of = cohabit_types::AttemptProgress { attempt: "1#1".parse().unwrap(), progress };
        let Report::Progress(kept) = reports(vec![Report::Progress(vec![of])]).remove(0) else { panic!() };
        assert_eq!(kept[0].progress.rate, None);
        assert_eq!(kept[0].progress.metrics.keys().collect::<Vec<_>>(), ["loss", "lr"]);
    }
}
