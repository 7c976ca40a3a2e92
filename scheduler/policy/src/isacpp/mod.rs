//! ISACPP: a job goes to the GPU on which it and those who are there already stand least in each other's way,
//! until they end.
//!
//! The README beside this file says which properties are wanted, what of this is the paper's and what is
//! inferred, and where each is tested. What room is, and when a job starts, is not decided here.

mod choice;
#[cfg(test)]
mod tests;

pub(crate) use choice::{GpuSelection, Isacpp, IsacppOptions};
