//! The arguments and values of simulated calls: a number and handles.

use bytes::Bytes;
use cohabit_application_core::ActorId;

/// Which call it is, by a number that is unique in the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Tag(pub(super) u64);

/// Encodes a number and handles.
pub(super) fn encode(tag: Tag, handles: &[ActorId]) -> Bytes {
    std::iter::once(tag.0).chain(handles.iter().map(|it| it.0)).flat_map(u64::to_le_bytes).collect()
}

/// The number and the handles.
pub(super) fn decode(payload: &[u8]) -> (Tag, Vec<ActorId>) {
    let mut numbers = payload.chunks_exact(8).map(|it| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(it);
        u64::from_le_bytes(bytes)
    });
    (Tag(numbers.next().unwrap_or(0)), numbers.map(ActorId).collect())
}
