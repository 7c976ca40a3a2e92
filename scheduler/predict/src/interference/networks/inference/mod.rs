//! Networks in plain Rust, for deciding: the same as the ones that are trained, over the same parameters,
//! several times as fast.
//!
//! The networks are so small that the tensor library spends most of the time on its own bookkeeping. Here
//! the members of all sets of a batch are rows of one buffer without padding, a layer goes through all of
//! them at once, and nothing is allocated for a set. Start with `e_ggat_plus_rows.rs`.

mod attention_rows;
mod dense_rows;
mod e_ggat_plus_rows;
mod gate_rows;
mod row_batch;
#[cfg(test)]
mod tests;

pub(super) use e_ggat_plus_rows::EGgatPlusRows;
pub(super) use row_batch::RowBatch;
