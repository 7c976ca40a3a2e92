//! Memory and values that the tests share.

use std::os::fd::OwnedFd;

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{Buffer, FreshMemory, SealedMemory};

/// A memfd that this crate did not make.
pub(super) fn foreign_memfd(bytes: u64) -> OwnedFd {
    let fd = memfd_create("test", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
    ftruncate(&fd, bytes).unwrap();
    fd
}

/// Sealed memory of these bytes.
pub(super) fn sealed(bytes: &[u8]) -> SealedMemory {
    let memory = FreshMemory::allocate(bytes.len() as u64).unwrap();
    memory.write_at(0, bytes).unwrap();
    memory.seal().unwrap()
}

/// Bytes of which no two pages are alike.
pub(super) fn pattern(length: usize) -> Vec<u8> {
    (0..length as u64).map(|at| (((at + at / 4096) * 2_654_435_761) >> 16) as u8).collect()
}

pub(super) fn digest(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// Nested, with buffers of several types.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Dataset {
    pub(super) name: String,
    pub(super) inputs: Buffer<f32>,
    pub(super) shards: Vec<Shard>,
    pub(super) labels: Option<Buffer<u8>>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) enum Shard {
    Dense { rows: Buffer<[f64; 2]>, weight: i128 },
    Counts(Buffer<u16>, Buffer<i64>),
    Empty,
}

pub(super) fn dataset() -> Dataset {
    Dataset {
        name: "digits".to_owned(),
        inputs: (0..1000u16).map(|it| f32::from(it) / 3.0).collect(),
        shards: vec![
            Shard::Dense { rows: vec![[1.5, -2.5], [f64::MAX, 0.0]].into(), weight: -7 },
            Shard::Empty,
            Shard::Counts(vec![1, 2, 3].into(), Buffer::default()),
        ],
        labels: Some(vec![9; 77].into()),
    }
}
