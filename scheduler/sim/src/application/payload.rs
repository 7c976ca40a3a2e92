//! The arguments, values and items of simulated calls: a number and handles.

use bytes::Bytes;
use cohabit_application_core::{ActorId, HeldId, ObjectId};
use cohabit_types::{AttemptId, JobId, RankId};

/// Which call or value it is, by a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Tag(pub(super) u64);

/// A handle takes up so many numbers.
const HANDLE: usize = 4;

/// Encodes a number and handles.
pub(super) fn encode(tag: Tag, handles: &[HeldId]) -> Bytes {
    let handles = handles.iter().flat_map(|it| match it {
        HeldId::Actor(actor) => [0, 0, 0, actor.0],
        HeldId::Object(ObjectId { maker: RankId { attempt: AttemptId { job, attempt }, rank }, number }) => {
            [job.number, u64::from(*attempt), u64::from(*rank), *number]
        }
    });
    std::iter::once(tag.0).chain(handles).flat_map(u64::to_le_bytes).collect()
}

/// The number and the handles.
pub(super) fn decode(payload: &[u8]) -> (Tag, Vec<HeldId>) {
    let numbers: Vec<u64> = payload
        .chunks_exact(8)
        .map(|it| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(it);
            u64::from_le_bytes(bytes)
        })
        .collect();
    let Some((tag, handles)) = numbers.split_first() else { return (Tag(0), Vec::new()) };
    let handles = handles.chunks_exact(HANDLE).map(|it| match (it[0], it[1], it[2], it[3]) {
        (0, _, _, actor) => HeldId::Actor(ActorId(actor)),
        (job, attempt, rank, number) => {
            let maker = JobId::new(job).attempt(attempt as u32).rank(rank as u32);
            HeldId::Object(ObjectId { maker, number })
        }
    });
    (Tag(*tag), handles.collect())
}
