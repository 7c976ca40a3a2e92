//! The CPU time of a job: what its cgroup has used, or what its process has, where jobs have no cgroups.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cohabit_client::types::JobId;
use procfs::process::{Process, all_processes};

const JOB_VARIABLE: &str = "COHABIT_JOB_ID";
/// Its path is in the state directory of the worker.
const PROGRESS_VARIABLE: &str = "COHABIT_PROGRESS";
const CGROUPS: &str = "/sys/fs/cgroup";

/// Where the CPU time of a job is read.
#[derive(Debug, Clone)]
pub(super) enum CpuClock {
    /// The cgroup of its attempt, with all of its processes.
    Cgroup(PathBuf),
    /// Its process. The jobs of the demo have one.
    Process(i32),
}

/// What a clock shows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct CpuUse {
    /// CPU time since the start of the job.
    pub(super) used: Duration,
    /// The cores that the kernel lets it use: `cpu.max` of its cgroup.
    pub(super) limit: Option<f64>,
}

impl CpuClock {
    /// The clock of a job of the worker with this state directory; of its cgroup, where the worker enforces
    /// limits.
    pub(super) fn of_job(job: JobId, folder: &Path, is_enforced: bool) -> Option<CpuClock> {
        let process = all_processes().ok()?.flatten().find(|process| is_of_job(process, job, folder))?;
        if is_enforced { cgroup_of_attempt(&process) } else { Some(CpuClock::Process(process.pid)) }
    }

    pub(super) fn read(&self) -> Option<CpuUse> {
        match self {
            CpuClock::Cgroup(cgroup) => {
                let used = used_by_cgroup(&fs::read_to_string(cgroup.join("cpu.stat")).ok()?)?;
                let limit = cores(&fs::read_to_string(cgroup.join("cpu.max")).ok()?);
                Some(CpuUse { used, limit })
            }
            CpuClock::Process(pid) => {
                let stat = Process::new(*pid).ok()?.stat().ok()?;
                let seconds = (stat.utime + stat.stime) as f64 / procfs::ticks_per_second() as f64;
                Some(CpuUse { used: Duration::from_secs_f64(seconds), limit: None })
            }
        }
    }
}

fn is_of_job(process: &Process, job: JobId, folder: &Path) -> bool {
    // The processes of others cannot be read, and need not.
    let Ok(environment) = process.environ() else { return false };
    let value = |name: &str| environment.get(OsStr::new(name));
    value(JOB_VARIABLE).is_some_and(|value| *value == *job.to_string())
        && value(PROGRESS_VARIABLE).is_some_and(|path| Path::new(path).starts_with(folder))
}

/// The limits are those of the cgroup around that of the rank.
fn cgroup_of_attempt(process: &Process) -> Option<CpuClock> {
    let cgroups = process.cgroups().ok()?;
    let rank = cgroups.into_iter().find(|cgroup| cgroup.hierarchy == 0)?.pathname;
    let attempt = Path::new(rank.trim_start_matches('/')).parent()?;
    Some(CpuClock::Cgroup(Path::new(CGROUPS).join(attempt)))
}

/// From the text of `cpu.stat`.
fn used_by_cgroup(stat: &str) -> Option<Duration> {
    let microseconds = stat.lines().find_map(|line| line.strip_prefix("usage_usec "))?;
    Some(Duration::from_micros(microseconds.trim().parse().ok()?))
}

/// From the text of `cpu.max`: none where there is no limit.
fn cores(limit: &str) -> Option<f64> {
    let (quota, period) = limit.trim().split_once(' ')?;
    Some(quota.parse::<f64>().ok()? / period.parse::<f64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_cgroup_are_read() {
        let used = used_by_cgroup("usage_usec 2500000\nuser_usec 1\nsystem_usec 2\n");
        assert_eq!(used, Some(Duration::from_millis(2500)));
        assert_eq!(used_by_cgroup("user_usec 1\n"), None);
        assert_eq!((cores("300000 100000\n"), cores("max 100000\n")), (Some(3.0), None));
    }

    #[test]
    fn a_process_uses_time() {
        let clock = CpuClock::Process(std::process::id() as i32);
        let first = clock.read().unwrap();
        let mut now = first;
        while now.used == first.used {
            now = clock.read().unwrap();
        }
        assert!(now.used > first.used && now.limit.is_none());
    }
}
