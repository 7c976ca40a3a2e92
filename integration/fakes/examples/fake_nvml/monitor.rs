//! The performance monitor: samples, and averages between two of them.

use std::ffi::c_uint;

use cohabit_fakes::{FakeGpu, Performance};
use nvml_wrapper_sys::bindings::*;

use crate::library::{Code, give, gpu, tell};

/// A sample. The values of the world are averages already, so the later of two samples has them.
type Sample = Option<Performance>;

#[unsafe(no_mangle)]
extern "C" fn nvmlGpmQueryDeviceSupport(device: nvmlDevice_t, place: *mut nvmlGpmSupport_t) -> Code {
    tell("nvmlGpmQueryDeviceSupport", device, place, |gpu: &FakeGpu| {
        let version = NVML_GPM_SUPPORT_VERSION;
        Ok(nvmlGpmSupport_t { version, isSupportedDevice: u32::from(gpu.performance.is_some()) })
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlGpmSampleAlloc(place: *mut nvmlGpmSample_t) -> Code {
    let sample: Box<Sample> = Box::default();
    give(place, Ok(Box::into_raw(sample).cast()))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlGpmSampleFree(sample: nvmlGpmSample_t) -> Code {
    if sample.is_null() {
        return nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT;
    }
    // SAFETY: by NVML's interface, it comes from `nvmlGpmSampleAlloc` and is freed once.
    drop(unsafe { Box::from_raw(sample.cast::<Sample>()) });
    nvmlReturn_enum_NVML_SUCCESS
}

#[unsafe(no_mangle)]
extern "C" fn nvmlGpmSampleGet(device: nvmlDevice_t, sample: nvmlGpmSample_t) -> Code {
    let performance = gpu("nvmlGpmSampleGet", device).and_then(|gpu| match gpu.performance {
        None => Err(nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED),
        some => Ok(some),
    });
    give(sample.cast::<Sample>(), performance)
}

#[unsafe(no_mangle)]
extern "C" fn nvmlGpmMetricsGet(request: *mut nvmlGpmMetricsGet_t) -> Code {
    if request.is_null() {
        return nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT;
    }
    // SAFETY: by NVML's interface, only the caller uses the structure during this call.
    let request = unsafe { &mut *request };
    if request.version != NVML_GPM_METRICS_GET_VERSION {
        return nvmlReturn_enum_NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    }
    if request.sample1.is_null() || request.sample2.is_null() {
        return nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT;
    }
    // SAFETY: by NVML's interface, samples come from `nvmlGpmSampleAlloc` and are not freed yet.
    let (earlier, later) = unsafe { (*request.sample1.cast::<Sample>(), *request.sample2.cast::<Sample>()) };
    let (Some(_), Some(performance)) = (earlier, later) else {
        return nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT;
    };
    for metric in request.metrics.iter_mut().take(request.numMetrics as usize) {
        match value(&performance, metric.metricId) {
            Some(value) => {
                metric.nvmlReturn = nvmlReturn_enum_NVML_SUCCESS;
                metric.value = value;
            }
            None => metric.nvmlReturn = nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED,
        }
    }
    nvmlReturn_enum_NVML_SUCCESS
}

fn value(performance: &Performance, metric: c_uint) -> Option<f64> {
    match metric {
        nvmlGpmMetricId_t_NVML_GPM_METRIC_SM_UTIL => Some(performance.sm_active),
        nvmlGpmMetricId_t_NVML_GPM_METRIC_SM_OCCUPANCY => Some(performance.sm_occupancy),
        nvmlGpmMetricId_t_NVML_GPM_METRIC_ANY_TENSOR_UTIL => Some(performance.tensor_active),
        nvmlGpmMetricId_t_NVML_GPM_METRIC_DRAM_BW_UTIL => Some(performance.memory_bandwidth),
        _ => None,
    }
}
