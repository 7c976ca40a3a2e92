//! How many jobs this host runs at once, whatever they demand: jobs without GPUs, cores or memory of their
//! own would otherwise take all files, processes and memory of the daemon.

use cohabit_types::Bytes;

/// Files of the daemon for each rank, with room for jobs of several ranks: four were counted.
const FILES_PER_JOB: u64 = 8;
/// Files of the daemon itself.
const FILES_KEPT: u64 = 256;
/// Processes and threads of a job, its executor's included, as far as it is a small one.
const PROCESSES_PER_JOB: u64 = 8;
/// Host memory of a job besides its own processes': about 1.2 MB in the daemon and its executor's 6.
const MEMORY_PER_JOB: Bytes = Bytes(16 << 20);
/// A host with very little still runs jobs.
const LEAST: u64 = 16;

/// The limit of a host with so much memory, for a daemon with so many files and processes.
pub(crate) fn job_limit(memory: Bytes, files: u64, processes: u64) -> u32 {
    let by_files = files.saturating_sub(FILES_KEPT) / FILES_PER_JOB;
    let by_processes = processes / PROCESSES_PER_JOB;
    let by_memory = memory.0 / MEMORY_PER_JOB.0;
    let limit = by_files.min(by_processes).min(by_memory).max(LEAST);
    u32::try_from(limit).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn the_scarcest_resource_decides() {
        assert_eq!(job_limit(Bytes(512 * GIB), 1_024, 4_194_304), 96, "files");
        assert_eq!(job_limit(Bytes(512 * GIB), 524_288, 4_096), 512, "processes");
        assert_eq!(job_limit(Bytes(8 * GIB), 524_288, 4_194_304), 512, "memory");
        assert_eq!(job_limit(Bytes(0), 0, 0), 16);
    }
}
