//! The files that a job's output is written to besides its log, as with `sbatch --output`.
//!
//! They are opened with the permissions of the rank's user, see [`open`]. A descriptor that is open keeps the
//! credentials of its opener where the file system asks for them; the few that ask the writer instead are
//! those of the kernel, such as `/proc`, and are refused.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use cohabit_host::records::StartRecord;
use cohabit_types::{OutputFiles, StartFailure};
use nix::libc::O_NONBLOCK;
use nix::sys::stat::major;
use nix::sys::statfs::{FsType, fstatfs};
use nix::unistd::gethostname;

/// The magic numbers of file systems whose files are switches of the kernel: proc, sysfs, cgroup, cgroup2,
/// debugfs, tracefs, securityfs, configfs, bpf, selinuxfs, efivarfs, fusectl, pstore.
const KERNEL_FILE_SYSTEMS: [i64; 13] = [
    0x9fa0,
    0x6265_6572,
    0x0027_e0eb,
    0x6367_7270,
    0x6462_6720,
    0x7472_6163,
    0x7363_6673,
    0x6265_6570,
    0xcafe_4a11,
    0xf97c_ff8c,
    0xde5e_81e4,
    0x6573_5543,
    0x6165_676c,
];

/// The most digits that `%9j` pads a number to.
const MOST_DIGITS: usize = 10;

/// The major number of `/dev/null`, `/dev/zero` and `/dev/full`.
const MEMORY_DEVICES: u64 = 1;

/// The files of one rank, open.
#[derive(Default)]
pub(crate) struct OpenOutput {
    pub(crate) stdout: Option<File>,
    pub(crate) stderr: Option<File>,
}

/// Opens the files of this rank, with the identity of this thread: empties them for the first attempt, and
/// appends for a later one.
///
/// # Errors
/// Why one cannot be opened, for the rank's user.
pub(crate) fn open(start: &StartRecord) -> Result<OpenOutput, StartFailure> {
    let path = |pattern: &Option<String>| Some(expand(pattern.as_ref()?, start));
    let files = of_rank(start);
    let (stdout, stderr) = (path(&files.stdout), path(&files.stderr));
    let open = |path: &String| open_file(Path::new(path), start.rank.rank.attempt.attempt == 1);
    let out = stdout.as_ref().map(open).transpose()?.flatten();
    let err = match &stderr {
        Some(other) if stdout.as_ref() != Some(other) => open(other)?,
        Some(_) | None => {
            out.as_ref().map(File::try_clone).transpose().map_err(|error| failure("it", &error))?
        }
    };
    Ok(OpenOutput { stdout: out, stderr: err })
}

/// The files that this rank writes: only the first rank does, unless the paths differ between ranks or nodes.
fn of_rank(start: &StartRecord) -> OutputFiles {
    let spec = &start.rank.spec.output;
    let variable = |name: &str| start.environment.get(name).map_or("0", String::as_str);
    let is_first_of_node = ["LOCAL_RANK", "SLURM_LOCALID"].iter().all(|name| variable(name) == "0");
    let writes = |pattern: &&String| {
        let has = |letters: &[char]| {
            pieces(pattern)
                .iter()
                .any(|piece| matches!(piece, Piece::Pattern { letter, .. } if letters.contains(letter)))
        };
        start.rank.rank.rank == 0 || has(&['t']) || is_first_of_node && has(&['n', 'N'])
    };
    let kept = |pattern: &Option<String>| pattern.as_ref().filter(writes).cloned();
    OutputFiles { stdout: kept(&spec.stdout), stderr: kept(&spec.stderr) }
}

/// A part of a path as written.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece<'a> {
    Text(&'a str),
    /// `%4j`: with as many digits as are wanted.
    Pattern {
        whole: &'a str,
        width: usize,
        letter: char,
    },
}

