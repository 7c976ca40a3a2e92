//! Ratios of the speeds of jobs of one name at different shares, joined into one table.
//!
//! Cores and memory are told apart: a ratio counts for the resource of which alone the share has changed, and
//! where both have, for the memory, once it is known what the cores were worth.
//! The levels of each resource get the speeds that fit the ratios best, by least squares of logarithms.

use std::collections::BTreeMap;

use cohabit_types::{Bytes, HostShare};

use super::table::SensitivityTable;

/// Levels of one resource that are told apart.
const MOST_LEVELS: usize = 64;

/// Rounds of the search for the speeds that fit best; few levels need few.
const ROUNDS: usize = 200;

/// Speeds that differ by less than this part are taken for equal: measurements are no better.
const NOISE: f64 = 0.01;

/// What is known of the speeds of jobs of one name.
#[derive(Debug, Default, Clone)]
pub(super) struct SpeedLevels {
    /// By thousandths of a core for each device.
    cores: RatioGraph,
    /// By bytes for each device.
    memory: RatioGraph,
}

/// Ratios between levels of one resource.
#[derive(Debug, Default, Clone)]
struct RatioGraph {
    /// Of each pair of levels, the smaller first: the sum of the logarithms of the ratios, and their number.
    ratios: BTreeMap<(u64, u64), (f64, f64)>,
}

impl SpeedLevels {
    /// A job with so many devices is faster by this factor with the one share than with the other.
    pub(super) fn add(&mut self, before: HostShare, after: HostShare, devices: u32, ratio: f64) {
        if !(ratio.is_finite() && ratio > 0.0) {
            return;
        }
        let devices = u64::from(devices.max(1));
        let cores = |share: HostShare| u64::from(share.cpus) * 1_000 / devices;
        let memory = |share: HostShare| share.memory.0 / devices;
        match (before.cpus == after.cpus, before.memory == after.memory) {
            (false, true) => self.cores.add(cores(before), cores(after), ratio.ln()),
            (true, false) => self.memory.add(memory(before), memory(after), ratio.ln()),
            (false, false) => {
                if let Some(by_cores) = self.cores.ratio(cores(before), cores(after)) {
                    self.memory.add(memory(before), memory(after), ratio.ln() - by_cores.ln());
                }
            }
            (true, true) => {}
        }
    }

    /// The table by what is known; `None` before the first ratio of cores.
    pub(super) fn table(&self) -> Option<SensitivityTable> {
        let cores = with_ends(self.cores.speeds());
        if cores.is_empty() {
            return None;
        }
        let mut memory = self.memory.speeds();
        if memory.is_empty() {
            memory.push((0.0, 1.0));
        }
        let rows: Vec<Vec<f64>> = cores
            .iter()
            .map(|(_, by_cores)| memory.iter().map(|(_, by_memory)| by_cores * by_memory).collect())
            .collect();
        let levels = cores.iter().map(|(milli, _)| milli / 1_000.0).collect();
        let amounts: Vec<Bytes> = memory.iter().map(|(bytes, _)| Bytes(*bytes as u64)).collect();
        SensitivityTable::new(levels, &amounts, &rows).ok()
    }
}

impl RatioGraph {
    fn add(&mut self, before: u64, after: u64, log: f64) {
        let (pair, log) = if before < after { ((before, after), log) } else { ((after, before), -log) };
        if self.ratios.len() < MOST_LEVELS || self.ratios.contains_key(&pair) {
            let (sum, count) = self.ratios.entry(pair).or_default();
            (*sum, *count) = (*sum + log, *count + 1.0);
        }
    }

    /// How much faster jobs are at the one level than at the other, if both are known.
    fn ratio(&self, before: u64, after: u64) -> Option<f64> {
        let speeds = self.speeds();
        let speed = |level: u64| speeds.iter().find(|(it, _)| *it == level as f64).map(|(_, speed)| *speed);
        Some(speed(after)? / speed(before)?)
    }

    /// The levels with their speeds relative to the first one, made not to decrease. Only the levels that are
    /// joined with the first one by ratios are comparable.
    fn speeds(&self) -> Vec<(f64, f64)> {
        let Some(((first, _), _)) = self.ratios.first_key_value() else { return Vec::new() };
        let mut logs = BTreeMap::from([(*first, 0.0)]);
        // Every round reaches the levels next to the known ones.
        while let Some((level, log)) = self.next_joined(&logs) {
            logs.insert(level, log);
        }
        for _ in 0..ROUNDS {
            for level in logs.keys().copied().skip(1).collect::<Vec<_>>() {
                let fitted = self.fit(level, &logs);
                logs.insert(level, fitted);
            }
        }
        let mut speeds: Vec<(f64, f64)> =
            logs.into_iter().map(|(level, log)| (level as f64, log.exp())).collect();
        not_decreasing(&mut speeds);
        speeds
    }

