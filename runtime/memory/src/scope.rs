//! How a buffer knows that an object is being written or read: serde hands nothing through, so a
//! thread-local says it.

use std::cell::RefCell;
use std::ops::Range;

use crate::buffer::BufferBytes;
use crate::layout::{BufferEntry, CheckedLayout, ElementShape, MAX_BUFFERS};
use crate::mapping::MemoryMapping;

thread_local! {
    static SCOPE: RefCell<Scope> = const { RefCell::new(Scope::Outside) };
}

/// What this thread does.
#[derive(Debug)]
pub(crate) enum Scope {
    /// Neither: buffers are sequences.
    Outside,
    /// It writes an object: the buffers found so far.
    Writing(Vec<Box<dyn BufferBytes>>),
    /// It reads one.
    Reading(ReadingScope),
}

/// An object that is being read.
#[derive(Debug)]
pub(crate) struct ReadingScope {
    pub(crate) mapping: MemoryMapping,
    pub(crate) layout: CheckedLayout,
    /// The number of the next buffer: each is read once, in the order in which they were written.
    pub(crate) next: usize,
}

/// Runs code of a user's type inside of a scope. Returns its result, and the scope afterwards.
pub(crate) fn within<R>(scope: Scope, work: impl FnOnce() -> R) -> (R, Scope) {
    let entered = EnteredScope { outer: Some(SCOPE.replace(scope)) };
    let result = work();
    (result, entered.leave())
}

/// Adds a buffer to the object that this thread writes. Returns its number, or none if no object is written.
///
/// # Errors
/// In words, if the object has too many.
pub(crate) fn note(buffer: impl FnOnce() -> Box<dyn BufferBytes>) -> Result<Option<u32>, String> {
    SCOPE.with_borrow_mut(|scope| match scope {
        Scope::Outside | Scope::Reading(_) => Ok(None),
        Scope::Writing(buffers) if buffers.len() >= MAX_BUFFERS => {
            Err(format!("there are more than {MAX_BUFFERS} buffers"))
        }
        Scope::Writing(buffers) => {
            buffers.push(buffer());
            Ok(Some(buffers.len() as u32 - 1))
        }
    })
}

/// Whether this thread reads an object.
pub(crate) fn is_reading() -> bool {
    SCOPE.with_borrow(|scope| matches!(scope, Scope::Reading(_)))
}

/// The next buffer of the object that this thread reads, which has to be of this number and shape: the
/// mapping, and the place in it.
///
/// # Errors
/// In words, if it is not.
pub(crate) fn claim(index: u32, element: ElementShape) -> Result<(MemoryMapping, Range<usize>), String> {
    SCOPE.with_borrow_mut(|scope| match scope {
        Scope::Outside | Scope::Writing(_) => Err("no object is read".to_owned()),
        Scope::Reading(reading) => reading.claim(index, element),
    })
}

impl ReadingScope {
    fn claim(&mut self, index: u32, element: ElementShape) -> Result<(MemoryMapping, Range<usize>), String> {
        if index as usize != self.next {
            return Err(format!("buffer {index} where buffer {} belongs", self.next));
        }
        let entry = self.layout.entry(&self.mapping, self.next).ok_or("a buffer is missing")?;
        if entry.element != element || !entry.length.is_multiple_of(u64::from(element.size.max(1))) {
            let BufferEntry { length, element: ElementShape { size, alignment }, .. } = entry;
            let wanted = (element.size, element.alignment);
            return Err(format!(
                "buffer {index} has {length} bytes of elements of {size} aligned to {alignment}, not of {} \
                 aligned to {}",
                wanted.0, wanted.1
            ));
        }
        self.next += 1;
        // The layout has checked that it lies in the mapping, whose length is a `usize`.
        let start = entry.place as usize;
        Ok((self.mapping.clone(), start..start + entry.length as usize))
    }
}

/// Returns to the outer scope, also after a panic.
struct EnteredScope {
    outer: Option<Scope>,
}

impl EnteredScope {
    fn leave(mut self) -> Scope {
        SCOPE.replace(self.outer.take().unwrap_or(Scope::Outside))
    }
}

impl Drop for EnteredScope {
    fn drop(&mut self) {
        if let Some(outer) = self.outer.take() {
            SCOPE.replace(outer);
        }
    }
}
