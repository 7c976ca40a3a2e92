//! Reads files of a job for a copy: a process of its own, with the rights of the job's account.
//!
//! A path that a user chose may take for ever to follow, and may lead anywhere. This process can be killed,
//! and can be led nowhere that its user could not go. It knows its task from its standard input, and writes
//! what it reads to its standard output, as far ahead as a pipe holds.

use std::fs::File;
use std::io::{self, BufWriter, Read as _, stdin, stdout};
use std::os::fd::AsFd as _;
use std::process::ExitCode;

use cohabit_host::copy_task::{CopyTask, LONGEST_COPY_TASK};
use cohabit_transfer::send;
use nix::fcntl::{FcntlArg, fcntl};

/// What the pipe holds, where the kernel allows it.
const PIPE_BYTES: i32 = 1 << 20;

/// What is written at once.
const WRITTEN_BYTES: usize = 128 << 10;

/// Does the task on the standard input. Must be the first call in a process of its own. The exit code says
/// whether the reason is told in the output, too.
#[must_use]
pub fn copy_reader() -> ExitCode {
    match read() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn read() -> io::Result<()> {
    let mut text = Vec::new();
    stdin().lock().take(LONGEST_COPY_TASK).read_to_end(&mut text)?;
    let CopyTask { reader, transfer } = serde_json::from_slice(&text)?;
    if let Some(reader) = reader {
        reader.assume()?;
    }
    let output = File::from(stdout().as_fd().try_clone_to_owned()?);
    // A smaller one is as good.
    let _ = fcntl(&output, FcntlArg::F_SETPIPE_SZ(PIPE_BYTES));
    send(&transfer, BufWriter::with_capacity(WRITTEN_BYTES, output))
}
