//! Why a GPU could not be queried.

use std::fmt::Display;

use nvml_wrapper::error::NvmlError;

/// Why a GPU could not be queried.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GpuError {
    /// The GPU fell off the bus or does not answer any more. Once it is back, only a newly opened library
    /// sees it.
    #[error("{0}")]
    Lost(String),
    /// The library does not work any more, which says nothing about the GPU: reopen it.
    #[error("{0}")]
    Closed(String),
    /// The next query may succeed.
    #[error("{0}")]
    Other(String),
}

/// Translates the driver's error about this GPU, with advice.
#[expect(clippy::wildcard_enum_match_arm, reason = "NVML has many errors, few of which say what to do")]
pub(super) fn gpu_error(gpu: &impl Display, error: &NvmlError) -> GpuError {
    if matches!(error, NvmlError::Uninitialized) {
        return GpuError::Closed("NVIDIA's library was closed: reopen it".into());
    }
    if let Some(why) = lost(error) {
        let advice = "look for its Xid errors in dmesg, then reset it or reboot the host";
        return GpuError::Lost(format!("{gpu} is lost ({why}): {advice}"));
    }
    let advice = match error {
        NvmlError::NoPermission => ": give this user access to its device file /dev/nvidia*",
        NvmlError::InsufficientPower => ": check its power cables",
        NvmlError::OperatingSystem => ": let this container or cgroup use its device file /dev/nvidia*",
        _ => "",
    };
    GpuError::Other(format!("{gpu} does not answer ({error}){advice}"))
}

/// Why the GPU is lost, if it is.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "NVML has many errors, few of which mean that the GPU is lost"
)]
fn lost(error: &NvmlError) -> Option<&'static str> {
    match error {
        NvmlError::GpuLost => Some("it fell off the bus or cannot be reached"),
        NvmlError::ResetRequired => Some("it must be reset"),
        _ => None,
    }
}

/// The value, or `None` where the driver does not report it. A lost GPU and a closed library stay errors.
pub(super) fn if_reported<T>(answer: Result<T, NvmlError>) -> Result<Option<T>, NvmlError> {
    match answer {
        Ok(value) => Ok(Some(value)),
        Err(error) if lost(&error).is_some() || matches!(error, NvmlError::Uninitialized) => Err(error),
        Err(_) => Ok(None),
    }
}

/// Whether this GPU or this driver lacks the feature.
pub(super) fn is_unknown_here(error: &NvmlError) -> bool {
    matches!(error, NvmlError::NotSupported | NvmlError::FailedToLoadSymbol(_) | NvmlError::FunctionNotFound)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_gpu_off_the_bus_is_lost() {
        let lost = gpu_error(&"GPU 3", &NvmlError::GpuLost);
        assert!(matches!(&lost, GpuError::Lost(why) if why.starts_with("GPU 3 is lost")), "{lost}");
        let refused = gpu_error(&"GPU 3", &NvmlError::NoPermission);
        assert!(matches!(&refused, GpuError::Other(why) if why.contains("/dev/nvidia")), "{refused}");
    }

    #[test]
    fn a_value_that_is_not_reported_is_none_but_a_lost_gpu_is_an_error() {
        assert_eq!(if_reported(Ok(1)).unwrap(), Some(1));
        assert_eq!(if_reported::<u32>(Err(NvmlError::NotSupported)).unwrap(), None);
        assert!(if_reported::<u32>(Err(NvmlError::GpuLost)).is_err());
    }

    #[test]
    fn a_closed_library_does_not_make_the_gpu_lost() {
        assert!(matches!(gpu_error(&"GPU 3", &NvmlError::Uninitialized), GpuError::Closed(_)));
        assert!(if_reported::<u32>(Err(NvmlError::Uninitialized)).is_err());
    }
}
