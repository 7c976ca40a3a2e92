//! Feeds the rank's standard input from the file to which the daemon appends what clients send.
//!
//! The pipe ends when the file that marks the end is there and all is written, or the rank reads no more. The
//! executor outlives daemons, so the rank never sees an end that its user did not mean.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::fd::OwnedFd;
use std::time::Duration;

use cohabit_actor::blocking;
use cohabit_host::rank_directory::RankDirectory;
use tokio::io::AsyncWriteExt as _;
use tokio::net::unix::pipe::Sender;
use tokio::time::sleep;

use crate::error_log::log_error;

/// How much is read at once.
const PIECE: u64 = 64 << 10;
/// The pauses while there is nothing new: short after something came, since somebody may be typing.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(200);

/// What feeds a rank.
pub(crate) struct InputFeed {
    directory: RankDirectory,
    pipe: OwnedFd,
}

/// What is in the file behind a position.
struct NextInput {
    bytes: Vec<u8>,
    /// Whether nothing follows.
    is_last: bool,
}

impl InputFeed {
    /// The feed, and what the rank reads from.
    ///
    /// # Errors
    /// When there can be no pipe.
    pub(crate) fn new(directory: &RankDirectory) -> io::Result<(InputFeed, OwnedFd)> {
        let (reading, writing) = io::pipe()?;
        Ok((InputFeed { directory: directory.clone(), pipe: writing.into() }, reading.into()))
    }

    /// Feeds until the end, or until the rank reads no more.
    ///
    /// # Errors
    /// When the file cannot be read. The rank then reads an end.
    async fn run(self) -> io::Result<()> {
        let mut pipe = Sender::from_owned_fd(self.pipe)?;
        let (mut position, mut pause) = (0, FIRST_PAUSE);
        loop {
            let directory = self.directory.clone();
            let NextInput { bytes, is_last } = blocking(move || read(&directory, position)).await?;
            match pipe.write_all(&bytes).await {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
                written => written?,
            }
            position += bytes.len() as u64;
            if is_last {
                return Ok(());
            }
            pause = if bytes.is_empty() { (pause * 2).min(LONGEST_PAUSE) } else { FIRST_PAUSE };
            if bytes.is_empty() {
                sleep(pause).await;
            }
        }
    }
}

/// Feeds the standard input of a process.
pub(crate) async fn feed_rank(feed: InputFeed) {
    if let Err(error) = feed.run().await {
        log_error(&format!("the input of the rank ends early: {error}"));
    }
}

fn read(directory: &RankDirectory, position: u64) -> io::Result<NextInput> {
    // Looked for first: what comes before the mark is in the file then.
    let is_ended = directory.input_end().try_exists()?;
    let mut bytes = Vec::new();
    match File::open(directory.input()) {
        Ok(mut file) => {
            file.seek(SeekFrom::Start(position))?;
            file.take(PIECE).read_to_end(&mut bytes)?;
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let is_last = is_ended && (bytes.len() as u64) < PIECE;
    Ok(NextInput { bytes, is_last })
}
