//! What stays of an ended rank whose end the head knows: its output, its metrics and the messages of its
//! executor, if there are any, and the outcome, by whose time they are kept. Of a rank without them nothing
//! stays.
//!
//! A job may have put anything into the directory: everything else is removed, and symbolic links with it.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use cohabit_types::Bytes;

use crate::files::{open_directory, path_within, remove_directory, remove_if_exists};
use crate::rank_directory::{
    ACKNOWLEDGED, BELL, EXECUTOR_LOG, IDENTITY, LOG, PROGRESS, RankDirectory, SERIES, SOCKET, START,
};
use crate::records::ExecutorRecord;

/// The size of a block in the metadata of files, on every file system.
const BLOCK: u64 = 512;

/// The most that may stay on the disk for a while after the end of a rank, though it is not kept.
const MOST_REMOVABLE: u64 = 64 << 10;

/// What the directory of an ended rank holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remains {
    /// Nothing that anybody may want to read.
    Nothing,
    /// Output, metrics, or messages of its executor.
    Output,
    /// Only the files of its executor, which may take another rank with them.
    Executor,
}

impl RankDirectory {
    /// What an ended rank has left.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn remains(&self) -> io::Result<Remains> {
        let folder = open_directory(self.path())?;
        let has_output = metadata_in(&folder, LOG)?.is_some_and(|log| log.is_dir());
        let has_series = metadata_in(&folder, SERIES)?.is_some_and(|series| series.is_file());
        let has_messages = metadata_in(&folder, EXECUTOR_LOG)?.is_some_and(|log| holds_messages(&log));
        Ok(match has_output || has_series || has_messages {
            true => Remains::Output,
            false if self.holds_executor(&folder)? => Remains::Executor,
            false => Remains::Nothing,
        })
    }

    /// Whether its executor lives and has taken no other rank. One that takes its files along at this moment,
    /// the record of its process first, is replaced by another if it does not find its socket.
    fn holds_executor(&self, folder: &File) -> io::Result<bool> {
        let is_alive = |executor: ExecutorRecord| executor.process.is_alive();
        Ok(metadata_in(folder, SOCKET)?.is_some() && self.identity().ok().flatten().is_some_and(is_alive))
    }

    /// Removes all but what may be read later, and the files of an executor that lives. Returns how much of
    /// the disk that takes.
    ///
    /// # Errors
    /// When something cannot be removed.
    pub fn reduce(&self) -> io::Result<Bytes> {
        let folder = open_directory(self.path())?;
        // First: a directory without it is never taken for that of a rank that was lost.
        remove_if_exists(&path_within(&folder, START))?;
        let of_executor =
            if self.holds_executor(&folder)? { &[SOCKET, IDENTITY, BELL, EXECUTOR_LOG][..] } else { &[] };
        let mut size = size(&folder.metadata()?);
        for entry in fs::read_dir(path_within(&folder, ""))? {
            let (name, path) = entry.map(|entry| (entry.file_name(), entry.path()))?;
            let found = fs::symlink_metadata(&path)?;
            size += match name.to_str() {
                Some(LOG) if found.is_dir() => reduce_log(&path)?,
                Some(name) if of_executor.contains(&name) => self::size(&found),
                Some(ACKNOWLEDGED | SERIES) if found.is_file() => self::size(&found),
                Some(EXECUTOR_LOG) if holds_messages(&found) => self::size(&found),
                Some(_) | None => remove(&path, &found)?,
            };
        }
        Ok(Bytes(size))
    }

    /// How much of the disk the directory takes, if [`RankDirectory::reduce`] would remove only small files
    /// of the worker and its executor. `None` if it would remove anything else.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn size_if_nearly_reduced(&self) -> io::Result<Option<Bytes>> {
        let folder = open_directory(self.path())?;
        let (mut kept, mut removable) = (size(&folder.metadata()?), 0);
        for entry in fs::read_dir(path_within(&folder, ""))? {
            let entry = entry?;
            let found = entry.metadata()?;
            match entry.file_name().to_str() {
                Some(LOG) if found.is_dir() => match size_of_segments(&entry.path())? {
                    Some(segments) => kept += segments,
                    None => return Ok(None),
                },
                Some(ACKNOWLEDGED | SERIES) if found.is_file() => kept += size(&found),
                Some(START | PROGRESS | EXECUTOR_LOG | IDENTITY | SOCKET | BELL) if !found.is_dir() => {
                    removable += size(&found);
                }
                Some(_) | None => return Ok(None),
            }
        }
        Ok((removable <= MOST_REMOVABLE).then_some(Bytes(kept + removable)))
    }

    /// Removes the directory. Whoever reads the output meanwhile can tell: [`RankDirectory::is_over`] is
    /// false before any of it is gone.
    ///
    /// # Errors
    /// When something cannot be removed.
    pub fn remove(&self) -> io::Result<()> {
        let folder = open_directory(self.path())?;
        remove_if_exists(&path_within(&folder, START))?;
        remove_if_exists(&path_within(&folder, ACKNOWLEDGED))?;
        match fs::remove_dir(self.path()) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => remove_directory(self.path()),
            removed => removed,
        }
    }
}

