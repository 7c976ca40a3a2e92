//! ISACPP: a job goes to the GPU on which it and the jobs there interfere least until they end.
//!
//! `choice.rs` holds the rules; the estimates come from `sharing/multi_stage/`. The README in this directory
//! lists the properties that are wanted, which parts are the paper's and which are inferred, and where each
//! is tested. Which GPUs a job fits, and when it starts, is not decided here.

mod choice;
#[cfg(test)]
mod tests;

pub(crate) use choice::{GpuSelection, Isacpp, IsacppOptions};
