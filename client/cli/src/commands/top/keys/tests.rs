//! What keys do, one after another.

use super::super::jobs::SortColumn;
use super::*;

/// The jobs 1 to `count`, and a state whose window shows four of them.
fn with_jobs(count: u64) -> (Vec<JobId>, TopState) {
    let jobs: Vec<JobId> = (1..=count).map(JobId::new).collect();
    let mut state = TopState::default();
    state.windows.jobs = RowWindow { rows: jobs.len(), height: 4 };
    state.follow_selection(&jobs);
    (jobs, state)
}

fn press_all(state: &mut TopState, keys: &[KeyCode], jobs: &[JobId]) -> Vec<TopAction> {
    let pressed = keys.iter().filter_map(|key| {
        let action = state.press(KeyEvent::from(*key), jobs);
        state.follow_selection(jobs);
        action
    });
    pressed.collect()
}

fn typed(text: &str) -> Vec<KeyCode> {
    text.chars().map(KeyCode::Char).collect()
}

#[test]
fn arrow_and_page_keys_move_the_selection_and_keep_it_in_sight() {
    let (jobs, mut state) = with_jobs(20);
    for (key, row, first) in [
        (KeyCode::Down, 1, 0),
        (KeyCode::PageDown, 5, 2),
        (KeyCode::Up, 4, 2),
        (KeyCode::End, 19, 16),
        (KeyCode::PageUp, 15, 15),
        (KeyCode::Home, 0, 0),
        (KeyCode::Up, 0, 0),
    ] {
        assert!(press_all(&mut state, &[key], &jobs).is_empty());
        assert_eq!((state.selected_row, state.first_job), (row, first), "{key:?}");
        assert_eq!(state.selected, Some(jobs[row]));
    }
}

#[test]
fn the_selection_follows_its_job_and_else_stays_in_its_row() {
    let (jobs, mut state) = with_jobs(5);
    press_all(&mut state, &[KeyCode::Down, KeyCode::Down], &jobs);
    state.follow_selection(&jobs[1..]);
    assert_eq!((state.selected, state.selected_row), (Some(jobs[2]), 1));
    state.follow_selection(&[jobs[0], jobs[3]]);
    assert_eq!(state.selected, Some(jobs[3]), "the job of that row");
    state.follow_selection(&[]);
    assert_eq!((state.selected, state.selected_row), (None, 0));
    let keys = [KeyCode::Enter, KeyCode::Char('l'), KeyCode::Char('c'), KeyCode::Char('y')];
    assert_eq!(press_all(&mut state, &keys, &[]), [], "there is no job to act on");
}

#[test]
fn a_filter_is_typed_and_kept_or_cleared() {
    let (jobs, mut state) = with_jobs(3);
    let keys = [typed("/adaq"), vec![KeyCode::Backspace]].concat();
    assert_eq!(press_all(&mut state, &keys, &jobs), [], "q is a letter here");
    assert_eq!((state.ordering.filter.as_str(), state.prompt), ("ada", TopPrompt::Filter));
    press_all(&mut state, &[KeyCode::Enter], &jobs);
    assert_eq!((state.ordering.filter.as_str(), state.prompt), ("ada", TopPrompt::None));
    press_all(&mut state, &[KeyCode::Esc], &jobs);
    assert_eq!(state.ordering.filter, "");
    press_all(&mut state, &[typed("/eve"), vec![KeyCode::Esc]].concat(), &jobs);
    assert_eq!((state.ordering.filter.as_str(), state.prompt), ("", TopPrompt::None));
    press_all(&mut state, &typed(&format!("/{}", "x".repeat(2 * LONGEST_FILTER))), &jobs);
    assert_eq!(state.ordering.filter.len(), LONGEST_FILTER);
}

#[test]
fn the_column_and_the_direction_of_the_order_change() {
    let (jobs, mut state) = with_jobs(3);
    press_all(&mut state, &typed("ssr"), &jobs);
    assert_eq!((state.ordering.column, state.ordering.is_descending), (SortColumn::User, true));
}

