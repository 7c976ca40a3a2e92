//! The log files of daemon and server, in the style of NVIDIA's.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::fd::AsFd;
use std::path::PathBuf;

/// A log file; without its directory nothing is logged.
#[derive(Debug)]
pub(crate) struct Log {
    file: Option<File>,
    author: &'static str,
    echo: Echo,
}

/// Whether lines are also printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Echo {
    Silent,
    /// With `-f`.
    Output,
}

impl Log {
    pub(crate) fn open(name: &str, author: &'static str, echo: Echo) -> Log {
        Log { file: file(name), author, echo }
    }

    /// The log that the daemon passed as the output of this process.
    pub(crate) fn inherited(author: &'static str) -> Log {
        let file = std::io::stdout().as_fd().try_clone_to_owned().map(File::from).ok();
        Log { file, author, echo: Echo::Silent }
    }

    pub(crate) fn line(&self, text: &str) {
        let now = jiff::Zoned::now().strftime("%Y-%m-%d %H:%M:%S%.3f").to_string();
        let line = format!("[{now} {} {:>5}] {text}\n", self.author, std::process::id());
        if self.echo == Echo::Output {
            let _ = std::io::stdout().write_all(line.as_bytes());
        }
        // Like the real programs, it continues without its log.
        let _ = self.file.as_ref().map(|mut file| file.write_all(line.as_bytes()));
    }
}

/// The log file of this name, to append to.
pub(crate) fn file(name: &str) -> Option<File> {
    OpenOptions::new().create(true).append(true).open(folder().join(name)).ok()
}

/// `CUDA_MPS_LOG_DIRECTORY`.
pub(crate) fn folder() -> PathBuf {
    std::env::var_os("CUDA_MPS_LOG_DIRECTORY").map_or_else(|| "/var/log/nvidia-mps".into(), PathBuf::from)
}
