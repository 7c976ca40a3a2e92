//! An open directory of a rank, and the executor's own files in it.
//!
//! An open directory stays the same one whatever happens to its path, so another directory of that name is
//! never mistaken for it. And sockets in it have short names, however long the path is.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};

use super::{BELL, EXECUTOR_LOG, IDENTITY, RankDirectory};
use crate::files::{open_directory, path_within, remove_if_exists};

pub(crate) const SOCKET: &str = "socket";

/// An open directory of a rank.
#[derive(Debug)]
pub struct OpenRankDirectory(File);

impl RankDirectory {
    pub fn open(&self) -> io::Result<OpenRankDirectory> {
        open_directory(self.path()).map(OpenRankDirectory)
    }
}

impl OpenRankDirectory {
    /// Creates the socket of an executor. Whoever can write to it commands the executor.
    pub fn listen(&self) -> io::Result<UnixListener> {
        let socket = path_within(&self.0, SOCKET);
        remove_if_exists(&socket)?;
        let listener = UnixListener::bind(&socket)?;
        fs::set_permissions(&socket, Permissions::from_mode(0o600))?;
        Ok(listener)
    }

    /// Connects to the executor of the rank; refused where it is gone.
    pub fn connect(&self) -> io::Result<UnixStream> {
        UnixStream::connect(path_within(&self.0, SOCKET))
    }

    /// Moves the files of an executor here from the directory of its last rank, which is much faster than
    /// creating them again. Messages about the last rank stay there.
    pub fn take_executor(&self, from: &OpenRankDirectory) -> io::Result<()> {
        let take = |name| fs::rename(path_within(&from.0, name), path_within(&self.0, name));
        take(IDENTITY)?;
        take(SOCKET)?;
        // Without it the executor is asked for no further processes; the job may have removed it.
        let _ = take(BELL);
        // The job may have replaced it by anything.
        let log = fs::symlink_metadata(path_within(&from.0, EXECUTOR_LOG));
        if log.is_ok_and(|log| log.is_file() && log.len() == 0) {
            // The executor creates another one where it finds none.
            let _ = take(EXECUTOR_LOG);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use cohabit_types::JobId;

    use super::*;
    use crate::process::ProcessIdentity;
    use crate::records::ExecutorRecord;

    fn rank(ranks: &tempfile::TempDir, job: u64) -> RankDirectory {
        let folder = RankDirectory::for_rank(ranks.path(), JobId::new(job).attempt(1).rank(0));
        fs::create_dir_all(folder.path()).unwrap();
        folder
    }

    fn own() -> ExecutorRecord {
        ExecutorRecord { process: ProcessIdentity::own().unwrap(), watchdog: None }
    }

    #[test]
    fn the_files_of_an_executor_move_with_it_and_its_messages_stay_with_their_rank() {
        let ranks = tempfile::tempdir().unwrap();
        let [first, second, third] = [1, 2, 3].map(|job| rank(&ranks, job));
        let open = first.open().unwrap();
        let listener = open.listen().unwrap();
        first.write_identity(&own()).unwrap();
        fs::write(first.executor_log(), "").unwrap();
        first.create_bell().unwrap();

        let next = second.open().unwrap();
        next.take_executor(&open).unwrap();
        assert_eq!((first.identity().unwrap(), second.identity().unwrap().is_some()), (None, true));
        assert!(!first.executor_log().exists() && second.executor_log().exists());
        assert!(!first.path().join(BELL).exists() && second.path().join(BELL).exists());
        assert!(first.open().unwrap().connect().is_err());
        second.open().unwrap().connect().unwrap();
        listener.accept().unwrap();

        fs::write(second.executor_log(), "a command makes no sense\n").unwrap();
        let last = third.open().unwrap();
        last.take_executor(&next).unwrap();
        assert!(second.executor_log().exists() && !third.executor_log().exists());

        nix::unistd::mkfifo(&third.executor_log(), nix::sys::stat::Mode::S_IRWXU).unwrap();
        next.take_executor(&last).unwrap();
        assert!(third.executor_log().exists());
    }

    /// The rank of an executor that waits was acknowledged, removed, and came again, to another executor.
    #[test]
    fn files_in_another_directory_of_the_same_name_are_not_taken() {
        let ranks = tempfile::tempdir().unwrap();
        let [first, second] = [1, 2].map(|job| rank(&ranks, job));
        let gone = first.open().unwrap();
        fs::remove_dir(first.path()).unwrap();
        let first = rank(&ranks, 1);
        let _listener = first.open().unwrap().listen().unwrap();
        first.write_identity(&own()).unwrap();
        assert!(second.open().unwrap().take_executor(&gone).is_err());
        assert!(first.identity().unwrap().is_some());
        first.open().unwrap().connect().unwrap();
    }
}
