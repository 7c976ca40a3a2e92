//! Gives back the memory of code and constants that a daemon needs at its start only: about half of what an
//! idle daemon takes.

#![expect(unsafe_code, reason = "see the note at the call")]

use std::ffi::c_void;
use std::ptr::NonNull;

use nix::sys::mman::{MmapAdvise, madvise};
use procfs::process::{MMPermissions, MMapPath, MemoryMap, Process};

/// Takes the pages of the program's code and constants out of this process. Those that it still needs come
/// back, from the kernel's cache of the file, when it touches them. Without effect where the kernel does not
/// tell what is mapped.
pub(crate) fn give_back() {
    advise_all(MmapAdvise::MADV_DONTNEED);
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

    fn resident() -> u64 {
        unchanged_mappings().iter().map(|it| it.extension.map["Rss"]).sum()
    }

    #[test]
    fn code_leaves_memory_and_the_process_goes_on() {
        advise_all(MmapAdvise::MADV_POPULATE_READ);
        let before = resident();
        give_back();
        let after = resident();
        assert!(0 < after && after < before / 2, "{before} bytes before, {after} afterwards");
    }
}
