//! Why a process gets no memory or no object, in words for people.

use std::time::Duration;

use cohabit_application_core::{CallError, ObjectId, ObjectPlace, ObjectStore, StoreFigures, StoreRefusal};

/// What makes room.
const MAKE_ROOM: &str =
    "drop references and values that are no longer needed, or raise object_memory of #[cohabit::main]";

/// A text has at most so many bytes: it must fit a frame.
const LONGEST_TEXT: usize = 800;

/// What is known of an attempt that was refused.
pub(super) struct RefusedRequest<'a> {
    pub(super) object: ObjectId,
    pub(super) reason: StoreRefusal,
    pub(super) store: &'a ObjectStore,
    /// How long a request waits for room.
    pub(super) patience: Duration,
    /// Why the last spill, allocation or return from disk failed.
    pub(super) failure: Option<&'a str>,
}

impl RefusedRequest<'_> {
    /// What the caller gets.
    pub(super) fn error(&self) -> CallError {
        let (object, reason) = (self.object, self.reason);
        match reason {
            StoreRefusal::Full => CallError::StoreFull(shortened(self.full())),
            StoreRefusal::TooLarge { bytes, budget } => CallError::StoreFull(format!(
                "it has {}, and all objects of this node may have {}: raise object_memory of #[cohabit::main]",
                size(bytes),
                size(budget)
            )),
            StoreRefusal::TooMany { .. } => CallError::StoreFull(format!(
                "{reason}: drop references, or put several values into one object; the limit is half of the files \
                 that the process of the store may have open (ulimit -Hn)"
            )),
            StoreRefusal::Exists => CallError::Refused(format!("object {object} is there already")),
            StoreRefusal::Unknown | StoreRefusal::Freed => {
                CallError::ObjectLost(format!("object {object}: {reason}"))
            }
            StoreRefusal::Unreadable => {
                let why = self.failure.unwrap_or("the disk fails");
                CallError::ObjectLost(shortened(format!("object {object}: {reason}: {why}")))
            }
        }
    }

    fn full(&self) -> String {
        let figures = self.store.figures();
        let StoreFigures { budget, memory, disk, .. } = figures;
        let held = |place| figures.objects.iter().filter(|it| it.place == place).count();
        let failure = self.failure.map(|it| format!("; the last failure: {it}")).unwrap_or_default();
        format!(
            "there was none within {:?}; of {} of memory for objects, {} hold {} objects, of which processes map {}; {} \
             objects with {} are on disk{failure}: {MAKE_ROOM}",
            self.patience,
            size(budget),
            size(memory),
            held(Some(ObjectPlace::Memory)),
            size(figures.mapped_bytes()),
            held(Some(ObjectPlace::Disk)),
            size(disk)
        )
    }
}

/// Bytes for people.
fn size(bytes: u64) -> String {
    match bytes {
        0..0x10_0000 => format!("{} KiB", bytes.div_ceil(1 << 10)),
        _ => format!("{} MiB", bytes.div_ceil(1 << 20)),
    }
}

/// An error of others that fits a frame.
pub(super) fn bounded(error: CallError) -> CallError {
    let text = error.to_string();
    match text.len() > LONGEST_TEXT {
        true => CallError::ObjectLost(shortened(text)),
        false => error,
    }
}

pub(super) fn shortened(mut text: String) -> String {
    if text.len() > LONGEST_TEXT {
        text.truncate(text.floor_char_boundary(LONGEST_TEXT));
        text.push('…');
    }
    text
}