fn pieces(pattern: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = pattern;
    while let Some(at) = rest.find('%') {
        let digits = rest[at + 1..].bytes().take_while(u8::is_ascii_digit).count();
        let end = at + 1 + digits;
        pieces.push(Piece::Text(&rest[..at]));
        let Some(letter) = rest[end..].chars().next() else {
            rest = &rest[at..];
            break;
        };
        let width = rest[at + 1..end].parse().unwrap_or(0).min(MOST_DIGITS);
        let (whole, after) = rest[at..].split_at(1 + digits + letter.len_utf8());
        pieces.push(Piece::Pattern { whole, width, letter });
        rest = after;
    }
    pieces.push(Piece::Text(rest));
    pieces
}

/// `None` for a file that keeps nothing, such as `/dev/null`. Does not wait for the reader of a named pipe.
fn open_file(path: &Path, is_first: bool) -> Result<Option<File>, StartFailure> {
    let refuse = |error: &io::Error| failure(&path.display().to_string(), error);
    let mut options = OpenOptions::new();
    options.append(true).create(true).mode(0o666).custom_flags(O_NONBLOCK);
    let file = options.open(path).map_err(|error| refuse(&error))?;
    let found = file.metadata().map_err(|error| refuse(&error))?;
    if found.file_type().is_char_device() && major(found.rdev()) == MEMORY_DEVICES {
        return Ok(None);
    }
    let system = fstatfs(&file).map_err(|error| refuse(&error.into()))?.filesystem_type();
    if !found.is_file() || KERNEL_FILE_SYSTEMS.iter().any(|magic| system == FsType(*magic)) {
        return Err(refuse(&io::Error::other("it is not a regular file")));
    }
    if is_first {
        file.set_len(0).map_err(|error| refuse(&error))?;
    }
    Ok(Some(file))
}

fn failure(path: &str, error: &io::Error) -> StartFailure {
    StartFailure::Other(format!(
        "the file for its output, {path}, cannot be opened as its user ({error}): create its directory, or give another \
         file with --stdout and --stderr"
    ))
}

/// The path that a pattern stands for. What is no pattern stays as it is.
fn expand(pattern: &str, start: &StartRecord) -> String {
    let text = |piece: &Piece<'_>| match piece {
        Piece::Text(text) => (*text).to_owned(),
        Piece::Pattern { whole, width, letter } => {
            meaning(*letter, start).map_or_else(|| (*whole).to_owned(), |text| padded(&text, *width))
        }
    };
    pieces(pattern).iter().map(text).collect()
}

/// What a letter stands for. A name cannot lead into another directory.
fn meaning(letter: char, start: &StartRecord) -> Option<String> {
    let rank = start.rank.rank;
    let job = rank.attempt.job;
    let variable = |name: &str| start.environment.get(name).cloned().unwrap_or_else(|| "0".into());
    Some(match letter {
        '%' => "%".to_owned(),
        'A' => job.number.to_string(),
        // Slurm writes this number for a job that is no array.
        'a' => job.index.unwrap_or(u32::MAX - 1).to_string(),
        'J' | 'j' => job.to_string(),
        'N' => host_name(),
        'n' => variable("COHABIT_NODE_RANK"),
        's' => "batch".to_owned(),
        't' => rank.rank.to_string(),
        'u' => start.rank.account.replace('/', "_"),
        'x' => start.rank.spec.name.replace('/', "_"),
        _ => return None,
    })
}

/// The name of this host up to its first dot.
fn host_name() -> String {
    let name = gethostname().unwrap_or_default().to_string_lossy().into_owned();
    name.split('.').next().unwrap_or_default().to_owned()
}

/// A number filled with zeros, as in `%4j`; other text is not padded.
fn padded(text: &str, width: usize) -> String {
    let number = text.bytes().take_while(u8::is_ascii_digit).count();
    match number {
        0 => text.to_owned(),
        _ => "0".repeat(width.saturating_sub(number)) + text,
    }
}

#[cfg(test)]
mod tests;
