//! Metrics of jobs over their steps: as a table, as CSV, as a document, and as a plot.

mod attempt_series;
mod csv_text;
mod plot;
mod summary;
#[cfg(test)]
mod tests;

pub(crate) use self::attempt_series::{AttemptSeries, names};
pub(crate) use self::csv_text::csv;
pub(crate) use self::plot::plot;
pub(crate) use self::summary::summary;
