//! Ranks that run on this machine, and whether a worker watches over them.
//!
//! An executor outlives its worker for `orphan-grace`; one that is alone is no error yet, but somebody should
//! know.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::findings::Finding;

const CHECK: &str = "ranks";

pub(super) fn check() -> Vec<Finding> {
    vec![judge(&command_lines(Path::new("/proc")))]
}

/// The words of every process that we may look at.
fn command_lines(proc: &Path) -> Vec<Vec<String>> {
    let processes = fs::read_dir(proc).into_iter().flatten().flatten();
    let is_number = |name: &OsStr| name.as_bytes().iter().all(u8::is_ascii_digit);
    processes.filter(|entry| is_number(&entry.file_name())).filter_map(|entry| words(&entry.path())).collect()
}

fn words(process: &Path) -> Option<Vec<String>> {
    let line = fs::read(process.join("cmdline")).ok()?;
    Some(line.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect())
}

fn judge(processes: &[Vec<String>]) -> Finding {
    let ours = || processes.iter().filter(|words| is_ours(words));
    let executors: Vec<_> = ours().filter(|words| verb(words) == Some("executor")).collect();
    let has_worker = ours().any(|words| matches!(verb(words), Some("worker" | "up" | "demo")));
    match executors.len() {
        0 => Finding::ok(CHECK, "none runs here"),
        count if has_worker => {
            Finding::ok(CHECK, format!("{count} run here, and a worker watches over them"))
        }
        count => Finding::warning(
            CHECK,
            format!("{count} run here without a worker: {}", folders(&executors)),
            "start the worker again with the same --state to adopt them, else they end by themselves",
        ),
    }
}

/// Whether the program is this one, by its file name.
fn is_ours(words: &[String]) -> bool {
    words
        .first()
        .is_some_and(|program| Path::new(program).file_name() == Some(OsStr::new(env!("CARGO_PKG_NAME"))))
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

    fn judged(lines: &[&str]) -> Finding {
        let words = |line: &&str| line.split(' ').map(str::to_owned).collect();
        judge(&lines.iter().map(words).collect::<Vec<_>>())
    }

    #[test]
    fn ranks_without_a_worker_are_told_with_their_folders() {
        assert_eq!(judged(&["bash", "executor x"]).status, Diagnosis::Ok);
        let executor = "/usr/bin/cohabit executor /state/ranks/1/1/0";
        assert_eq!(judged(&[executor, "cohabit worker start"]).status, Diagnosis::Ok);
        let alone = judged(&[executor]);
        assert_eq!(alone.status, Diagnosis::Warning);
        assert!(alone.observed.contains("/state/ranks/1/1/0"));
    }

    #[test]
    fn this_very_process_is_among_those_seen() {
        let own = words(Path::new("/proc/self")).unwrap();
        assert!(command_lines(Path::new("/proc")).contains(&own));
    }
}
