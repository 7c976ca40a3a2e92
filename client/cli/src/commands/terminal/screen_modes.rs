//! The modes that a job has set on the person's terminal, such as a second screen, no cursor, or reports of
//! the mouse. Who detaches gets the terminal back without them.

use std::collections::BTreeSet;

/// The most digits and semicolons that are kept of a sequence.
const MOST_PARAMETERS: usize = 64;
/// The mode that shows the cursor, which is on at first.
const CURSOR: u16 = 25;
/// Modes that are ended: cursor keys, mouse, focus, screens, pasting.
const KNOWN: [u16; 12] = [1, CURSOR, 47, 1000, 1002, 1003, 1004, 1005, 1006, 1015, 1049, 2004];

/// Follows the sequences `ESC [ ? … h` and `ESC [ ? … l` in what is printed.
#[derive(Debug, Default)]
pub(super) struct ScreenModes {
    /// Modes that are not as they were.
    changed: BTreeSet<u16>,
    state: SequenceState,
}

#[derive(Debug, Default)]
enum SequenceState {
    #[default]
    Text,
    Escape,
    Bracket,
    /// The parameters so far.
    Private(Vec<u8>),
}

impl ScreenModes {
    /// Takes in what is printed.
    pub(super) fn follow(&mut self, printed: &[u8]) {
        for byte in printed {
            self.state = match (std::mem::take(&mut self.state), byte) {
                (_, 0x1b) => SequenceState::Escape,
                (SequenceState::Escape, b'[') => SequenceState::Bracket,
                (SequenceState::Bracket, b'?') => SequenceState::Private(Vec::new()),
                (SequenceState::Private(mut parameters), b'0'..=b'9' | b';')
                    if parameters.len() < MOST_PARAMETERS =>
                {
                    parameters.push(*byte);
                    SequenceState::Private(parameters)
                }
                (SequenceState::Private(parameters), b'h' | b'l') => {
                    self.set(&parameters, *byte == b'h');
                    SequenceState::Text
                }
                (
                    SequenceState::Text
                    | SequenceState::Escape
                    | SequenceState::Bracket
                    | SequenceState::Private(_),
                    _,
                ) => SequenceState::Text,
            };
        }
    }

    fn set(&mut self, parameters: &[u8], is_on: bool) {
        let modes = parameters.split(|byte| *byte == b';');
        let modes = modes.filter_map(|digits| std::str::from_utf8(digits).ok()?.parse::<u16>().ok());
        for mode in modes.filter(|mode| KNOWN.contains(mode)) {
            match is_on == (mode == CURSOR) {
                true => self.changed.remove(&mode),
                false => self.changed.insert(mode),
            };
        }
    }

    /// Whether a program shows a second screen, which a line between would spoil.
    pub(super) fn has_second_screen(&self) -> bool {
        self.changed.contains(&47) || self.changed.contains(&1049)
    }

    /// What gives the terminal back its modes and its colours.
    pub(super) fn restoring(&self) -> String {
        let one = |mode: &u16| format!("\x1b[?{mode}{}", if *mode == CURSOR { 'h' } else { 'l' });
        // The second screen is left last: what is ended before belongs to it.
        self.changed.iter().rev().map(one).rev().collect::<String>() + "\x1b[0m"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(printed: &[&str]) -> String {
        let mut modes = ScreenModes::default();
        printed.iter().for_each(|piece| modes.follow(piece.as_bytes()));
        modes.restoring()
    }

    #[test]
    fn modes_that_a_program_has_set_are_ended() {
        assert_eq!(after(&["\x1b[?1049h\x1b[?25l\x1b[1;1Hhello"]), "\x1b[?25h\x1b[?1049l\x1b[0m");
        assert_eq!(after(&["\x1b[?1000;1006h", "\x1b[?10", "00l"]), "\x1b[?1006l\x1b[0m");
        assert_eq!(after(&["\x1b[?1049h", "\x1b[?1049l", "\x1b[?25l\x1b[?25h"]), "\x1b[0m");
    }

    #[test]
    fn a_second_screen_is_noticed_until_it_is_left() {
        let mut modes = ScreenModes::default();
        modes.follow(b"\x1b[?25l");
        assert!(!modes.has_second_screen());
        modes.follow(b"\x1b[?1049h");
        assert!(modes.has_second_screen());
        modes.follow(b"\x1b[?1049l");
        assert!(!modes.has_second_screen());
    }

    #[test]
    fn other_sequences_change_nothing() {
        assert_eq!(after(&["\x1b[31mred\x1b[0m \x1b]0;title\x07 \x1b[?12h \x1b[?x"]), "\x1b[0m");
        assert_eq!(after(&[&format!("\x1b[?{}h", "1;".repeat(1000))]), "\x1b[0m");
    }
}
