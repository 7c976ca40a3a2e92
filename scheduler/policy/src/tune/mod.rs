//! Tuning: any policy decides which job starts when and on which devices; the cores and the host memory of
//! jobs that give a range of them follow their sensitivity. The README says how.

mod node_shares;
mod relaxed_view;
mod residents;
#[cfg(test)]
mod tests;
mod tuned;
mod tuned_job;
mod tuning;

pub(crate) use tuned::Tuned;
