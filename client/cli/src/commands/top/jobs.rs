//! Which jobs the screen of `top` lists, in which order, and their cells.

use cohabit_client::types::{JobId, JobRecord, JobState, Span, Time};
use ratatui::style::Color;

use super::text_table::{TextCell, TextColumn};
use crate::render::expected_times::eta;
use crate::render::job_cells::{detail, runtime};
use crate::render::short_name::{LONGEST_LISTED_NAME, short_name};

/// A column by which jobs are sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SortColumn {
    Id,
    Name,
    User,
    State,
    Runtime,
}

/// Which jobs are listed, and in which order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct JobOrdering {
    /// Words that a job must have in its number, name, user, state, node or array entry.
    pub(super) filter: String,
    pub(super) column: SortColumn,
    pub(super) is_descending: bool,
}

impl Default for JobOrdering {
    fn default() -> JobOrdering {
        JobOrdering { filter: String::new(), column: SortColumn::Id, is_descending: false }
    }
}

impl SortColumn {
    const ALL: [SortColumn; 5] =
        [SortColumn::Id, SortColumn::Name, SortColumn::User, SortColumn::State, SortColumn::Runtime];

    /// The next column, and the first after the last.
    pub(super) fn next(self) -> SortColumn {
        let at = SortColumn::ALL.iter().position(|column| *column == self).unwrap_or_default();
        SortColumn::ALL[(at + 1) % SortColumn::ALL.len()]
    }

    const fn heading(self) -> &'static str {
        match self {
            SortColumn::Id => "ID",
            SortColumn::Name => "NAME",
            SortColumn::User => "USER",
            SortColumn::State => "STATE",
            SortColumn::Runtime => "RUNTIME",
        }
    }
}

impl JobOrdering {
    /// The jobs to list, in order.
    pub(super) fn select<'a>(&self, jobs: &'a [JobRecord], now: Time) -> Vec<&'a JobRecord> {
        let words: Vec<String> = self.filter.split_whitespace().map(str::to_lowercase).collect();
        let mut jobs: Vec<&JobRecord> = jobs.iter().filter(|job| has_words(job, &words)).collect();
        match self.column {
            SortColumn::Id => jobs.sort_by_key(|job| job.id),
            SortColumn::Name => jobs.sort_by(|a, b| (&a.name, a.id).cmp(&(&b.name, b.id))),
            SortColumn::User => jobs.sort_by(|a, b| (&a.user, a.id).cmp(&(&b.user, b.id))),
            SortColumn::State => jobs.sort_by_key(|job| (job.state, job.id)),
            SortColumn::Runtime => jobs.sort_by_key(|job| (time_run(job, now), job.id)),
        }
        if self.is_descending {
            jobs.reverse();
        }
        jobs
    }

    /// The numbers of the jobs to list, in order.
    pub(super) fn ids(&self, jobs: &[JobRecord], now: Time) -> Vec<JobId> {
        self.select(jobs, now).into_iter().map(|job| job.id).collect()
    }

    /// The columns of the table; the one that jobs are sorted by has a mark.
    pub(super) fn columns(&self) -> Vec<TextColumn> {
        let sizes = [
            ("ID", 4, 14),
            ("NAME", 6, LONGEST_LISTED_NAME),
            ("USER", 6, 16),
            ("STATE", 9, 14),
            ("RUNTIME", 8, 14),
            ("ETA", 7, 16),
            ("NODE", 6, 24),
            ("DETAIL", 12, usize::MAX),
        ];
        let mark = if self.is_descending { "▼" } else { "▲" };
        let column = |(heading, least, most): (&str, usize, usize)| {
            let mark = if heading == self.column.heading() { mark } else { "" };
            TextColumn { heading: format!("{heading}{mark}"), least, most }
        };
        sizes.into_iter().map(column).collect()
    }
}

/// A job that has not started has run for no time.
fn time_run(job: &JobRecord, now: Time) -> Span {
    runtime(job, now).unwrap_or(Span::ZERO)
}

fn has_words(job: &JobRecord, words: &[String]) -> bool {
    if words.is_empty() {
        return true;
    }
    let entry = job.labels.entry.as_deref().unwrap_or_default();
    let id = job.id.to_string();
    let nodes = job.nodes().join(" ");
    let texts = [&id, &job.name, &job.user, job.state.word(), &nodes, entry].join("\n").to_lowercase();
    words.iter().all(|word| texts.contains(word))
}

/// The cells of a job, one for each column.
pub(super) fn job_row(job: &JobRecord, now: Time) -> Vec<TextCell> {
    let run = runtime(job, now).map_or(String::new(), |span| span.to_string());
    vec![
        TextCell::plain(job.id.to_string()),
        TextCell::plain(short_name(&job.name, LONGEST_LISTED_NAME)),
        TextCell::plain(job.user.as_str()),
        TextCell::colored(job.state.word(), color(job.state)),
        TextCell::plain(run),
        TextCell::plain(eta(job, now)),
        TextCell::plain(job.nodes().join(",")),
        TextCell::plain(detail(job, now)),
    ]
}

const fn color(state: JobState) -> Color {
    match state {
        JobState::Running | JobState::Completing => Color::Blue,
        JobState::Pending
        | JobState::Held
        | JobState::Completed
        | JobState::Failed
        | JobState::Cancelled
        | JobState::Timeout
        | JobState::NodeFail
        | JobState::OutOfMemory
        | JobState::Preempted => Color::Reset,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::samples::{array, at, pending, running};

    fn ids(ordering: &JobOrdering) -> Vec<String> {
        let jobs = [JobRecord { user: "eve".into(), ..pending() }, running(), array()];
        ordering.ids(&jobs, at(100)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn jobs_are_sorted_by_each_column_both_ways() {
        for (column, order) in [
            (SortColumn::Id, ["9", "12", "14"]),
            (SortColumn::Name, ["14", "12", "9"]),
            (SortColumn::User, ["9", "12", "14"]),
            (SortColumn::State, ["14", "9", "12"]),
            (SortColumn::Runtime, ["14", "12", "9"]),
        ] {
            let ascending = JobOrdering { column, ..JobOrdering::default() };
            assert_eq!(ids(&ascending), order, "{column:?}");
            let mut reverse = order;
            reverse.reverse();
            assert_eq!(ids(&JobOrdering { is_descending: true, ..ascending }), reverse, "{column:?}");
        }
    }

    #[test]
    fn a_filter_finds_numbers_names_users_states_and_nodes_without_case() {
        for (filter, found) in [
            ("14", vec!["14"]),
            ("RESNET", vec!["12"]),
            ("eve", vec!["14"]),
            ("running", vec!["9", "12"]),
            ("running gpu1", vec!["12"]),
            ("nothing", vec![]),
            ("  ", vec!["9", "12", "14"]),
        ] {
            assert_eq!(
                ids(&JobOrdering { filter: filter.into(), ..JobOrdering::default() }),
                found,
                "{filter}"
            );
        }
    }

    #[test]
    fn the_columns_to_sort_by_follow_one_another_in_a_circle() {
        let mut column = SortColumn::Id;
        for _ in SortColumn::ALL {
            let columns = JobOrdering { column, ..JobOrdering::default() }.columns();
            let marked: Vec<_> = columns.iter().filter(|it| it.heading.ends_with('▲')).collect();
            assert_eq!(marked.len(), 1, "{column:?}");
            column = column.next();
        }
        assert_eq!(column, SortColumn::Id);
    }
}
