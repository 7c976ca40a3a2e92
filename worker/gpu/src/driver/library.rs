//! Opening the driver's library, and every way in which that shows that there is no GPU to speak of.

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

/// Why there is no GPU to speak of. Shown with what to do about it.
#[derive(Debug)]
pub enum NoGpus {
    /// The library is not there, or cannot be loaded.
    NoLibrary {
        /// In the words of the dynamic loader, which name it.
        why: String,
    },
    /// A library without its first or last function.
    StrangeLibrary {
        /// Its file or name.
        library: PathBuf,
        /// What it lacks.
        why: String,
    },
    /// The library is there, its kernel module is not.
    NoDriver,
    /// The library is newer or older than the kernel module.
    VersionMismatch,
    /// The driver does not talk to this user.
    NoPermission,
    /// All is well, but there is none.
    NoDevices,
    /// The driver failed at its start.
    Failed {
        /// In the words of its library.
        why: String,
    },
    /// The driver hangs at its start.
    Silent {
        /// For so long it was waited for.
        waited: Duration,
    },
    /// This machine has no thread left to talk to the driver.
    NoThread {
        /// In the words of the system.
        why: io::Error,
    },
}

impl NoGpus {
    /// What is wrong.
    #[must_use]
    pub fn seen(&self) -> String {
        match self {
            NoGpus::NoLibrary { why } => format!("NVIDIA's management library cannot be loaded ({why})"),
            NoGpus::StrangeLibrary { library, why } => {
                format!("{} is no management library of NVIDIA ({why})", library.display())
            }
            NoGpus::NoDriver => "the NVIDIA driver is not loaded".to_owned(),
            NoGpus::VersionMismatch => {
                "NVIDIA's library and the loaded driver are of different versions".to_owned()
            }
            NoGpus::NoPermission => "this user may not talk to the NVIDIA driver".to_owned(),
            NoGpus::NoDevices => "the NVIDIA driver knows no GPU".to_owned(),
            NoGpus::Failed { why } => format!("the NVIDIA driver does not start ({why})"),
            NoGpus::Silent { waited } => {
                format!("the NVIDIA driver did not start within {} s", waited.as_secs())
            }
            NoGpus::NoThread { why } => format!("there is no thread to talk to the NVIDIA driver ({why})"),
        }
    }

    /// What to do.
    #[must_use]
    pub fn advice(&self) -> &'static str {
        match self {
            NoGpus::NoLibrary { .. } => {
                "if this machine has NVIDIA GPUs, install their driver; in a container, give it the NVIDIA \
                 runtime with the `utility` capability"
            }
            NoGpus::StrangeLibrary { .. } => "name the driver's own libnvidia-ml.so.1, or name none",
            NoGpus::NoDriver => "load it with `modprobe nvidia`, or install it for this kernel and restart",
            NoGpus::VersionMismatch => "reload the driver or restart the machine",
            NoGpus::NoPermission => "give this user access to /dev/nvidiactl, /dev/nvidia0 and the like",
            NoGpus::NoDevices => "look for them with lspci, and at dmesg for NVRM errors",
            NoGpus::Failed { .. } | NoGpus::Silent { .. } => {
                "look at dmesg for NVRM and Xid errors, then reload the driver or restart the machine"
            }
            NoGpus::NoThread { .. } => "raise `ulimit -u`, or the number of tasks of the service",
        }
    }
}

impl fmt::Display for NoGpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.seen(), self.advice())
    }
}

impl Error for NoGpus {}

/// Opens the library: this one, or the one by its usual name.
pub(super) fn open(library: Option<&Path>) -> Result<Nvml, NoGpus> {
    let library = library.unwrap_or(Path::new(DEFAULT_LIBRARY));
    let nvml =
        Nvml::builder().lib_path(OsStr::new(library)).init().map_err(|error| refusal(library, error))?;
    if let Err(missing) = &nvml.lib().nvmlShutdown {
        let why = missing.to_string();
        // It panics when it goes.
        mem::forget(nvml);
        return Err(NoGpus::StrangeLibrary { library: library.to_owned(), why });
    }
    match nvml.device_count() {
        Ok(0) => Err(NoGpus::NoDevices),
        Ok(_) => Ok(nvml),
        Err(error) => Err(refusal(library, error)),
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "NVML has many errors, few of which say what to do")]
fn refusal(library: &Path, error: NvmlError) -> NoGpus {
    match error {
        NvmlError::LibloadingError(error) => NoGpus::NoLibrary { why: error.to_string() },
        NvmlError::FailedToLoadSymbol(why) => NoGpus::StrangeLibrary { library: library.to_owned(), why },
        NvmlError::DriverNotLoaded => NoGpus::NoDriver,
        NvmlError::LibRmVersionMismatch => NoGpus::VersionMismatch,
        NvmlError::NoPermission => NoGpus::NoPermission,
        NvmlError::NotFound => NoGpus::NoDevices,
        other => NoGpus::Failed { why: other.to_string() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_is_not_there_is_named_with_what_to_do() {
        let refusal = open(Some(Path::new("/no/such/library.so"))).unwrap_err().to_string();
        assert!(
            refusal.contains("/no/such/library.so") && refusal.contains("install their driver"),
            "{refusal}"
        );
    }

    #[test]
    fn a_library_of_something_else_is_refused_without_a_panic() {
        let refusal = open(Some(Path::new("libc.so.6"))).unwrap_err();
        assert!(matches!(refusal, NoGpus::StrangeLibrary { .. }), "{refusal}");
    }

    #[test]
    fn every_refusal_of_the_driver_says_what_to_do() {
        let if_reported = |error| refusal(Path::new(DEFAULT_LIBRARY), error).to_string();
        assert!(if_reported(NvmlError::DriverNotLoaded).contains("modprobe nvidia"));
        assert!(
            if_reported(NvmlError::LibRmVersionMismatch).contains("reload the driver or restart the machine")
        );
        assert!(if_reported(NvmlError::NoPermission).contains("/dev/nvidiactl"));
        assert!(if_reported(NvmlError::NotFound).contains("lspci"));
        let failed = if_reported(NvmlError::Unknown);
        assert!(failed.contains("an internal driver error occurred") && failed.contains("dmesg"), "{failed}");
    }
}
