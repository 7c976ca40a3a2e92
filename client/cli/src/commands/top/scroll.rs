//! Positions in lists that are longer than their place on the screen.

use ratatui::crossterm::event::KeyCode;

/// A list and its place on the screen, as it was last drawn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct RowWindow {
    /// How many rows the list has.
    pub(super) rows: usize,
    /// How many of them fit.
    pub(super) height: usize,
}

/// A step in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScrollStep {
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
}

impl ScrollStep {
    /// The step of a key.
    #[expect(clippy::wildcard_enum_match_arm, reason = "the other keys are no steps")]
    pub(super) const fn of_key(key: KeyCode) -> Option<ScrollStep> {
        match key {
            KeyCode::Up => Some(ScrollStep::Up),
            KeyCode::Down => Some(ScrollStep::Down),
            KeyCode::PageUp => Some(ScrollStep::PageUp),
            KeyCode::PageDown => Some(ScrollStep::PageDown),
            KeyCode::Home => Some(ScrollStep::Home),
            KeyCode::End => Some(ScrollStep::End),
            _ => None,
        }
    }

    /// The position after this step, of at most `last`.
    fn from(self, position: usize, page: usize, last: usize) -> usize {
        let page = page.max(1);
        let next = match self {
            ScrollStep::Up => position.saturating_sub(1),
            ScrollStep::Down => position.saturating_add(1),
            ScrollStep::PageUp => position.saturating_sub(page),
            ScrollStep::PageDown => position.saturating_add(page),
            ScrollStep::Home => 0,
            ScrollStep::End => last,
        };
        next.min(last)
    }
}

impl RowWindow {
    /// The row that is selected after a step.
    pub(super) fn select(self, selected: usize, step: ScrollStep) -> usize {
        step.from(selected, self.height, self.rows.saturating_sub(1))
    }

    /// The first row that is shown after a step.
    pub(super) fn scroll(self, first: usize, step: ScrollStep) -> usize {
        step.from(first.min(self.last_first()), self.height, self.last_first())
    }

    /// The first row to show, so that the list fills its place.
    pub(super) fn clamp(self, first: usize) -> usize {
        first.min(self.last_first())
    }

    /// The first row to show, so that a selected row is in sight.
    pub(super) fn reveal(self, first: usize, selected: usize) -> usize {
        let least = (selected + 1).saturating_sub(self.height);
        self.clamp(first.clamp(least.min(selected), selected))
    }

    /// The first row of the last page.
    pub(super) fn last_first(self) -> usize {
        self.rows.saturating_sub(self.height)
    }

    /// `1-12 of 140, 128 below`; only the count where all rows are shown.
    pub(super) fn describe(self, first: usize) -> String {
        let shown = self.height.min(self.rows.saturating_sub(first));
        if shown == self.rows {
            return self.rows.to_string();
        }
        let part = match shown {
            0 => format!("0 of {}", self.rows),
            _ => format!("{}-{} of {}", first + 1, first + shown, self.rows),
        };
        let (above, below) = (first, self.rows - first - shown);
        let hidden = [(above, "above"), (below, "below")].into_iter().filter(|(count, _)| *count > 0);
        hidden.fold(part, |text, (count, place)| format!("{text}, {count} {place}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: RowWindow = RowWindow { rows: 10, height: 4 };

    #[test]
    fn steps_end_at_the_first_and_the_last_row() {
        for (from, step, to) in [
            (0, ScrollStep::Up, 0),
            (3, ScrollStep::Up, 2),
            (9, ScrollStep::Down, 9),
            (1, ScrollStep::PageDown, 5),
            (8, ScrollStep::PageDown, 9),
            (5, ScrollStep::PageUp, 1),
            (2, ScrollStep::PageUp, 0),
            (5, ScrollStep::Home, 0),
            (5, ScrollStep::End, 9),
            (usize::MAX, ScrollStep::Down, 9),
        ] {
            assert_eq!(WINDOW.select(from, step), to, "{step:?} from {from}");
        }
        assert_eq!(WINDOW.scroll(0, ScrollStep::End), 6);
        assert_eq!(WINDOW.scroll(usize::MAX, ScrollStep::Up), 5);
        let empty = RowWindow::default();
        assert_eq!((empty.select(3, ScrollStep::End), empty.scroll(3, ScrollStep::PageDown)), (0, 0));
    }

    #[test]
    fn a_selected_row_is_in_sight() {
        for (first, selected, shown) in [(0, 3, 0), (0, 4, 1), (5, 2, 2), (9, 9, 6), (2, 3, 2)] {
            assert_eq!(WINDOW.reveal(first, selected), shown, "{selected} from {first}");
        }
        assert_eq!(RowWindow { rows: 3, height: 0 }.reveal(0, 2), 2);
    }

    #[test]
    fn a_window_says_what_it_does_not_show() {
        for (first, text) in
            [(0, "1-4 of 10, 6 below"), (3, "4-7 of 10, 3 above, 3 below"), (6, "7-10 of 10, 6 above")]
        {
            assert_eq!(WINDOW.describe(first), text);
        }
        assert_eq!(RowWindow { rows: 4, height: 4 }.describe(0), "4");
        assert_eq!(RowWindow { rows: 4, height: 0 }.describe(0), "0 of 4, 4 below");
        assert_eq!(RowWindow::default().describe(0), "0");
    }
}