#[test]
fn a_job_is_cancelled_after_a_yes_only() {
    let (jobs, mut state) = with_jobs(3);
    for open in ["", "l", "\n"] {
        for key in ["c", "k"] {
            let keys: Vec<KeyCode> = open
                .chars()
                .map(|key| if key == '\n' { KeyCode::Enter } else { KeyCode::Char(key) })
                .collect();
            press_all(&mut state, &keys, &jobs);
            press_all(&mut state, &typed(key), &jobs);
            assert_eq!(state.prompt, TopPrompt::Cancel(jobs[0]));
            assert_eq!(press_all(&mut state, &typed("n"), &jobs), []);
            assert_eq!(state.message.as_deref(), Some("job 1 is not cancelled"));
            assert_eq!(press_all(&mut state, &[KeyCode::Enter], &jobs).len(), usize::from(open != "\n"));
            press_all(&mut state, &[KeyCode::Esc], &jobs);
            let cancelled = press_all(&mut state, &typed(&format!("{key}y")), &jobs);
            assert_eq!(cancelled, [TopAction::Cancel(jobs[0])]);
            assert_eq!((state.prompt, state.page), (TopPrompt::None, TopPage::Overview));
        }
    }
}

#[test]
fn pages_open_and_close() {
    let (jobs, mut state) = with_jobs(3);
    let job = jobs[1];
    let log = |rank| TopPage::Log { job, rank };
    for (key, page) in [
        (KeyCode::Enter, TopPage::Sheet(job)),
        (KeyCode::Char('l'), log(0)),
        (KeyCode::Right, log(1)),
        (KeyCode::Left, log(0)),
        (KeyCode::Enter, TopPage::Sheet(job)),
        (KeyCode::Esc, TopPage::Overview),
        (KeyCode::Char('?'), TopPage::Help),
        (KeyCode::Char('q'), TopPage::Overview),
        (KeyCode::Char('l'), log(0)),
    ] {
        if state.page == TopPage::Overview {
            press_all(&mut state, &[KeyCode::Home, KeyCode::Down], &jobs);
        }
        assert_eq!(press_all(&mut state, &[key], &jobs), [TopAction::Open(page)], "{key:?}");
        assert_eq!(state.page, page);
    }
    assert_eq!(press_all(&mut state, &[KeyCode::Left], &jobs), [], "there is no rank below 0");
}

#[test]
fn output_is_followed_until_it_is_scrolled_back_and_again_at_its_end() {
    let (jobs, mut state) = with_jobs(1);
    press_all(&mut state, &typed("l"), &jobs);
    assert!(state.is_following);
    state.windows.page = RowWindow { rows: 100, height: 10 };
    press_all(&mut state, &[KeyCode::PageUp], &jobs);
    assert_eq!((state.is_following, state.first_line), (false, 80));
    press_all(&mut state, &[KeyCode::End], &jobs);
    assert!(state.is_following);
}

#[test]
fn the_devices_scroll_once_they_have_the_focus() {
    let (jobs, mut state) = with_jobs(3);
    state.windows.devices = RowWindow { rows: 9, height: 3 };
    press_all(&mut state, &[KeyCode::Tab, KeyCode::PageDown, KeyCode::Down], &jobs);
    assert_eq!((state.focus, state.first_device, state.selected_row), (TopFocus::Devices, 4, 0));
    press_all(&mut state, &[KeyCode::Tab, KeyCode::Down], &jobs);
    assert_eq!((state.focus, state.first_device, state.selected_row), (TopFocus::Jobs, 4, 1));
}

#[test]
fn columns_move_while_there_are_more_to_the_right() {
    let (jobs, mut state) = with_jobs(1);
    state.windows.columns_after = 1;
    press_all(&mut state, &[KeyCode::Right, KeyCode::Right], &jobs);
    assert_eq!(state.skipped_columns, 2);
    state.windows.columns_after = 0;
    press_all(&mut state, &[KeyCode::Right, KeyCode::Left], &jobs);
    assert_eq!(state.skipped_columns, 1);
    press_all(&mut state, &[KeyCode::Tab], &jobs);
    assert_eq!(state.skipped_columns, 0, "the other table starts at its first column");
}

#[test]
fn the_interrupt_key_quits_everywhere() {
    let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    for open in ["", "?", "/", "c", "l"] {
        let (jobs, mut state) = with_jobs(2);
        press_all(&mut state, &typed(open), &jobs);
        assert_eq!(state.press(interrupt, &jobs), Some(TopAction::Quit), "after '{open}'");
    }
    let (jobs, mut state) = with_jobs(2);
    assert_eq!(press_all(&mut state, &typed("q"), &jobs), [TopAction::Quit]);
}
