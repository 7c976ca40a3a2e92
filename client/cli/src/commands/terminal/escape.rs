//! The keys that are meant for this program: `~` and another one at the beginning of a line, as for ssh.

/// What the person wants of this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EscapeAction {
    /// `~.`: leaves the job to itself.
    Detach,
    /// `~?`: shows the keys.
    Help,
}

/// Tells keys for the job from those for this program.
#[derive(Debug, Default)]
pub(super) struct EscapeParser {
    state: EscapeState,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum EscapeState {
    /// Nothing was typed on this line.
    #[default]
    LineStart,
    Within,
    /// A `~` at the beginning of a line, which is held back.
    Tilde,
}

impl EscapeParser {
    /// What of the keys is for the job, and what is wanted of this program: then the rest is dropped.
    pub(super) fn parse(&mut self, keys: &[u8]) -> (Vec<u8>, Option<EscapeAction>) {
        let mut typed = Vec::with_capacity(keys.len() + 1);
        for key in keys {
            match (self.state, key) {
                (EscapeState::LineStart, b'~') => {
                    self.state = EscapeState::Tilde;
                    continue;
                }
                (EscapeState::Tilde, b'.') => return (typed, Some(EscapeAction::Detach)),
                (EscapeState::Tilde, b'?') => {
                    self.state = EscapeState::LineStart;
                    return (typed, Some(EscapeAction::Help));
                }
                (EscapeState::Tilde, b'~') => {}
                (EscapeState::Tilde, _) => typed.push(b'~'),
                (EscapeState::LineStart | EscapeState::Within, _) => {}
            }
            typed.push(*key);
            self.state =
                if matches!(key, b'\r' | b'\n') { EscapeState::LineStart } else { EscapeState::Within };
        }
        (typed, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(keys: &[&str]) -> (String, Option<EscapeAction>) {
        let (mut parser, mut all) = (EscapeParser::default(), Vec::new());
        for piece in keys {
            let (typed, action) = parser.parse(piece.as_bytes());
            all.extend(typed);
            if action.is_some() {
                return (String::from_utf8(all).unwrap(), action);
            }
        }
        (String::from_utf8(all).unwrap(), None)
    }

    #[test]
    fn an_escape_stands_at_the_beginning_of_a_line() {
        assert_eq!(parsed(&["ls\r~", "."]), ("ls\r".into(), Some(EscapeAction::Detach)));
        assert_eq!(parsed(&["~?"]), ("".into(), Some(EscapeAction::Help)));
        assert_eq!(parsed(&["cd ~.", "\r"]), ("cd ~.\r".into(), None));
    }

    #[test]
    fn other_keys_reach_the_job() {
        assert_eq!(parsed(&["~~.\r"]), ("~.\r".into(), None));
        assert_eq!(parsed(&["~/bin/x\r"]), ("~/bin/x\r".into(), None));
        assert_eq!(parsed(&["~", "\r", "~."]), ("~\r".into(), Some(EscapeAction::Detach)));
        assert_eq!(parsed(&["größe\u{3}\u{4}"]), ("größe\u{3}\u{4}".into(), None));
    }
}