    /// A level without a speed that has a ratio with one that has, and its speed by that ratio.
    fn next_joined(&self, logs: &BTreeMap<u64, f64>) -> Option<(u64, f64)> {
        self.ratios.iter().find_map(|((low, high), (sum, count))| match (logs.get(low), logs.get(high)) {
            (Some(log), None) => Some((*high, log + sum / count)),
            (None, Some(log)) => Some((*low, log - sum / count)),
            (Some(_), Some(_)) | (None, None) => None,
        })
    }

    /// The speed of a level that fits its ratios with the others best.
    fn fit(&self, level: u64, logs: &BTreeMap<u64, f64>) -> f64 {
        let (mut sum, mut weight) = (0.0, 0.0);
        for ((low, high), (log, count)) in &self.ratios {
            let other = match level {
                it if it == *high => logs.get(low).map(|other| count * other + log),
                it if it == *low => logs.get(high).map(|other| count * other - log),
                _ => None,
            };
            if let Some(other) = other {
                (sum, weight) = (sum + other, weight + count);
            }
        }
        if weight > 0.0 { sum / weight } else { logs[&level] }
    }
}

/// Neighboring levels whose speeds decrease get their mean.
fn not_decreasing(speeds: &mut [(f64, f64)]) {
    let mut pools: Vec<(f64, usize)> = Vec::new();
    for (_, speed) in speeds.iter() {
        pools.push((*speed, 1));
        while let [.., (earlier, many), (later, more)] = pools[..]
            && later < earlier
        {
            let (all, mean) =
                (many + more, (earlier * many as f64 + later * more as f64) / (many + more) as f64);
            pools.truncate(pools.len() - 2);
            pools.push((mean, all));
        }
    }
    let pooled = pools.into_iter().flat_map(|(mean, many)| std::iter::repeat_n(mean, many));
    speeds.iter_mut().zip(pooled).for_each(|((_, speed), pooled)| *speed = pooled);
}

/// The levels with one more at each end where it is worth a trial: beyond the last level if the speed still
/// grows, at half of that; below the first if the speed does not depend on the resource there.
fn with_ends(mut speeds: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    if let [.., (one, slower), (two, faster)] = speeds[..] {
        let growth = faster - slower;
        if growth > NOISE * faster {
            speeds.push((two + (two - one), faster + growth / 2.0));
        }
    }
    if let [(first, slower), (_, faster), ..] = speeds[..]
        && faster - slower <= NOISE * faster
    {
        speeds.insert(0, (first / 2.0, slower * (1.0 - NOISE)));
    }
    speeds
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(cpus: u32) -> HostShare {
        HostShare { cpus, memory: Bytes(1 << 30) }
    }

    fn speed(levels: &SpeedLevels, cores: f64) -> f64 {
        let table = levels.table().unwrap();
        table.speed(cores, 1e12) / table.speed(3.0, 1e12)
    }

    #[test]
    fn ratios_are_joined_into_speeds() {
        let mut levels = SpeedLevels::default();
        assert_eq!(levels.table(), None);
        levels.add(share(6), share(12), 2, 1.5);
        levels.add(share(12), share(4), 2, 0.5);
        assert!((speed(&levels, 6.0) - 1.5).abs() < 1e-9);
        assert!((speed(&levels, 2.0) - 0.75).abs() < 1e-9);
    }

    #[test]
    fn ratios_that_contradict_each_other_are_weighed() {
        let mut levels = SpeedLevels::default();
        levels.add(share(3), share(6), 1, 2.0);
        levels.add(share(3), share(6), 1, 0.5);
        assert!((speed(&levels, 6.0) - 1.0).abs() < 1e-9);
        levels.add(share(6), share(3), 1, 2.0);
        assert!(speed(&levels, 6.0) >= 1.0, "more cores slow no job down");
    }

    #[test]
    fn what_still_grows_or_needs_less_is_worth_a_trial() {
        let mut growing = SpeedLevels::default();
        growing.add(share(3), share(6), 1, 1.4);
        assert!(speed(&growing, 9.0) > 1.4);
        let mut flat = SpeedLevels::default();
        flat.add(share(3), share(6), 1, 1.0);
        assert!(speed(&flat, 9.0) <= 1.0 + 1e-9);
        assert!(speed(&flat, 1.5) > 0.98);
    }

    #[test]
    fn cores_and_memory_are_told_apart() {
        let mut levels = SpeedLevels::default();
        let with = |cpus, gib: u64| HostShare { cpus, memory: Bytes(gib << 30) };
        levels.add(with(3, 60), with(6, 120), 1, 9.0);
        assert_eq!(levels.table(), None);
        levels.add(with(3, 60), with(6, 60), 1, 2.0);
        levels.add(with(3, 60), with(6, 120), 1, 3.0);
        let table = levels.table().unwrap();
        let ratio = |cores, gib: u64| {
            table.speed(cores, (gib << 30) as f64) / table.speed(3.0, (60_u64 << 30) as f64)
        };
        assert!((ratio(6.0, 120) - 3.0).abs() < 1e-9);
        for nonsense in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            levels.add(with(3, 60), with(6, 60), 1, nonsense);
        }
        assert_eq!(levels.table().as_ref(), Some(&table));
    }
}
