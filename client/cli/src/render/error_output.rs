//! The end of the standard error of a job that has failed, for `explain`: bounded, and harmless to a
//! terminal.

use cohabit_client::types::RankId;
use cohabit_console::printable_line;
use serde::Serialize;

use super::plain_line::plain_line;

/// The most lines that are shown.
const MOST_LINES: usize = 10;

/// The most bytes of all lines that are shown.
const MOST_BYTES: usize = 2 << 10;

/// `{"attempt", "rank", "node", "lines", "problem"}`: the last lines of standard error, or why there are
/// none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct ErrorOutputDocument {
    pub(crate) attempt: u32,
    pub(crate) rank: u32,
    pub(crate) node: String,
    /// The oldest first.
    pub(crate) lines: Vec<String>,
    /// Why the output could not be read.
    pub(crate) problem: Option<String>,
}

impl ErrorOutputDocument {
    /// Of what this rank has printed to standard error, the last lines.
    pub(crate) fn new(rank: RankId, node: String, printed: Result<&[u8], String>) -> ErrorOutputDocument {
        let (lines, problem) = match printed {
            Ok(bytes) => (last_lines(bytes), None),
            Err(problem) => (Vec::new(), Some(problem)),
        };
        ErrorOutputDocument { attempt: rank.attempt.attempt, rank: rank.rank, node, lines, problem }
    }

    /// The same for people; `job` is what `cohabit logs` takes.
    pub(crate) fn describe(&self, job: &str) -> String {
        let place = format!("rank {} on node {}", self.rank, printable_line(&self.node));
        match &self.problem {
            Some(problem) => {
                format!("\nStandard error of {place} cannot be shown: {}\n", printable_line(problem))
            }
            None if self.lines.is_empty() => {
                format!(
                    "\nNothing was printed to standard error lately by {place}: see `cohabit logs {job}`\n"
                )
            }
            None => {
                let lines = self.lines.iter().map(|line| format!("  {line}\n")).collect::<String>();
                format!("\nLast lines of standard error of {place}:\n{lines}")
            }
        }
    }
}

/// The last lines, the oldest first. Where the bytes are too many, the oldest line begins with `…`.
fn last_lines(bytes: &[u8]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut left = MOST_BYTES;
    let ended = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    if ended.is_empty() {
        return lines;
    }
    for line in ended.rsplit(|byte| *byte == b'\n').take(MOST_LINES) {
        let line = plain_line(line);
        if line.len() > left {
            lines.push(end_of(&line, left));
            break;
        }
        left -= line.len();
        lines.push(line);
    }
    lines.reverse();
    lines
}

/// The end of a line in at most this many bytes, and `…` before it.
fn end_of(line: &str, most: usize) -> String {
    let start = (line.len() - most..=line.len()).find(|at| line.is_char_boundary(*at));
    format!("…{}", &line[start.unwrap_or(line.len())..])
}

#[cfg(test)]
mod tests {
    use cohabit_client::types::JobId;

    use super::*;
    use crate::render::hostile_text::assert_printable;

    fn described(printed: Result<&[u8], String>) -> String {
        let rank = JobId::new(7).attempt(2).rank(1);
        ErrorOutputDocument::new(rank, "gpu1".into(), printed).describe("7")
    }

    #[test]
    fn the_last_lines_are_shown_with_their_rank() {
        let text = described(Ok(b"one\n\x1b[31mTraceback\x1b[0m\n10%\r20%"));
        assert_eq!(
            text,
            "\nLast lines of standard error of rank 1 on node gpu1:\n  one\n  Traceback\n  20%\n"
        );
    }

    #[test]
    fn silence_and_a_problem_take_one_line() {
        assert_eq!(
            described(Ok(b"")),
            "\nNothing was printed to standard error lately by rank 1 on node gpu1: see `cohabit logs 7`\n"
        );
        assert_eq!(
            described(Err("its node is not connected".into())),
            "\nStandard error of rank 1 on node gpu1 cannot be shown: its node is not connected\n"
        );
    }

    #[test]
    fn lines_and_bytes_are_bounded() {
        let many = (1..=100).map(|line| format!("line {line}\n")).collect::<String>();
        let lines = last_lines(many.as_bytes());
        assert_eq!((lines.len(), lines[0].as_str(), lines[9].as_str()), (10, "line 91", "line 100"));
        let long = last_lines(format!("{}\nend\n", "ä".repeat(4_000)).as_bytes());
        assert_eq!((long.len(), long[1].as_str()), (2, "end"));
        assert!(long[0].starts_with("…ä") && long[0].len() <= MOST_BYTES + 3, "{}", long[0].len());
        assert_eq!(last_lines(b"\n\n"), ["", ""]);
    }

    #[test]
    fn nodes_and_problems_show_codes_of_characters_that_are_not_visible() {
        let rank = JobId::new(7).attempt(2).rank(1);
        assert_printable(|text| {
            ErrorOutputDocument::new(rank, text.to_owned(), Err(text.to_owned())).describe("7")
        });
    }
}
