//! Draws jobs whose cores and host memory may change, and policies that change them.

use std::sync::Arc;

use cohabit_policy::{SensitivityProfiles, SensitivityTable};
use cohabit_types::{Bytes, Demand, HostShare};

use crate::random::Random;
use crate::scenario::Scenario;

/// In half of the scenarios, gives most jobs ranges of cores and memory, and mostly lets the policy tune what
/// they have, with a table of their speeds or without one.
pub(super) fn draw(seed: u64, scenario: &mut Scenario) {
    let mut random = Random::stream(seed, "ranges");
    if random.chance(0.5) {
        return;
    }
    let host = scenario.shapes.iter().map(|shape| HostShare { cpus: shape.cpus, memory: shape.memory });
    let largest = host.fold(HostShare::default(), HostShare::at_least);
    for submission in &mut scenario.submissions {
        if random.chance(0.7) {
            submission.spec.demand = ranged(&submission.spec.demand, largest, &mut random);
        }
    }
    if random.chance(0.8) {
        let separator = if scenario.policy.contains(':') { ',' } else { ':' };
        scenario.policy = format!("{}{separator}tune=on", scenario.policy);
    }
    if random.chance(0.5) {
        let mut profiles = SensitivityProfiles::default();
        for name in scenario.submissions.iter().map(|submission| submission.spec.name.clone()) {
            profiles.insert(name, Arc::new(table(&mut random)));
        }
        scenario.sensitivity = Arc::new(profiles);
    }
}

/// The demand with a range that begins at no more than it claims, so that it fits where it did.
fn ranged(demand: &Demand, largest: HostShare, random: &mut Random) -> Demand {
    let cpus = random.between(1, u64::from(demand.cpus).max(1)) as u32;
    let memory = match demand.memory {
        Bytes::ZERO => Bytes::ZERO,
        claimed => Bytes(random.between(1, claimed.0)),
    };
    let most_memory = match memory {
        Bytes::ZERO => Bytes::ZERO,
        least => Bytes(random.between(least.0, least.0.max(largest.memory.0))),
    };
    let most_cpus = random.between(u64::from(cpus), u64::from(cpus.max(largest.cpus * 2))) as u32;
    let least = HostShare { cpus, memory };
    let up_to = least.up_to(Some(most_cpus), Some(most_memory));
    Demand { cpus, memory, up_to, ..*demand }
}

/// Speeds that grow with cores and memory, at some places.
fn table(random: &mut Random) -> SensitivityTable {
    let (cores, memory) = (vec![1.0, 2.0, 4.0, 9.0], [0, 8, 64].map(|gib: u64| Bytes(gib << 30)));
    let mut grow = |from: f64| if random.chance(0.5) { from + random.fraction() } else { from };
    let mut rows: Vec<Vec<f64>> = Vec::new();
    for row in 0..cores.len() {
        let above =
            |column: usize| rows.get(row.wrapping_sub(1)).map_or(0.1, |above: &Vec<f64>| above[column]);
        let mut before = 0.1;
        let speeds = (0..memory.len()).map(|column| {
            before = grow(above(column).max(before));
            before
        });
        let speeds: Vec<f64> = speeds.collect();
        rows.push(speeds);
    }
    SensitivityTable::new(cores, &memory, &rows).expect("speeds do not decrease")
}
