//! Arrays and sweeps: how far each is, and the members of one as a table.

use std::collections::BTreeSet;

use askama::Template;
use cohabit_client::types::{JobId, JobRecord, JobState, Time};
use cohabit_console::records::progress::value_text;

use super::job_row::JobRow;
use super::line;
use crate::cluster::Cluster;

/// Members on a page.
pub(crate) const PAGE_MEMBERS: u32 = 200;
/// The most metrics with a column of their own.
const MOST_METRICS: usize = 6;

/// All arrays that are live or ended lately.
#[derive(Template)]
#[template(path = "arrays.html")]
pub(crate) struct Arrays {
    pub(crate) rows: Vec<ArrayRow>,
}

/// An array as a whole.
#[derive(Debug)]
pub(crate) struct ArrayRow {
    pub(crate) row: JobRow,
    pub(crate) members: u64,
    pub(crate) ended: u64,
    pub(crate) running: u64,
    pub(crate) waiting: u64,
    pub(crate) failed: u64,
    pub(crate) per_cent: u64,
}

/// The members of one array.
#[derive(Template)]
#[template(path = "array.html")]
pub(crate) struct ArrayMembers {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) metrics: Vec<String>,
    pub(crate) rows: Vec<MemberRow>,
    /// The index of the last member, if the page is full.
    pub(crate) next: Option<u32>,
}

/// A member.
#[derive(Debug)]
pub(crate) struct MemberRow {
    pub(crate) row: JobRow,
    pub(crate) index: u32,
    /// In the order of the columns.
    pub(crate) metrics: Vec<String>,
}

impl Arrays {
    pub(crate) fn new(cluster: &Cluster) -> Arrays {
        let arrays = cluster.jobs.submissions().rev().filter_map(|job| ArrayRow::new(job, cluster.as_of()));
        Arrays { rows: arrays.collect() }
    }
}

impl ArrayRow {
    fn new(job: &JobRecord, now: Time) -> Option<ArrayRow> {
        let array = job.array.as_ref()?;
        let ended = array.ended();
        let good = array.count(JobState::Completed) + array.count(JobState::Cancelled);
        Some(ArrayRow {
            row: JobRow::new(job, now),
            members: array.members,
            ended,
            running: array.count(JobState::Running) + array.count(JobState::Completing),
            waiting: array.count(JobState::Pending) + array.count(JobState::Held),
            failed: ended - good.min(ended),
            per_cent: ended.saturating_mul(100) / array.members.max(1),
        })
    }
}

impl ArrayMembers {
    pub(crate) fn new(array: u64, name: &str, members: &[JobRecord], now: Time) -> ArrayMembers {
        let reported = members.iter().filter_map(|member| member.progress.as_ref());
        let names: BTreeSet<&String> = reported.flat_map(|progress| progress.metrics.keys()).collect();
        let names: Vec<&String> = names.into_iter().take(MOST_METRICS).collect();
        let is_full = members.len() >= PAGE_MEMBERS as usize;
        ArrayMembers {
            id: array,
            name: line(name),
            metrics: names.iter().map(|name| line(name)).collect(),
            rows: members.iter().map(|member| MemberRow::new(member, &names, now)).collect(),
            next: members.last().filter(|_| is_full).and_then(|member| member.id.index),
        }
    }
}

impl MemberRow {
    fn new(member: &JobRecord, metrics: &[&String], now: Time) -> MemberRow {
        let value = |name: &&String| member.progress.as_ref()?.metrics.get(*name).copied();
        let JobId { index, .. } = member.id;
        MemberRow {
            row: JobRow::new(member, now),
            index: index.unwrap_or_default(),
            metrics: metrics.iter().map(|it| value(it).map_or(String::new(), value_text)).collect(),
        }
    }
}
