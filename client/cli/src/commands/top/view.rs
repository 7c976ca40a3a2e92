//! What the screen of `top` shows: the last answers of the head, and whether it still answers.

use cohabit_client::types::{JobId, JobRecord, NodeRecord, Span, Time};

use super::log::TopLog;

/// A head that has not answered for longer than this has a banner: the figures are old.
const SILENCE: Span = Span::from_secs(5);

/// The last answers of the head.
#[derive(Debug)]
pub(super) struct TopView {
    pub(super) head: String,
    /// When the head gave them.
    pub(super) at: Time,
    /// What keeps the head from its work.
    pub(super) head_problems: Vec<String>,
    pub(super) nodes: Vec<NodeRecord>,
    /// The jobs that have not ended.
    pub(super) jobs: Vec<JobRecord>,
    /// Why the latest question failed, if it did.
    pub(super) failure: Option<String>,
}

/// What is known of the job whose page is open.
#[derive(Debug)]
pub(super) enum JobPage {
    /// The lines of its sheet, or why there are none; nothing before the first answer.
    Sheet(JobId, Vec<String>),
    /// Its output.
    Log(TopLog),
}

impl TopView {
    /// The job with this number.
    pub(super) fn job(&self, id: JobId) -> Option<&JobRecord> {
        self.jobs.iter().find(|job| job.id == id)
    }

    /// Why the figures are old, if they are.
    pub(super) fn silence(&self, now: Time) -> Option<String> {
        let age = now.since(self.at);
        if self.failure.is_none() && age < SILENCE {
            return None;
        }
        let why = self.failure.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        let age = match age.as_micros() / 1_000_000 {
            seconds if seconds < 60 => format!("{seconds} s"),
            _ => age.to_string(),
        };
        Some(format!("NO ANSWER from the head for {age}, the figures are that old{why}"))
    }
}
