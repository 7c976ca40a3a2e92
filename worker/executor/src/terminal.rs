//! The terminal of a rank: a pseudo-terminal, whose master the executor keeps. So it outlives daemons and
//! clients.
//!
//! What the rank prints there goes to its log, as from a pipe. What clients type comes from the directory
//! `terminal`, with the sizes of their windows.

use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use cohabit_actor::blocking;
use cohabit_host::rank_directory::RankDirectory;
use cohabit_host::terminal::{KeyReader, SIZE_MESSAGE, TypedKeys, size_in};
use cohabit_types::{Bytes, TerminalSize};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{
    InputModes, OptionalActions, Winsize, tcgetattr, tcgetwinsize, tcsetattr, tcsetwinsize,
};
use tokio::io::AsyncWriteExt as _;
use tokio::net::unix::pipe;
use tokio::sync::Notify;

use crate::error_log::log_error;

/// The size of a segment of the log of a terminal, and of a further process.
pub(crate) const TERMINAL_SEGMENT: Bytes = Bytes(1 << 20);

/// The master of a rank's terminal.
pub(crate) struct Terminal {
    master: OwnedFd,
}

impl Terminal {
    /// A new terminal of this size, and its end for the rank, which belongs to the effective user of this
    /// thread.
    ///
    /// # Errors
    /// When this machine has no terminals left.
    pub(crate) fn open(size: TerminalSize) -> io::Result<(Terminal, OwnedFd)> {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&master)?;
        unlockpt(&master)?;
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let slave = ioctl_tiocgptpeer(&master, flags)?;
        let mut modes = tcgetattr(&slave)?;
        // Backspace erases a character, however many bytes that has.
        modes.input_modes |= InputModes::IUTF8;
        tcsetattr(&slave, OptionalActions::Now, &modes)?;
        tcsetwinsize(&slave, winsize(size))?;
        fcntl_setfl(&master, fcntl_getfl(&master)? | OFlags::NONBLOCK)?;
        Ok((Terminal { master }, slave))
    }

    /// What the rank prints.
    ///
    /// # Errors
    /// When this process has too many open files.
    pub(crate) fn output(&self) -> io::Result<TerminalOutput> {
        Ok(TerminalOutput(self.master.try_clone()?))
    }

    /// Types what clients send, until nothing of the rank has the terminal open.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub(crate) async fn type_keys(self, directory: RankDirectory) -> io::Result<()> {
        let pipe = pipe::OpenOptions::new().read_write(true).open_receiver(directory.terminal().sizes())?;
        // Like that of a pipe, its end is written to as far as there is room.
        let keys = pipe::Sender::from_owned_fd_unchecked(self.master.try_clone()?)?;
        let news = TypedNews::default();
        // Sizes are taken while keys wait for the rank to read them.
        tokio::select! {
            ended = take_sizes(&pipe, &self.master, &news) => ended,
            ended = write_keys(&directory, &self.master, keys, &news) => ended,
        }
    }
}

/// What came through the pipe and was not looked at yet.
#[derive(Debug, Default)]
struct TypedNews {
    came: Notify,
    /// Whether the terminal has another size.
    resized: AtomicBool,
}

fn winsize(size: TerminalSize) -> Winsize {
    Winsize { ws_row: size.rows, ws_col: size.columns, ws_xpixel: 0, ws_ypixel: 0 }
}

/// Gives the terminal each size that comes through the pipe, and notifies of keys.
async fn take_sizes(pipe: &pipe::Receiver, master: &OwnedFd, news: &TypedNews) -> io::Result<()> {
    loop {
        pipe.readable().await?;
        let mut message = [0; SIZE_MESSAGE];
        match pipe.try_read(&mut message) {
            Ok(SIZE_MESSAGE) => {
                let size = winsize(size_in(message));
                // A client without a window has none. The kernel signals the rank of another size.
                if size.ws_row > 0 && size.ws_col > 0 && size != tcgetwinsize(master)? {
                    tcsetwinsize(master, size)?;
                    news.resized.store(true, Ordering::Relaxed);
                }
                news.came.notify_one();
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

async fn write_keys(
    directory: &RankDirectory,
    master: &OwnedFd,
    mut typed: pipe::Sender,
    news: &TypedNews,
) -> io::Result<()> {
    let (mut reader, mut is_first) = (KeyReader::default(), true);
    loop {
        let was_resized = news.resized.swap(false, Ordering::Relaxed);
        let terminal = directory.terminal();
        let (back, keys) = blocking(move || {
            let keys = reader.read(&terminal);
            (reader, keys)
        })
        .await;
        reader = back;
        let TypedKeys { bytes, arrived } = keys?;
        // A program that is signalled once more while it reads a key may lose the key: less does.
        if arrived > 0 && !std::mem::take(&mut is_first) && !was_resized {
            redraw(master)?;
        }
        match typed.write_all(&bytes).await {
            // Nothing of the rank has the terminal open.
            Err(error) if error.raw_os_error() == Some(Errno::IO.raw_os_error()) => return Ok(()),
            written => written?,
        }
        if bytes.is_empty() {
            news.came.notified().await;
        }
    }
}

/// Lets a program that fills the screen draw it for a client that has come: it does when the size changes.
fn redraw(master: &OwnedFd) -> io::Result<()> {
    let size = tcgetwinsize(master)?;
    tcsetwinsize(master, Winsize { ws_row: size.ws_row.saturating_sub(1).max(1), ..size })?;
    Ok(tcsetwinsize(master, size)?)
}

/// Types for a rank until it ends.
pub(crate) async fn serve_terminal(terminal: Terminal, directory: RankDirectory) {
    if let Err(error) = terminal.type_keys(directory).await {
        log_error(&format!("the terminal of the rank takes no more keys: {error}"));
    }
}

/// Reads what the rank prints. Waits by itself, for the master does not.
pub(crate) struct TerminalOutput(OwnedFd);

impl Read for TerminalOutput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match rustix::io::read(&self.0, &mut *buffer) {
                Err(Errno::AGAIN) => match poll(&mut [PollFd::new(&self.0.as_fd(), PollFlags::IN)], None) {
                    Ok(_) | Err(Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                },
                // Nothing of the rank has the terminal open.
                Err(Errno::IO) => return Ok(0),
                read => return Ok(read?),
            }
        }
    }
}
