//! Opens the driver's library, and explains why no GPU is available when that fails.

use std::error::Error;
use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::mem;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nvml_wrapper::Nvml;
use nvml_wrapper::error::NvmlError;

/// The name by which the dynamic loader finds the library.
const DEFAULT_LIBRARY: &str = "libnvidia-ml.so.1";

/// Why no GPU is available. Its display text says what is wrong and what to do.
#[derive(Debug)]
pub enum GpusUnavailable {
    /// The library is missing or cannot be loaded.
    NoLibrary {
        /// The message of the dynamic loader, which names the library.
        why: String,
    },
    /// The library lacks functions that every version of NVML has.
    StrangeLibrary {
        /// Its path or name.
        library: PathBuf,
        /// What it lacks.
        why: String,
    },
    /// The library is there, but its kernel module is not loaded.
    NoDriver,
    /// The library is newer or older than the kernel module.
    VersionMismatch,
    /// This user may not use the driver.
    NoPermission,
    /// The driver works, but there is no GPU.
    NoDevices,
    /// The driver failed to initialise.
    Failed {
        /// The message of its library.
        why: String,
    },
    /// The driver hangs during initialisation.
    Silent {
        /// How long it was waited for.
        waited: Duration,
    },
    /// No thread could be started for the driver.
    NoThread {
        /// The message of the operating system.
        why: io::Error,
    },
}

impl GpusUnavailable {
    /// What is wrong.
    #[must_use]
    pub fn problem(&self) -> String {
        match self {
            GpusUnavailable::NoLibrary { why } => {
                format!("NVIDIA's management library cannot be loaded ({why})")
            }
            GpusUnavailable::StrangeLibrary { library, why } => {
                format!("{} is not NVIDIA's management library ({why})", library.display())
            }
            GpusUnavailable::NoDriver => "the NVIDIA driver is not loaded".to_owned(),
            GpusUnavailable::VersionMismatch => {
                "NVIDIA's library and the loaded driver have different versions".to_owned()
            }
            GpusUnavailable::NoPermission => "this user may not use the NVIDIA driver".to_owned(),
            GpusUnavailable::NoDevices => "the NVIDIA driver reports no GPU".to_owned(),
            GpusUnavailable::Failed { why } => format!("the NVIDIA driver does not initialise ({why})"),
            GpusUnavailable::Silent { waited } => {
                format!("the NVIDIA driver did not initialise within {} s", waited.as_secs())
            }
            GpusUnavailable::NoThread { why } => {
                format!("no thread can be started for the NVIDIA driver ({why})")
            }
        }
    }

    /// What to do.
    #[must_use]
    pub fn advice(&self) -> &'static str {
        match self {
            GpusUnavailable::NoLibrary { .. } => {
                "if this host has NVIDIA GPUs, install their driver; in a container, use the NVIDIA runtime with \
                 the `utility` capability"
            }
            GpusUnavailable::StrangeLibrary { .. } => "name the driver's own libnvidia-ml.so.1, or none",
            GpusUnavailable::NoDriver => {
                "load it with `modprobe nvidia`, or install it for this kernel and reboot"
            }
            GpusUnavailable::VersionMismatch => "reload the driver or reboot the host",
            GpusUnavailable::NoPermission => "give this user access to /dev/nvidiactl and /dev/nvidia*",
            GpusUnavailable::NoDevices => "look for GPUs with lspci and for NVRM errors in dmesg",
            GpusUnavailable::Failed { .. } | GpusUnavailable::Silent { .. } => {
                "look for NVRM and Xid errors in dmesg, then reload the driver or reboot the host"
            }
            GpusUnavailable::NoThread { .. } => "raise `ulimit -u`, or TasksMax of the systemd service",
        }
    }
}

impl fmt::Display for GpusUnavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.problem(), self.advice())
    }
}

impl Error for GpusUnavailable {}

/// Opens this library, or the one with the default name.
pub(super) fn open(library: Option<&Path>) -> Result<Nvml, GpusUnavailable> {
    let library = library.unwrap_or(Path::new(DEFAULT_LIBRARY));
    let nvml =
        Nvml::builder().lib_path(OsStr::new(library)).init().map_err(|error| unavailable(library, error))?;
    if let Err(missing) = &nvml.lib().nvmlShutdown {
        let why = missing.to_string();
        // Without this function its destructor panics.
        mem::forget(nvml);
        return Err(GpusUnavailable::StrangeLibrary { library: library.to_owned(), why });
    }
    match nvml.device_count() {
        Ok(0) => Err(GpusUnavailable::NoDevices),
        Ok(_) => Ok(nvml),
        Err(error) => Err(unavailable(library, error)),
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "NVML has many errors, few of which say what to do")]
fn unavailable(library: &Path, error: NvmlError) -> GpusUnavailable {
    match error {
        NvmlError::LibloadingError(error) => GpusUnavailable::NoLibrary { why: error.to_string() },
        NvmlError::FailedToLoadSymbol(why) => {
            GpusUnavailable::StrangeLibrary { library: library.to_owned(), why }
        }
        NvmlError::DriverNotLoaded => GpusUnavailable::NoDriver,
        NvmlError::LibRmVersionMismatch => GpusUnavailable::VersionMismatch,
        NvmlError::NoPermission => GpusUnavailable::NoPermission,
        NvmlError::NotFound => GpusUnavailable::NoDevices,
        other => GpusUnavailable::Failed { why: other.to_string() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_library_is_named_with_advice() {
        let refusal = open(Some(Path::new("/no/such/library.so"))).unwrap_err().to_string();
        assert!(
            refusal.contains("/no/such/library.so") && refusal.contains("install their driver"),
            "{refusal}"
        );
    }

    #[test]
    fn another_library_is_refused_without_a_panic() {
        let refusal = open(Some(Path::new("libc.so.6"))).unwrap_err();
        assert!(matches!(refusal, GpusUnavailable::StrangeLibrary { .. }), "{refusal}");
    }

    #[test]
    fn every_driver_error_comes_with_advice() {
        let text = |error| unavailable(Path::new(DEFAULT_LIBRARY), error).to_string();
        assert!(text(NvmlError::DriverNotLoaded).contains("modprobe nvidia"));
        assert!(text(NvmlError::LibRmVersionMismatch).contains("reload the driver or reboot the host"));
        assert!(text(NvmlError::NoPermission).contains("/dev/nvidiactl"));
        assert!(text(NvmlError::NotFound).contains("lspci"));
        let failed = text(NvmlError::Unknown);
        assert!(failed.contains("an internal driver error occurred") && failed.contains("dmesg"), "{failed}");
    }
}
