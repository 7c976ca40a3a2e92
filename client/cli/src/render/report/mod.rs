//! Reports: sums over days as table, CSV and JSON; what a job did, with advice; jobs that do nothing.

mod advice;
mod idle;
mod job_figures;
mod job_sheet;
mod sums;
mod units;

pub(crate) use idle::{IdleDocument, IdleJob, idle_table};
pub(crate) use job_figures::JobReport;
pub(crate) use job_sheet::{JobReportDocument, job_report_text};
pub(crate) use sums::{ReportDocument, report_csv, report_table};

#[cfg(test)]
mod tests;
