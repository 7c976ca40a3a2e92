//! The folder of a rank, held open, and in it the files that are its executor's own.
//!
//! What is open stays the same folder, whatever is done to its path: another of that name is never taken for
//! it. And a socket can be named in it however long the path is.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};

use super::{EXECUTOR_LOG, IDENTITY, RankDirectory};
use crate::files::{open_directory, remove_if_exists, within};

const SOCKET: &str = "socket";

/// An open folder of a rank.
#[derive(Debug)]
pub(crate) struct OpenRankDirectory(File);

impl RankDirectory {
    pub(crate) fn open(&self) -> io::Result<OpenRankDirectory> {
        open_directory(self.path()).map(OpenRankDirectory)
    }
}

impl OpenRankDirectory {
    /// A socket for an executor that has none yet. Whoever may write to it commands the executor.
    pub(crate) fn listen(&self) -> io::Result<UnixListener> {
        let socket = within(&self.0, SOCKET);
        remove_if_exists(&socket)?;
        let listener = UnixListener::bind(&socket)?;
        fs::set_permissions(&socket, Permissions::from_mode(0o600))?;
        Ok(listener)
    }

    /// To the executor that holds the rank; refused where there is none any more.
    pub(crate) fn connect(&self) -> io::Result<UnixStream> {
        UnixStream::connect(within(&self.0, SOCKET))
    }

    /// The files of the executor that held this other rank until that ended, and will hold this one, move
    /// here: to make them anew takes far longer. What it had to say of the other rank stays there.
    pub(crate) fn take_executor(&self, from: &OpenRankDirectory) -> io::Result<()> {
        let take = |name| fs::rename(within(&from.0, name), within(&self.0, name));
        take(IDENTITY)?;
        take(SOCKET)?;
        // A job may have put anything in its place.
        let log = fs::symlink_metadata(within(&from.0, EXECUTOR_LOG));
        if log.is_ok_and(|log| log.is_file() && log.len() == 0) {
            // It makes another one where it finds none.
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

    fn rank(ranks: &tempfile::TempDir, job: u64) -> RankDirectory {
        let folder = RankDirectory::of(ranks.path(), JobId::new(job).attempt(1).rank(0));
        fs::create_dir_all(folder.path()).unwrap();
        folder
    }

    #[test]
    fn the_files_of_an_executor_follow_it_and_its_words_stay_with_what_they_are_about() {
        let ranks = tempfile::tempdir().unwrap();
        let [first, second, third] = [1, 2, 3].map(|job| rank(&ranks, job));
        let open = first.open().unwrap();
        let listener = open.listen().unwrap();
        first.write_identity(&ProcessIdentity::own().unwrap()).unwrap();
        fs::write(first.executor_log(), "").unwrap();

        let next = second.open().unwrap();
        next.take_executor(&open).unwrap();
        assert_eq!((first.identity().unwrap(), second.identity().unwrap().is_some()), (None, true));
        assert!(!first.executor_log().exists() && second.executor_log().exists());
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
    fn files_in_another_folder_of_the_same_name_are_not_taken() {
        let ranks = tempfile::tempdir().unwrap();
        let [first, second] = [1, 2].map(|job| rank(&ranks, job));
        let gone = first.open().unwrap();
        fs::remove_dir(first.path()).unwrap();
        let first = rank(&ranks, 1);
        let _listener = first.open().unwrap().listen().unwrap();
        first.write_identity(&ProcessIdentity::own().unwrap()).unwrap();
        assert!(second.open().unwrap().take_executor(&gone).is_err());
        assert!(first.identity().unwrap().is_some());
        first.open().unwrap().connect().unwrap();
    }
}
