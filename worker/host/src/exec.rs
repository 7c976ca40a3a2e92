//! The further processes of a rank: what daemon and executor tell each other about them.
//!
//! ```text
//! <number>/       of the process with this number:
//!   request.json  what to start; written by the daemon
//!   wanted        up to where its output was read; written by the daemon each time that its client asks for
//! more
//!   end           its client wants no more of it
//!   outcome.json  how it ended, and as in the directory of a rank: input, terminal/, log/
//! ```
//!
//! The daemon creates the directory with the first request, and rings the executor's bell: a named pipe,
//! one of the executor's own files, which moves with it from rank to rank. The executor removes the
//! directory, and that of each process. One of an earlier release has its bell in this directory, which it
//! has created.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use cohabit_types::{ExecRequest, MOST_EXECS};
use nix::errno::Errno;
use nix::libc::{O_NOFOLLOW, O_NONBLOCK};

use crate::rank_directory::{BELL, RankDirectory};

const REQUEST: &str = "request.json";
const WANTED: &str = "wanted";
const END: &str = "end";

/// The directory of all of them.
#[derive(Debug, Clone)]
pub struct ExecsDirectory {
    path: PathBuf,
    /// That of the executor of this rank.
    bell: PathBuf,
}

/// The directory of one.
#[derive(Debug, Clone)]
pub struct ExecDirectory(PathBuf);

/// Why none was started.
#[derive(Debug, thiserror::Error)]
pub enum ExecRefusal {
    #[error("{MOST_EXECS} further processes are there already: end one of them")]
    TooMany,
    #[error(transparent)]
    Disk(#[from] io::Error),
}

impl ExecsDirectory {
    /// Those of this rank.
    #[must_use]
    pub fn of(rank: &RankDirectory) -> ExecsDirectory {
        ExecsDirectory { path: rank.path().join("exec"), bell: rank.path().join(BELL) }
    }

    /// Removes the directory. Blocks.
    ///
    /// # Errors
    /// When that fails; it need not be there.
    pub fn remove(&self) -> io::Result<()> {
        remove(&self.path)
    }

    /// The directory of the process with this number.
    #[must_use]
    pub fn process(&self, number: u64) -> ExecDirectory {
        ExecDirectory(self.path.join(format!("{number:016x}")))
    }

    /// Asks the executor to start a process; does nothing the second time. Blocks.
    ///
    /// # Errors
    /// `NotFound` if the rank does not run, or takes no further processes.
    pub fn request(&self, request: &ExecRequest) -> Result<(), ExecRefusal> {
        let mut bell = self.open_bell()?;
        match DirBuilder::new().mode(0o700).create(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            created => created?,
        }
        let lock = File::open(&self.path)?;
        lock.lock()?;
        let directory = self.process(request.id.number);
        if directory.0.exists() {
            return Ok(());
        }
        if self.all()?.len() >= MOST_EXECS {
            return Err(ExecRefusal::TooMany);
        }
        DirBuilder::new().mode(0o700).create(&directory.0)?;
        directory.want(0)?;
        let text = serde_json::to_vec(request).map_err(io::Error::other)?;
        // The executor sees it whole or not at all.
        let new = directory.0.join("request.new");
        private(&new)?.write_all(&text)?;
        fs::rename(new, directory.0.join(REQUEST))?;
        // A full pipe is read sometime.
        let _ = bell.write_all(&[1]);
        Ok(())
    }

    /// # Errors
    /// `NotFound` if there is no executor that reads it.
    fn open_bell(&self) -> io::Result<File> {
        let open = |path: &Path| {
            let opened = OpenOptions::new().write(true).custom_flags(O_NONBLOCK | O_NOFOLLOW).open(path);
            opened.map_err(|error| match error.raw_os_error() == Some(Errno::ENXIO as i32) {
                true => io::ErrorKind::NotFound.into(),
                false => error,
            })
        };
        open(&self.bell).or_else(|_absent| open(&self.path.join(BELL)))
    }

    /// Those that there are. Blocks.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn all(&self) -> io::Result<Vec<ExecDirectory>> {
        let mut found = Vec::new();
        let entries = match fs::read_dir(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                found.push(ExecDirectory(entry.path()));
            }
        }
        Ok(found)
    }
}

impl ExecDirectory {
    /// The files that it has in common with a rank.
    #[must_use]
    pub fn as_rank(&self) -> RankDirectory {
        RankDirectory::new(&self.0)
    }