fn metadata_in(folder: &File, name: &str) -> io::Result<Option<Metadata>> {
    match fs::symlink_metadata(path_within(folder, name)) {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn holds_messages(executor_log: &Metadata) -> bool {
    executor_log.is_file() && executor_log.len() > 0
}

fn size(file: &Metadata) -> u64 {
    file.blocks() * BLOCK
}

/// Keeps the segments. There are no directories in a log.
fn reduce_log(log: &Path) -> io::Result<u64> {
    let folder = open_directory(log)?;
    let mut size = size(&folder.metadata()?);
    for entry in fs::read_dir(path_within(&folder, ""))? {
        let path = entry?.path();
        let found = fs::symlink_metadata(&path)?;
        size += if found.is_file() { self::size(&found) } else { remove(&path, &found)? };
    }
    Ok(size)
}

/// The size of a log with its segments; `None` if there is anything else.
fn size_of_segments(log: &Path) -> io::Result<Option<u64>> {
    let folder = open_directory(log)?;
    let mut size = size(&folder.metadata()?);
    for entry in fs::read_dir(path_within(&folder, ""))? {
        let found = entry?.metadata()?;
        if !found.is_file() {
            return Ok(None);
        }
        size += self::size(&found);
    }
    Ok(Some(size))
}

/// Removes this. Returns its size after that.
fn remove(path: &Path, found: &Metadata) -> io::Result<u64> {
    let removed = if found.is_dir() { remove_directory(path) } else { fs::remove_file(path) };
    removed.map(|()| 0)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use cohabit_types::JobId;

    use super::*;
    use crate::process::ProcessIdentity;

    /// The directory of an ended rank, as versions to 0.2 left it.
    fn ended(ranks: &tempfile::TempDir) -> RankDirectory {
        let rank = RankDirectory::for_rank(ranks.path(), JobId::new(1).attempt(1).rank(0));
        fs::create_dir_all(rank.path()).unwrap();
        for name in ["start.json", "acknowledged.json", "script", "executor.log"] {
            fs::write(rank.path().join(name), if name == "executor.log" { "" } else { "{}" }).unwrap();
        }
        rank
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_rank_without_output_leaves_nothing() {
        let ranks = tempfile::tempdir().unwrap();
        let rank = ended(&ranks);
        fs::create_dir_all(rank.path().join("deep/er")).unwrap();
        assert_eq!(rank.remains().unwrap(), Remains::Nothing);
        rank.remove().unwrap();
        assert!(!rank.path().exists());
    }

    #[test]
    fn output_and_messages_stay_with_the_outcome_and_everything_else_goes() {
        let ranks = tempfile::tempdir().unwrap();
        let rank = ended(&ranks);
        let precious = ranks.path().join("precious");
        fs::create_dir_all(rank.log().join("planted")).unwrap();
        fs::create_dir_all(precious.join("thesis")).unwrap();
        fs::write(rank.log().join("00000000000000000000"), vec![1; 100_000]).unwrap();
        fs::write(rank.path().join("huge"), vec![1; 1_000_000]).unwrap();
        fs::write(rank.executor_log(), "it was lost\n").unwrap();
        symlink(&precious, rank.path().join("link")).unwrap();
        symlink(&precious, rank.log().join("link")).unwrap();
        assert_eq!(rank.remains().unwrap(), Remains::Output);
        let size = rank.reduce().unwrap().0;
        assert!((100_000..500_000).contains(&size), "{size}");
        assert_eq!(names(rank.path()), ["acknowledged.json", "executor.log", "log"]);
        assert_eq!(names(&rank.log()), ["00000000000000000000"]);
        assert!(rank.is_acknowledged() && precious.join("thesis").exists());
        assert_eq!(rank.reduce().unwrap().0, size, "the second time nothing changes");
        fs::remove_dir_all(rank.log()).unwrap();
        assert_eq!(rank.remains().unwrap(), Remains::Output, "its executor had something to say");
    }

    #[test]
    fn a_directory_is_nearly_reduced_if_it_holds_only_small_files_of_the_worker_besides() {
        let usual = |change: &dyn Fn(&RankDirectory)| {
            let ranks = tempfile::tempdir().unwrap();
            let rank = ended(&ranks);
            fs::remove_file(rank.path().join("script")).unwrap();
            fs::create_dir(rank.log()).unwrap();
            fs::write(rank.log().join("00000000000000000000"), vec![1; 100_000]).unwrap();
            change(&rank);
            let before = rank.size_if_nearly_reduced().unwrap();
            (before, rank.reduce().unwrap())
        };
        let (before, after) = usual(&|_| {});
        assert!((after.0..after.0 + MOST_REMOVABLE).contains(&before.unwrap().0), "{before:?} {after:?}");
        let write = |name: &'static str, bytes: usize| {
            move |rank: &RankDirectory| fs::write(rank.path().join(name), vec![1; bytes]).unwrap()
        };
        let make = |name: &'static str| {
            move |rank: &RankDirectory| {
                let _ = fs::remove_file(rank.path().join(name));
                fs::create_dir(rank.path().join(name)).unwrap();
            }
        };
        let changes: [&dyn Fn(&RankDirectory); 6] = [
            &write("unknown", 1),
            &write("start.json", 1_000_000),
            &write("progress", 1_000_000),
            &make("socket"),
            &make("series"),
            &make("log/planted"),
        ];
        for (number, change) in changes.into_iter().enumerate() {
            assert_eq!(usual(change).0, None, "change {number}");
        }
    }

    #[test]
    fn the_files_of_an_executor_that_lives_are_left_alone() {
        let ranks = tempfile::tempdir().unwrap();
        let rank = ended(&ranks);
        let _listener = rank.open().unwrap().listen().unwrap();
        let mut executor = ExecutorRecord { process: ProcessIdentity::own().unwrap(), watchdog: None };
        rank.write_identity(&executor).unwrap();
        assert_eq!(rank.remains().unwrap(), Remains::Executor);
        fs::create_dir(rank.log()).unwrap();
        assert_eq!(rank.remains().unwrap(), Remains::Output);
        rank.reduce().unwrap();
        assert_eq!(
            names(rank.path()),
            ["acknowledged.json", "executor.json", "executor.log", "log", "socket"]
        );
        fs::remove_dir(rank.log()).unwrap();
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        executor.process = ProcessIdentity::of(child.id().cast_signed()).unwrap();
        child.kill().and_then(|()| child.wait()).unwrap();
        rank.write_identity(&executor).unwrap();
        assert_eq!(rank.remains().unwrap(), Remains::Nothing);
    }

    #[test]
    fn a_link_in_place_of_the_directory_is_not_followed() {
        let ranks = tempfile::tempdir().unwrap();
        let rank = ended(&ranks);
        let moved = ranks.path().join("moved");
        fs::rename(rank.path(), &moved).unwrap();
        symlink(&moved, rank.path()).unwrap();
        assert!(rank.remains().is_err() && rank.reduce().is_err() && rank.remove().is_err());
        assert_eq!(names(&moved).len(), 4);
    }
}
