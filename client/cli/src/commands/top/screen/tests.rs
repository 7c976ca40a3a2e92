//! Snapshots of the screen, and what it says of rows and columns that do not fit.

use cohabit_client::LogPart;
use cohabit_client::types::{JobId, JobRecord, LogChunk, LogRecord, LogStream, NodeRecord, Span};
use jiff::tz::TimeZone;
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::super::jobs::SortColumn;
use super::super::log::TopLog;
use super::*;
use crate::render::hostile_text::{self, assert_printable};
use crate::render::job_sheet::job_sheet;
use crate::render::samples::{array, at, nodes, pending, running};

fn view_of(nodes: Vec<NodeRecord>, jobs: Vec<JobRecord>) -> TopView {
    let head = "gpu1:7070".to_owned();
    TopView { head, at: at(100), head_problems: Vec::new(), nodes, jobs, failure: None }
}

fn sample() -> TopView {
    view_of(nodes(), vec![array(), running(), pending()])
}

/// Many nodes and jobs.
fn crowd() -> TopView {
    let node = |number: u64| NodeRecord { name: format!("gpu{number}"), ..nodes()[0].clone() };
    let job = |number: u64| match number % 3 {
        0 => JobRecord { id: JobId::new(number), user: "eve".into(), ..running() },
        _ => JobRecord { id: JobId::new(number), ..pending() },
    };
    view_of((1..=12).map(node).collect(), (1..=140).map(job).collect())
}

/// The screen with this state, whose selection and windows are taken over as the loop does.
fn drawn_at(
    size: (u16, u16),
    view: &TopView,
    page: Option<&JobPage>,
    state: &mut TopState,
    now: Time,
) -> String {
    state.follow_selection(&state.ordering.ids(&view.jobs, view.at));
    let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).unwrap();
    let mut windows = TopWindows::default();
    terminal.draw(|frame| windows = draw(frame, view, page, state, now)).unwrap();
    state.windows = windows;
    terminal.backend().to_string()
}

fn drawn(size: (u16, u16), view: &TopView, state: &mut TopState) -> String {
    drawn_at(size, view, None, state, view.at)
}

fn log_of(text: &str) -> JobPage {
    let mut log = TopLog::new(running().id, 0);
    let record = |stream, text: &str| LogRecord { stream, at: at(1), bytes: text.as_bytes().to_vec() };
    let records = vec![record(LogStream::Stdout, text), record(LogStream::Stderr, "Traceback\n")];
    let chunk = LogChunk { records, ..LogChunk::default() };
    log.push(&LogPart { rank: running().id.attempt(2).rank(0), chunk });
    JobPage::Log(log)
}

#[test]
fn the_overview_is_reviewed_on_two_sizes_of_screens() {
    for (width, height) in [(80, 24), (160, 50)] {
        insta::assert_snapshot!(
            format!("top_{width}"),
            drawn((width, height), &sample(), &mut TopState::default())
        );
    }
    let mut state = TopState { selected: Some(JobId::new(77)), ..TopState::default() };
    state.ordering.column = SortColumn::State;
    insta::assert_snapshot!("top_crowd_80", drawn((80, 24), &crowd(), &mut state));
}

#[test]
fn the_pages_of_a_job_are_reviewed() {
    let job = running();
    let sheet = job_sheet(&job, &[], at(100), &TimeZone::UTC).lines().map(str::to_owned).collect();
    let mut state = TopState { page: TopPage::Sheet(job.id), ..TopState::default() };
    let page = JobPage::Sheet(job.id, sheet);
    insta::assert_snapshot!("top_sheet_80", drawn_at((80, 24), &sample(), Some(&page), &mut state, at(100)));
    let page = TopPage::Log { job: job.id, rank: 0 };
    let mut state = TopState { page, is_following: true, ..TopState::default() };
    let log = log_of(&(1..=40).map(|step| format!("step {step}\n")).collect::<String>());
    insta::assert_snapshot!("top_log_80", drawn_at((80, 24), &sample(), Some(&log), &mut state, at(100)));
    let mut state = TopState { page: TopPage::Help, ..TopState::default() };
    insta::assert_snapshot!("top_help_80", drawn((80, 24), &sample(), &mut state));
}

#[test]
fn every_row_is_in_sight_or_counted() {
    for (width, height) in [(80, 24), (160, 50), (60, 12)] {
        let mut state = TopState::default();
        let screen = drawn((width, height), &crowd(), &mut state);
        let windows = state.windows;
        let jobs = windows.jobs.describe(0);
        assert!(screen.contains(&format!("JOBS {jobs}")), "{screen}");
        assert!(screen.contains(&format!("DEVICES {}", windows.devices.describe(0))), "{screen}");
        let listed =
            screen.lines().filter(|line| line.contains("PENDING") || line.contains("RUNNING")).count();
        assert_eq!(listed, windows.jobs.height, "{screen}");
    }
}