    /// What is to be started, until it is taken. Blocks.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn take_request(&self) -> io::Result<Option<ExecRequest>> {
        let path = self.0.join(REQUEST);
        let text = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text?,
        };
        fs::remove_file(path)?;
        Ok(Some(serde_json::from_slice(&text)?))
    }

    /// Notes that its client is there, and has read so many bytes of its output. Blocks.
    ///
    /// # Errors
    /// `NotFound` if there is no such process any more.
    pub fn want(&self, read: u64) -> io::Result<()> {
        private(&self.0.join(WANTED))?.write_all(&read.to_le_bytes())
    }

    /// How many bytes of its output were read, and how long ago its client was there. Blocks.
    #[must_use]
    pub fn wanted(&self) -> Option<(u64, Duration)> {
        let path = self.0.join(WANTED);
        let read = fs::read(&path).ok()?.try_into().ok().map(u64::from_le_bytes)?;
        let at = fs::metadata(&path).and_then(|found| found.modified()).ok()?;
        Some((read, at.elapsed().unwrap_or_default()))
    }

    /// Notes that nobody wants more of it. Blocks.
    ///
    /// # Errors
    /// `NotFound` if there is no such process any more.
    pub fn end(&self) -> io::Result<()> {
        private(&self.0.join(END)).map(drop)
    }

    /// Whether nobody wants more of it. Blocks.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.0.join(END).exists()
    }

    /// Removes it. Blocks.
    ///
    /// # Errors
    /// When that fails; it need not be there.
    pub fn remove(&self) -> io::Result<()> {
        remove(&self.0)
    }
}

/// Only the user of executor and daemon reads it.
fn private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600).custom_flags(O_NOFOLLOW).open(path)
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::Read as _;

    use cohabit_types::{ExecId, JobId};

    use super::*;

    fn directory() -> (tempfile::TempDir, File, ExecsDirectory) {
        let folder = tempfile::tempdir().unwrap();
        let rank = RankDirectory::new(folder.path());
        let bell = hear(&rank.create_bell().unwrap());
        (folder, bell, ExecsDirectory::of(&rank))
    }

    /// The end of a bell from which an executor reads.
    fn hear(bell: &Path) -> File {
        OpenOptions::new().read(true).write(true).open(bell).unwrap()
    }

    fn request(number: u64) -> ExecRequest {
        let id = ExecId { rank: JobId::new(1).attempt(1).rank(0), number };
        ExecRequest { id, argv: vec!["env".into()], environment: BTreeMap::new(), terminal: None }
    }

    #[test]
    fn a_request_is_taken_once_however_often_it_is_made() {
        let (_folder, _bell, directory) = directory();
        directory.request(&request(7)).unwrap();
        directory.request(&request(7)).unwrap();
        assert_eq!(directory.all().unwrap().len(), 1);
        let process = directory.process(7);
        assert_eq!(process.take_request().unwrap(), Some(request(7)));
        directory.request(&request(7)).unwrap();
        assert_eq!(process.take_request().unwrap(), None, "it was started already");
    }

    #[test]
    fn there_are_few_at_once_and_room_for_another_when_one_is_gone() {
        let (_folder, _bell, directory) = directory();
        for number in 0..MOST_EXECS as u64 {
            directory.request(&request(number)).unwrap();
        }
        assert!(matches!(directory.request(&request(99)), Err(ExecRefusal::TooMany)));
        directory.process(3).remove().unwrap();
        directory.request(&request(99)).unwrap();
    }

    #[test]
    fn what_is_wanted_is_known_until_the_directory_is_gone() {
        let (_folder, _bell, directory) = directory();
        directory.request(&request(1)).unwrap();
        let process = directory.process(1);
        assert_eq!(process.wanted().map(|(read, _)| read), Some(0));
        process.want(1 << 40).unwrap();
        assert_eq!(process.wanted().map(|(read, _)| read), Some(1 << 40));
        assert!(!process.is_ended());
        process.end().unwrap();
        assert!(process.is_ended());
        process.remove().unwrap();
        assert_eq!(process.want(5).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(process.end().unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_rank_without_an_executor_that_listens_takes_none() {
        let folder = tempfile::tempdir().unwrap();
        let rank = RankDirectory::new(folder.path());
        let directory = ExecsDirectory::of(&rank);
        let is_refused = || match directory.request(&request(1)) {
            Err(ExecRefusal::Disk(error)) => error.kind() == io::ErrorKind::NotFound,
            Err(ExecRefusal::TooMany) | Ok(()) => false,
        };
        assert!(is_refused() && directory.all().unwrap().is_empty());
        rank.create_bell().unwrap();
        assert!(is_refused() && directory.all().unwrap().is_empty(), "its executor is gone");
    }

    #[test]
    fn the_executor_hears_of_each_request() {
        let (_folder, mut bell, directory) = directory();
        directory.request(&request(1)).unwrap();
        directory.request(&request(2)).unwrap();
        bell.read_exact(&mut [0; 2]).unwrap();
    }

    /// It has made the directory, and the bell in it.
    #[test]
    fn an_executor_of_an_earlier_release_hears_of_a_request() {
        let folder = tempfile::tempdir().unwrap();
        let rank = RankDirectory::new(folder.path());
        let directory = ExecsDirectory::of(&rank);
        fs::create_dir(&directory.path).unwrap();
        let mut bell = hear(&RankDirectory::new(&directory.path).create_bell().unwrap());
        directory.request(&request(1)).unwrap();
        bell.read_exact(&mut [0; 1]).unwrap();
        assert_eq!(directory.all().unwrap().len(), 1);
    }
}
