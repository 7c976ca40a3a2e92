//! The performance monitor (GPM) of newer GPUs: averages over the time between two of its samples.

use std::collections::BTreeMap;

use cohabit_types::{DeviceId, GpuPerformance};
use nvml_wrapper::enums::gpm::GpmMetricId;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::gpm::gpm_metrics_get;
use nvml_wrapper::struct_wrappers::gpm::GpmMetricResult;
use nvml_wrapper::{Device as Handle, GpmSample, Nvml};

use super::error::if_reported;

const METRICS: [GpmMetricId; 4] =
    [GpmMetricId::SmUtil, GpmMetricId::SmOccupancy, GpmMetricId::AnyTensorUtil, GpmMetricId::DramBwUtil];
const PERCENT: f64 = 1e2;

/// The last sample of each GPU.
pub(super) struct Performance<'nvml> {
    nvml: &'nvml Nvml,
    monitors: BTreeMap<DeviceId, Monitor<'nvml>>,
}

/// The performance monitor of a GPU.
enum Monitor<'nvml> {
    /// The GPU has none.
    Absent,
    /// The last sample, if there is one.
    Present(Option<GpmSample<'nvml>>),
}

impl<'nvml> Performance<'nvml> {
    /// Without samples.
    pub(super) fn new(nvml: &'nvml Nvml) -> Performance<'nvml> {
        Performance { nvml, monitors: BTreeMap::new() }
    }

    /// Averages since the last call for this GPU. `None` at the first call, and where the GPU has no such
    /// monitor.
    pub(super) fn since_last(
        &mut self,
        id: &DeviceId,
        gpu: &Handle<'nvml>,
    ) -> Result<Option<GpuPerformance>, NvmlError> {
        if !self.monitors.contains_key(id) {
            self.monitors.insert(id.clone(), Monitor::of(gpu)?);
        }
        let Some(Monitor::Present(last)) = self.monitors.get_mut(id) else { return Ok(None) };
        let now = if_reported(gpu.gpm_sample())?;
        let averages = match (&*last, &now) {
            (Some(last), Some(now)) => if_reported(gpm_metrics_get(self.nvml, last, now, &METRICS))?,
            (None, _) | (_, None) => None,
        };
        *last = now;
        Ok(averages.as_deref().and_then(performance))
    }
}

impl Monitor<'_> {
    fn of<'nvml>(gpu: &Handle<'nvml>) -> Result<Monitor<'nvml>, NvmlError> {
        // The destructor of a sample panics if the library lacks this function.
        let can_free = gpu.nvml().lib().nvmlGpmSampleFree.is_ok();
        let is_there = can_free && if_reported(gpu.gpm_support())? == Some(true);
        Ok(if is_there { Monitor::Present(None) } else { Monitor::Absent })
    }
}

/// The metrics, from answers in the order of `METRICS`; `None` if no metric was answered.
fn performance(answers: &[Result<GpmMetricResult, NvmlError>]) -> Option<GpuPerformance> {
    let fraction = |metric: &GpmMetricId| {
        let answer = answers.iter().flatten().find(|answer| answer.metric_id == *metric)?;
        answer.value.is_finite().then(|| (answer.value / PERCENT).clamp(0.0, 1.0))
    };
    let [sm_active, sm_occupancy, tensor_active, memory_bandwidth] = METRICS.each_ref().map(fraction);
    let performance = GpuPerformance { sm_active, sm_occupancy, tensor_active, memory_bandwidth };
    (performance != GpuPerformance::default()).then_some(performance)
}

#[cfg(test)]
mod tests {
    use nvml_wrapper::struct_wrappers::gpm::GpmMetricInfo;

    use super::*;

    fn answer(metric_id: GpmMetricId, value: f64) -> Result<GpmMetricResult, NvmlError> {
        let metric_info =
            GpmMetricInfo { short_name: String::new(), long_name: String::new(), unit: "%".into() };
        Ok(GpmMetricResult { metric_id, value, metric_info })
    }

    #[test]
    fn percentages_become_fractions_and_nan_becomes_none() {
        let answers = [
            answer(GpmMetricId::SmUtil, 42.5),
            answer(GpmMetricId::SmOccupancy, f64::NAN),
            Err(NvmlError::NotSupported),
            answer(GpmMetricId::DramBwUtil, 100.4),
        ];
        let expected = GpuPerformance {
            sm_active: Some(0.425),
            sm_occupancy: None,
            tensor_active: None,
            memory_bandwidth: Some(1.0),
        };
        assert_eq!(performance(&answers), Some(expected));
    }

    #[test]
    fn a_monitor_without_answers_yields_none() {
        assert_eq!(performance(&[Err(NvmlError::NotSupported)]), None);
    }
}
