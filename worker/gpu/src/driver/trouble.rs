//! Why a GPU could not be looked at.

use std::fmt::Display;

use nvml_wrapper::error::NvmlError;

/// Why a GPU could not be looked at.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GpuError {
    /// It fell off the bus, or does not answer any more. Once it is back, only a library that is opened anew
    /// sees it.
    #[error("{0}")]
    Lost(String),
    /// The library does not work any more, which says nothing of the GPU: open it anew.
    #[error("{0}")]
    Closed(String),
    /// It may answer the next time.
    #[error("{0}")]
    Other(String),
}

/// The driver's error about this GPU, in words.
#[expect(clippy::wildcard_enum_match_arm, reason = "NVML has many errors, few of which say what to do")]
pub(super) fn trouble(gpu: &impl Display, error: &NvmlError) -> GpuError {
    if matches!(error, NvmlError::Uninitialized) {
        return GpuError::Closed("NVIDIA's library was closed: open it anew".into());
    }
    if let Some(why) = lost(error) {
        let advice = "look at dmesg for its Xid errors, then reset it or restart the machine";
        return GpuError::Lost(format!("{gpu} is lost ({why}): {advice}"));
    }
    let advice = match error {
        NvmlError::NoPermission => ": give this user access to its file /dev/nvidia*",
        NvmlError::InsufficientPower => ": attach its power cables",
        NvmlError::OperatingSystem => ": let this container or cgroup use its file /dev/nvidia*",
        _ => "",
    };
    GpuError::Other(format!("{gpu} does not answer ({error}){advice}"))
}

/// Why the GPU is lost, if so.
#[expect(clippy::wildcard_enum_match_arm, reason = "NVML has many errors, few of which end everything")]
fn lost(error: &NvmlError) -> Option<&'static str> {
    match error {
        NvmlError::GpuLost => Some("it fell off the bus, or is out of reach"),
        NvmlError::ResetRequired => Some("it must be reset"),
        _ => None,
    }
}

/// What the driver tells, and nothing where it does not. That the GPU is lost, or the library closed, is
/// never nothing.
pub(super) fn if_reported<T>(answer: Result<T, NvmlError>) -> Result<Option<T>, NvmlError> {
    match answer {
        Ok(value) => Ok(Some(value)),
        Err(error) if lost(&error).is_some() || matches!(error, NvmlError::Uninitialized) => Err(error),
        Err(_) => Ok(None),
    }
}

/// Whether this GPU or this driver has no such thing.
pub(super) fn is_unknown_here(error: &NvmlError) -> bool {
    matches!(error, NvmlError::NotSupported | NvmlError::FailedToLoadSymbol(_) | NvmlError::FunctionNotFound)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_off_the_bus_is_lost_and_others_may_answer_again() {
        let lost = trouble(&"GPU 3", &NvmlError::GpuLost);
        assert!(matches!(&lost, GpuError::Lost(why) if why.starts_with("GPU 3 is lost")), "{lost}");
        let shy = trouble(&"GPU 3", &NvmlError::NoPermission);
        assert!(matches!(&shy, GpuError::Other(why) if why.contains("/dev/nvidia")), "{shy}");
    }

    #[test]
    fn a_value_that_is_not_told_is_none_but_a_lost_gpu_is_an_error() {
        assert_eq!(if_reported(Ok(1)).unwrap(), Some(1));
        assert_eq!(if_reported::<u32>(Err(NvmlError::NotSupported)).unwrap(), None);
        assert!(if_reported::<u32>(Err(NvmlError::GpuLost)).is_err());
    }

    #[test]
    fn a_library_that_was_closed_says_nothing_of_the_gpu() {
        assert!(matches!(trouble(&"GPU 3", &NvmlError::Uninitialized), GpuError::Closed(_)));
        assert!(if_reported::<u32>(Err(NvmlError::Uninitialized)).is_err());
    }
}
