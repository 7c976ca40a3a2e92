//! Critical errors of the fake driver. Each is reported once, to the first caller.

use std::fs;
use std::io;

use serde::{Deserialize, Serialize};

use crate::FakeWorld;
use crate::world::{read_json, write_json};

/// A critical error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FakeXid {
    /// UUID of the GPU.
    pub gpu: String,
    /// Its Xid code.
    pub code: u64,
}

impl FakeWorld {
    /// Adds a critical error of a GPU.
    ///
    /// # Errors
    /// When the directory cannot be written.
    pub fn emit_xid(&self, uuid: &str, code: u64) -> io::Result<()> {
        let _locked = self.lock()?;
        let folder = self.root().join("xids");
        let last = numbers(fs::read_dir(&folder)?).max().unwrap_or(0);
        write_json(&folder.join(format!("{}.json", last + 1)), &FakeXid { gpu: uuid.to_owned(), code })
    }

    /// Takes the oldest unreported critical error of these GPUs.
    ///
    /// # Errors
    /// When the directory cannot be read or written.
    pub fn take_xid(&self, uuids: &[String]) -> io::Result<Option<FakeXid>> {
        let folder = self.root().join("xids");
        let _locked = self.lock()?;
        let mut waiting: Vec<u64> = numbers(fs::read_dir(&folder)?).collect();
        waiting.sort_unstable();
        for number in waiting {
            let file = folder.join(format!("{number}.json"));
            if let Some(xid) = read_json::<FakeXid>(&file).filter(|xid| uuids.contains(&xid.gpu)) {
                fs::remove_file(file)?;
                return Ok(Some(xid));
            }
        }
        Ok(None)
    }
}

fn numbers(entries: fs::ReadDir) -> impl Iterator<Item = u64> {
    entries.filter_map(|entry| entry.ok()?.path().file_stem()?.to_str()?.parse().ok())
}
