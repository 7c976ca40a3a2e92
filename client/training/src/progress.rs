//! Progress reports: one JSON line per step, at most ten per second, and always the last one.
//!
//! The path in `$COHABIT_PROGRESS` may be a file or a FIFO. Reporting never delays or stops the training: the
//! path is opened without blocking, and a line that does not fit into a full pipe is dropped.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::fcntl::OFlag;
use serde::Serialize;

const VARIABLE: &str = "COHABIT_PROGRESS";
const SHORTEST_INTERVAL: Duration = Duration::from_millis(100);

/// One line: `{"step":120,"total":1000,"loss":0.41}`. Additional keys would be metrics.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct ProgressLine {
    /// Number of steps done.
    pub(crate) step: u64,
    /// Total number of steps.
    pub(crate) total: u64,
    /// The loss of the step.
    pub(crate) loss: f32,
}

/// Writes progress lines to a file or FIFO; the default writes nothing.
#[derive(Debug, Default)]
pub(crate) struct ProgressReporter {
    file: Option<File>,
    written_at: Option<Instant>,
}

impl ProgressReporter {
    /// Opens the path in `$COHABIT_PROGRESS`; without one, nothing is reported.
    pub(crate) fn from_environment() -> io::Result<Self> {
        match std::env::var_os(VARIABLE).filter(|path| !path.is_empty()) {
            Some(path) => Self::open(path.as_ref()),
            None => Ok(Self::default()),
        }
    }

    /// Opens a file or FIFO for appending. It is opened for reading as well, because Linux then opens a FIFO
    /// immediately, even if it has no reader yet.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .custom_flags(OFlag::O_NONBLOCK.bits())
            .open(path)
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
        Ok(Self { file: Some(file), written_at: None })
    }

    /// Writes the line with a single write, unless the previous one was written less than 0.1 s ago.
    pub(crate) fn report(&mut self, line: ProgressLine) {
        let too_soon = self.written_at.is_some_and(|written_at| written_at.elapsed() < SHORTEST_INTERVAL);
        if too_soon && line.step < line.total {
            return;
        }
        let (Some(file), Ok(mut text)) = (&mut self.file, serde_json::to_vec(&line)) else { return };
        text.push(b'\n');
        let _ = file.write(&text);
        self.written_at = Some(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    const TOTAL: u64 = 1000;

    fn report_all(path: &Path) {
        let mut reporter = ProgressReporter::open(path).unwrap();
        (1..=TOTAL).for_each(|step| reporter.report(ProgressLine { step, total: TOTAL, loss: 0.5 }));
    }

    #[test]
    fn lines_are_appended_and_throttled_except_for_the_last() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("progress");
        std::fs::write(&path, "before\n").unwrap();
        let started_at = Instant::now();
        report_all(&path);
        let most = 3 + started_at.elapsed().as_millis() / SHORTEST_INTERVAL.as_millis();
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[..2], ["before", r#"{"step":1,"total":1000,"loss":0.5}"#]);
        assert_eq!(lines.last(), Some(&r#"{"step":1000,"total":1000,"loss":0.5}"#));
        assert!(lines.len() as u128 <= most, "{} lines", lines.len());
    }

    #[test]
    fn a_fifo_without_a_reader_does_not_block() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fifo");
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let mut reporter = ProgressReporter::open(&path).unwrap();
        reporter.report(ProgressLine { step: 1, total: 1, loss: 0.25 });
        let mut text = [0; 64];
        let length = File::open(&path).unwrap().read(&mut text).unwrap();
        assert_eq!(&text[..length], b"{\"step\":1,\"total\":1,\"loss\":0.25}\n");
    }

    #[test]
    fn the_error_of_a_bad_path_names_it() {
        let error = ProgressReporter::open(Path::new("/no/such/folder/progress")).unwrap_err();
        assert!(error.to_string().contains("/no/such/folder/progress"), "{error}");
    }
}
