//! Peak memory of a computation: counts every allocation of a thread.
#![expect(unsafe_code, reason = "an allocator is unsafe by its trait; this one only counts and passes on")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// Bytes allocated now, and the peak since the count began. Memory that another thread frees makes the
    /// first negative.
    static HELD: Cell<(isize, isize)> = const { Cell::new((0, 0)) };
}

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Runs a computation. Returns its result and its peak memory on this thread, in bytes.
pub(crate) fn peak_memory_of(work: impl FnOnce()) -> usize {
    HELD.set((0, 0));
    work();
    usize::try_from(HELD.get().1).unwrap_or(0)
}

fn count(bytes: isize) {
    // The count of a thread that is ending is gone.
    let _ = HELD.try_with(|held| {
        let now = held.get().0 + bytes;
        held.set((now, now.max(held.get().1)));
    });
}

// SAFETY: every call is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        // SAFETY: the caller keeps the promises of `GlobalAlloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        count(-layout.size().cast_signed());
        // SAFETY: as above.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size.cast_signed() - layout.size().cast_signed());
        // SAFETY: as above.
        unsafe { System.realloc(place, layout, size) }
    }
}
