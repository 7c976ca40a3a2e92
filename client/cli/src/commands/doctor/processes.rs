//! Ranks on this machine, and whether a worker supervises them.
//!
//! An executor outlives its worker for `orphan-grace`, so one without a worker is a warning and not yet an
//! error.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::findings::Finding;

/// The name of the program, unless somebody renamed it.
const PROGRAM: &str = "cohabit";

const CHECK: &str = "ranks";

pub(super) fn check() -> Vec<Finding> {
    vec![diagnose(&command_lines(Path::new("/proc")))]
}

/// The arguments of every process that is visible to this user.
fn command_lines(proc: &Path) -> Vec<Vec<String>> {
    let processes = fs::read_dir(proc).into_iter().flatten().flatten();
    let is_number = |name: &OsStr| name.as_bytes().iter().all(u8::is_ascii_digit);
    processes.filter(|entry| is_number(&entry.file_name())).filter_map(|entry| words(&entry.path())).collect()
}

fn words(process: &Path) -> Option<Vec<String>> {
    let line = fs::read(process.join("cmdline")).ok()?;
    Some(line.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect())
}

fn diagnose(processes: &[Vec<String>]) -> Finding {
    let ours = || processes.iter().filter(|words| is_ours(words));
    let executors: Vec<_> = ours().filter(|words| verb(words) == Some("executor")).collect();
    let has_worker = ours().any(|words| matches!(verb(words), Some("worker" | "up" | "demo")));
    match executors.len() {
        0 => Finding::ok(CHECK, "none on this machine"),
        count if has_worker => Finding::ok(CHECK, format!("{count} on this machine, supervised by a worker")),
        count => Finding::warning(
            CHECK,
            format!("{count} on this machine without a worker: {}", folders(&executors)),
            "restart the worker with the same --state to adopt them; otherwise they stop on their own",
        ),
    }
}

/// Whether the process runs this program, by file name. The program may be installed under another name.
fn is_ours(words: &[String]) -> bool {
    let Some(name) = words.first().and_then(|program| Path::new(program).file_name()) else { return false };
    let installed = env::current_exe().ok();
    name == PROGRAM || installed.as_deref().and_then(Path::file_name) == Some(name)
}

fn verb(words: &[String]) -> Option<&str> {
    words.get(1).map(String::as_str)
}

fn folders(executors: &[&Vec<String>]) -> String {
    executors.iter().filter_map(|words| words.get(2)).cloned().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::findings::Diagnosis;
    use super::*;

    fn status_of(lines: &[&str]) -> Finding {
        let words = |line: &&str| line.split(' ').map(str::to_owned).collect();
        diagnose(&lines.iter().map(words).collect::<Vec<_>>())
    }

    #[test]
    fn ranks_without_a_worker_are_reported_with_their_directories() {
        assert_eq!(status_of(&["bash", "executor x"]).status, Diagnosis::Ok);
        let executor = "/usr/bin/cohabit executor /state/ranks/1/1/0";
        assert_eq!(status_of(&[executor, "cohabit worker start"]).status, Diagnosis::Ok);
        let alone = status_of(&[executor]);
        assert_eq!(alone.status, Diagnosis::Warning);
        assert!(alone.observed.contains("/state/ranks/1/1/0"));
    }

    #[test]
    fn this_process_is_among_those_found() {
        let own = words(Path::new("/proc/self")).unwrap();
        assert!(command_lines(Path::new("/proc")).contains(&own));
    }
}
