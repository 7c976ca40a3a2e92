//! Gives back the memory that a daemon needed while it started or was busy, once it is quiet: code and
//! constants, about half of what an idle daemon takes, and what was freed on its heap.

#![expect(unsafe_code, reason = "see the notes at the calls")]

use std::ffi::c_void;
use std::ptr::NonNull;
use std::time::Duration;

use nix::sys::mman::{MmapAdvise, madvise};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::{TimeVal, TimeValLike};
use procfs::process::{MMPermissions, MMapPath, MemoryMap, Process};
use tokio::task::spawn_blocking;
use tokio::time::sleep;

/// A daemon is quiet that has used less processor time than `QUIET` in an interval. One that does nothing but
/// heartbeats uses 7 ms.
const INTERVAL: Duration = Duration::from_secs(10);
const QUIET: TimeVal = TimeVal::new(0, 20_000);

/// Gives memory back now, and whenever the daemon has become quiet. Never ends.
pub async fn keep_small() {
    let (mut seen, mut is_due) = (processor_time(), true);
    // A panic of this has been told, and the daemon can do without.
    let _ = spawn_blocking(give_back).await;
    loop {
        sleep(INTERVAL).await;
        let used = processor_time();
        let is_quiet = used - seen < QUIET;
        if is_due && is_quiet {
            let _ = spawn_blocking(give_back).await;
        }
        (seen, is_due) = (used, !is_quiet);
    }
}

/// The processor time of all threads; zero where the kernel does not tell.
fn processor_time() -> TimeVal {
    getrusage(UsageWho::RUSAGE_SELF).map_or(TimeVal::zero(), |usage| usage.user_time() + usage.system_time())
}

/// Takes the pages of the program's code and constants out of this process. Those that it still needs come
/// back, from the kernel's cache of the file, when it touches them. Without effect where the kernel does not
/// tell what is mapped. What was freed on the heap goes as well. Blocks for a millisecond or two.
pub fn give_back() {
    advise_all(MmapAdvise::MADV_DONTNEED);
    // SAFETY: it takes no pointer, and may be called at any time by any thread.
    #[cfg(target_env = "gnu")]
    let _ = unsafe { nix::libc::malloc_trim(0) };
}

/// Gives this advice for all code and constants of the program.
fn advise_all(advice: MmapAdvise) {
    for MemoryMap { address: (from, to), .. } in unchanged_mappings() {
        let Some(start) = NonNull::new(from as *mut c_void) else { continue };
        // SAFETY: this is a mapping of the program's file that nobody can write and that has no page of its
        // own: the next touch of a page reads the same bytes from the file. A failure leaves all as it is.
        let _ = unsafe { madvise(start, (to - from) as usize, advice) };
    }
}

/// The mappings of the program that have what is in the file and nothing else.
fn unchanged_mappings() -> Vec<MemoryMap> {
    let unchanged = || {
        let own = Process::myself()?;
        let program = own.exe()?;
        let is_of_program = |it: &MemoryMap| matches!(&it.pathname, MMapPath::Path(at) if *at == program);
        let mut mappings: Vec<MemoryMap> = own.smaps()?.into_iter().collect();
        mappings.retain(|it| is_of_program(it) && is_unchanged(it));
        procfs::ProcResult::Ok(mappings)
    };
    unchanged().unwrap_or_default()
}

/// Pages that were written, as those with relocations, are anonymous and not those of the file. "Dirty" ones
/// may only be new in the file.
fn is_unchanged(mapping: &MemoryMap) -> bool {
    let is_none = |name: &str| mapping.extension.map.get(name) == Some(&0);
    !mapping.perms.contains(MMPermissions::WRITE) && ["Anonymous", "Swap"].into_iter().all(is_none)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Constants of a program of some size.
    static CONSTANTS: [u8; 4 << 20] = [7; 4 << 20];

    fn resident() -> u64 {
        unchanged_mappings().iter().map(|it| it.extension.map["Rss"]).sum()
    }

    #[test]
    fn code_leaves_memory_and_the_process_goes_on() {
        std::hint::black_box(&CONSTANTS);
        advise_all(MmapAdvise::MADV_POPULATE_READ);
        let before = resident();
        give_back();
        let after = resident();
        assert!(0 < after && after < before / 2, "{before} bytes before, {after} afterwards");
    }
}