#[test]
fn columns_that_do_not_fit_are_counted_and_come_with_the_arrow_key() {
    let mut state = TopState::default();
    let narrow = drawn((50, 24), &sample(), &mut state);
    let title =
        |screen: &str, table: &str| screen.lines().find(|line| line.contains(table)).unwrap().to_owned();
    assert!(title(&narrow, "DEVICES").contains("3 more columns: →"), "{narrow}");
    assert!(title(&narrow, "JOBS 3").contains("1 more column: →"), "{narrow}");
    assert!(!narrow.contains("waits for 2"), "{narrow}");
    assert_eq!(state.windows.columns_after, 1);
    state.skipped_columns = 3;
    let moved = drawn((50, 24), &sample(), &mut state);
    assert!(title(&moved, "JOBS 3").contains("3 more columns: ←"), "{moved}");
    assert!(moved.contains("waits for 2") && moved.contains("resnet"), "{moved}");
    assert_eq!(state.windows.columns_after, 0);
}

#[test]
fn a_question_and_what_came_of_it_are_at_the_bottom() {
    let mut state = TopState { prompt: TopPrompt::Cancel(running().id), ..TopState::default() };
    let last = |screen: &str| screen.lines().last().unwrap().to_owned();
    let question = last(&drawn((80, 24), &sample(), &mut state));
    assert!(question.contains("Cancel job 12? y: yes, any other key: no (resnet of ada)"), "{question}");
    let mut state = TopState { message: Some("Cancelled job 12".into()), ..TopState::default() };
    assert!(last(&drawn((80, 24), &sample(), &mut state)).contains("Cancelled job 12"));
    let mut state = TopState { prompt: TopPrompt::Filter, ..TopState::default() };
    state.ordering.filter = "ada".into();
    let screen = drawn((80, 24), &sample(), &mut state);
    assert!(last(&screen).contains("/ada_"), "{screen}");
    assert!(screen.contains("JOBS with 'ada' (of 3) 3"), "{screen}");
}

#[test]
fn figures_of_a_head_that_does_not_answer_are_called_old() {
    let second = |view: &TopView, age: u64| {
        let now = view.at + Span::from_secs(age);
        let screen = drawn_at((160, 24), view, None, &mut TopState::default(), now);
        screen.lines().nth(1).unwrap().to_owned()
    };
    let view = sample();
    assert!(second(&view, 1).contains("DEVICES"), "{}", second(&view, 1));
    assert!(second(&view, 9).contains("NO ANSWER from the head for 9 s"), "{}", second(&view, 9));
    let failed = TopView { failure: Some("cannot reach\u{202e} gpu1".into()), ..view };
    let banner = second(&failed, 2);
    assert!(banner.contains("NO ANSWER from the head for 2 s"), "{banner}");
    assert!(banner.contains("cannot reach\\u{202e} gpu1"), "{banner}");
}

#[test]
fn the_screen_says_what_keeps_the_head_from_its_work() {
    let head_problems = vec!["the journal cannot be written: \u{202e}disk full".to_owned()];
    let screen = drawn((120, 14), &TopView { head_problems, ..sample() }, &mut TopState::default());
    let second = screen.lines().nth(1).unwrap();
    assert!(second.contains("warning: the journal cannot be written: \\u{202e}disk full"), "{second}");
}

#[test]
fn a_screen_of_any_size_can_be_drawn() {
    let pages = [
        TopPage::Overview,
        TopPage::Help,
        TopPage::Sheet(running().id),
        TopPage::Log { job: running().id, rank: 0 },
    ];
    let log = log_of("名前 long enough to be wrapped\n");
    for view in [sample(), crowd(), view_of(Vec::new(), Vec::new())] {
        for size in [(1, 1), (2, 2), (5, 3), (20, 3), (40, 10), (300, 2), (300, 100)] {
            for page in pages {
                for prompt in [TopPrompt::None, TopPrompt::Filter, TopPrompt::Cancel(running().id)] {
                    let mut state = TopState { page, prompt, ..TopState::default() };
                    assert!(!drawn_at(size, &view, Some(&log), &mut state, at(200)).is_empty());
                }
            }
        }
    }
}

#[test]
fn the_screen_shows_codes_of_characters_that_are_not_visible() {
    let size = (200, 11);
    assert_printable(|text| {
        let nodes = nodes().into_iter().map(|it| hostile_text::node(it, text)).collect();
        let mut state = TopState::default();
        state.ordering.filter = text.to_owned();
        drawn(size, &view_of(nodes, vec![hostile_text::job(running(), text)]), &mut state)
    });
    let view = |text: &str| view_of(Vec::new(), vec![hostile_text::job(running(), text)]);
    let job = running().id;
    assert_printable(|text| {
        let mut state = TopState { page: TopPage::Sheet(job), ..TopState::default() };
        let page = JobPage::Sheet(job, vec![text.to_owned()]);
        drawn_at((100, 4), &view(text), Some(&page), &mut state, at(100))
    });
    assert_printable(|text| {
        let mut state = TopState { prompt: TopPrompt::Cancel(job), ..TopState::default() };
        drawn((100, 4), &view(text), &mut state)
    });
}
