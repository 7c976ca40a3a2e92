//! Progress reports, and checkpoints for the next attempt.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;

/// The progress file that Cohabit names, if any.
pub(crate) struct Progress {
    file: Option<File>,
    total: u64,
}

impl Progress {
    pub(crate) fn open(total: u64) -> io::Result<Progress> {
        let append = |path| File::options().create(true).append(true).open(path);
        let file = std::env::var_os("COHABIT_PROGRESS").map(append).transpose()?;
        Ok(Progress { file, total })
    }

    pub(crate) fn report(&mut self, step: u64) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let loss = 2.0 / (1.0 + step as f64 / 10.0);
        let line = format!("{}\n", serde_json::json!({ "step": step, "total": self.total, "loss": loss }));
        file.write_all(line.as_bytes())
    }
}

/// The step that an earlier attempt reached.
pub(crate) fn last_step() -> u64 {
    let read = checkpoint().and_then(|file| fs::read_to_string(file).ok());
    read.and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

/// Stores the step for the next attempt.
pub(crate) fn keep(step: u64) -> io::Result<()> {
    let file = checkpoint().ok_or_else(|| io::Error::other("COHABIT_CHECKPOINT_DIR is not set"))?;
    let new = file.with_extension("new");
    fs::write(&new, step.to_string())?;
    fs::rename(new, file)
}

fn checkpoint() -> Option<PathBuf> {
    std::env::var_os("COHABIT_CHECKPOINT_DIR").map(|folder| PathBuf::from(folder).join("step"))
}
