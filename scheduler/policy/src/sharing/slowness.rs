//! How fast one job is alone on each kind of GPU, relative to the fastest of them.

use cohabit_types::JobId;

use super::{FreeDevice, Jobs};
use crate::interference::{GpuKind, GpuModel};

/// For each device, the time that the job takes alone on it, divided by the time on the fastest one: by
/// measured rates or, where one is missing, by data sheets.
pub(crate) fn compute_slowness(job: JobId, devices: &[FreeDevice<'_>], jobs: &mut Jobs) -> Vec<f64> {
    if devices.iter().all(|device| device.view.model == devices[0].view.model) {
        return vec![1.0; devices.len()];
    }
    let kinds: Vec<GpuKind> = devices.iter().map(|device| jobs.kind_of(device.view)).collect();
    let measured = |kind: &GpuKind| jobs.member(job, kind).member.solo.rate.filter(|rate| *rate > 0.0);
    let measured: Option<Vec<f64>> = kinds.iter().map(measured).collect();
    let known = |kind: &GpuKind| kind.model().unwrap_or(GpuModel::FALLBACK).sustained();
    let rates = measured.unwrap_or_else(|| kinds.iter().map(known).collect());
    let fastest = rates.iter().copied().fold(0.0, f64::max);
    rates.iter().map(|rate| fastest / rate).collect()
}
