//! Tables as somebody measured them who makes errors.

use std::sync::Arc;

use cohabit_policy::{SensitivityProfiles, SensitivityTable};
use cohabit_types::Bytes;

use crate::random::Random;

/// The tables with a log-normal error of every speed, made not to decrease again. Each group draws errors of
/// its own.
#[must_use]
pub fn noisy_tables(truth: &SensitivityProfiles, sigma: f64, seed: u64) -> SensitivityProfiles {
    let mut noisy = SensitivityProfiles::default();
    for (group, table) in truth.iter() {
        let mut draws = Random::stream(seed, &format!("measured sensitivity of {group}"));
        let measured = with_errors(table, sigma, &mut draws).unwrap_or_else(|| Arc::clone(table));
        noisy.insert(group, measured);
    }
    noisy
}

fn with_errors(table: &SensitivityTable, sigma: f64, draws: &mut Random) -> Option<Arc<SensitivityTable>> {
    let (cores, memory) = (table.cores(), table.memory());
    let mut rows: Vec<Vec<f64>> = Vec::with_capacity(cores.len());
    for cores in cores {
        let mut row: Vec<f64> = Vec::with_capacity(memory.len());
        for (column, memory) in memory.iter().enumerate() {
            let measured = table.speed(*cores, *memory) * (sigma * draws.normal()).exp();
            let above = rows.last().map_or(0.0, |row| row[column]);
            let before = row.last().copied().unwrap_or_default();
            row.push(measured.max(above).max(before));
        }
        rows.push(row);
    }
    let amounts: Vec<Bytes> = memory.iter().map(|memory| Bytes(*memory as u64)).collect();
    SensitivityTable::new(cores.to_vec(), &amounts, &rows).ok().map(Arc::new)
}
