//! Finds the progress bars of training programs in raw output.
//!
//! Pure. It recognises `120/1000 [00:12<01:20, 8.1it/s]` and ` 45%|███ | 450/1000 [00:01<` (tqdm), `12/34
//! [====>...]` and `12/34 ━━━━` (Keras), and `Epoch 3/10`. If there are epochs and bars, a bar counts within
//! its epoch. Output may come in any pieces, with carriage returns, colours and binary data.

/// The rest of a longer line is ignored.
const MAX_LINE: usize = 4096;

/// The steps done and the total.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BarReading {
    /// Steps done.
    pub step: u64,
    /// All steps.
    pub total: u64,
}

/// The parser of one stream.
#[derive(Debug, Default)]
pub struct BarParser {
    line: Vec<u8>,
    epoch: Option<BarReading>,
    /// Steps within an epoch, once a bar was found.
    epoch_steps: Option<u64>,
}

impl BarParser {
    /// Parses output and returns the last bar in it.
    pub fn feed(&mut self, bytes: &[u8]) -> Option<BarReading> {
        let mut newest = None;
        let mut lines = bytes.split(|byte| matches!(byte, b'\n' | b'\r' | b'\x08'));
        self.extend(lines.next().unwrap_or_default());
        for begin in lines {
            newest = self.end_of_line().or(newest);
            self.extend(begin);
        }
        self.unfinished().or(newest)
    }

    fn extend(&mut self, bytes: &[u8]) {
        let room = MAX_LINE - self.line.len();
        self.line.extend(&bytes[..bytes.len().min(room)]);
    }

    fn end_of_line(&mut self) -> Option<BarReading> {
        let text = readable(&std::mem::take(&mut self.line))?;
        match bar(&text) {
            Some(bar) => Some(self.within_epoch(bar)),
            None => epoch(&text).map(|epoch| self.begin(epoch)),
        }
    }

    /// A bar is recognised before its line ends, because its numbers are followed by other text.
    fn unfinished(&mut self) -> Option<BarReading> {
        let bar = bar(&readable(&self.line)?)?;
        Some(self.within_epoch(bar))
    }

    fn within_epoch(&mut self, bar: BarReading) -> BarReading {
        let Some(epoch) = self.epoch else { return bar };
        self.epoch_steps = Some(bar.total);
        let done = (epoch.step - 1).saturating_mul(bar.total);
        BarReading { step: done.saturating_add(bar.step), total: epoch.total.saturating_mul(bar.total) }
    }

    fn begin(&mut self, epoch: BarReading) -> BarReading {
        self.epoch = Some(epoch);
        match self.epoch_steps {
            Some(steps) => self.within_epoch(BarReading { step: 0, total: steps }),
            None => epoch,
        }
    }
}

/// The text without escape sequences; `None` if it cannot contain a bar.
fn readable(line: &[u8]) -> Option<String> {
    if !line.contains(&b'/') {
        return None;
    }
    let text = String::from_utf8_lossy(line);
    let mut pieces = text.split("\x1b[");
    let plain = pieces.next().unwrap_or_default().to_owned();
    Some(pieces.fold(plain, |plain, piece| plain + after_sequence(piece)))
}

/// The text after an escape sequence without its introducer. The sequence ends with a letter.
fn after_sequence(piece: &str) -> &str {
    piece.find(|c: char| c.is_ascii_alphabetic()).map_or("", |end| &piece[end + 1..])
}

/// The last `m/n` that is followed by a bar.
fn bar(text: &str) -> Option<BarReading> {
    fractions(text).filter(|(_, rest)| is_bar(rest.trim_start())).map(|(seen, _)| seen).last()
}

fn is_bar(rest: &str) -> bool {
    if let Some(inside) = rest.strip_prefix('[') {
        let clock = inside.trim_start_matches(digit);
        return inside.starts_with(['=', '>', '#', '.'])
            || clock.len() < inside.len() && clock.starts_with(':');
    }
    rest.starts_with(['━', '─', '╸'])
}

/// `Epoch 3/10`, `epoch [3/10]`, `Epoch: 3/10 - loss …`.
fn epoch(text: &str) -> Option<BarReading> {
    let word = text.to_ascii_lowercase().find("epoch")?;
    let rest = &text[word + "epoch".len()..];
    let rest = rest.trim_start_matches([' ', ':', '[', '(', '=', '#']);
    let slash = rest.len() - rest.trim_start_matches(digit).len();
    fraction_at(rest, slash).map(|(seen, _)| seen).filter(|seen| seen.step > 0)
}

/// All fractions, each with the text after it.
fn fractions(text: &str) -> impl Iterator<Item = (BarReading, &str)> {
    text.match_indices('/').filter_map(|(slash, _)| fraction_at(text, slash))
}

/// The fraction around this slash, if 0 <= m <= n, n > 0, and no other text adjoins it.
fn fraction_at(text: &str, slash: usize) -> Option<(BarReading, &str)> {
    let before = &text[..slash];
    let behind = text[slash..].strip_prefix('/')?;
    let front = before.trim_end_matches(digit);
    let rest = behind.trim_start_matches(digit);
    let seen = BarReading {
        step: count(&before[front.len()..])?,
        total: count(&behind[..behind.len() - rest.len()])?,
    };
    let free = !front.ends_with(clings) && !rest.starts_with(clings);
    (free && seen.total > 0 && seen.step <= seen.total).then_some((seen, rest))
}

fn digit(c: char) -> bool {
    c.is_ascii_digit()
}

fn clings(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '/' | '.' | '-' | '_')
}

fn count(digits: &str) -> Option<u64> {
    digits.parse().ok().filter(|_| digits.len() <= 15)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn seen(text: &str) -> Option<(u64, u64)> {
        BarParser::default().feed(text.as_bytes()).map(|seen| (seen.step, seen.total))
    }

    #[test]
    fn common_bars_are_recognized() {
        assert_eq!(seen("120/1000 [00:12<01:20, 8.1it/s]\n"), Some((120, 1000)));
        assert_eq!(seen(" 45%|███▌      | 450/1000 [00:01<00:02, 8.1it/s]\r"), Some((450, 1000)));
        assert_eq!(seen("Epoch 0:  45%|███ | 45/100 [1:00:01<00:02, loss=0.3]\n"), Some((45, 100)));
        assert_eq!(seen("12/34 [=======>......] - ETA: 1s - loss: 0.2\n"), Some((12, 34)));
        assert_eq!(
            seen("\x1b[1m12/34\x1b[0m \x1b[32m━━━━━━\x1b[0m\x1b[37m━━━\x1b[0m 1s 2ms/step\n"),
            Some((12, 34))
        );
        assert_eq!(seen("Epoch 3/10\n"), Some((3, 10)));
        assert_eq!(seen("[Epoch 3/10] loss 0.3\n"), Some((3, 10)));
        assert_eq!(seen("epoch: [3/10] loss=0.3\n"), Some((3, 10)));
    }

    #[test]
    fn a_bar_is_recognized_before_its_line_ends() {
        assert_eq!(seen("\r 45%|███ | 450/1000 [00:01<"), Some((450, 1000)));
        assert_eq!(seen("\r 45%|███ | 450/10"), None);
        assert_eq!(seen("Epoch 3/1"), None);
    }

    #[test]
    fn other_text_is_no_bar() {
        for text in [
            "11/21 [INFO] starting\n",
            "2026/11/21 [00:12] log\n",
            "loading /data/12/34 [ok]\n",
            "12/0 [00:12<\n",
            "35/34 [00:12<\n",
            "v1.12/34 [00:12<\n",
            "1234567890123456/1234567890123457 [00:12<\n",
            "epochs are in epoch_3/10\n",
            "Epoch done, see a/b\n",
            "epoch 0/10\n",
            "passed 3/10 tests\n",
            "45%\n",
        ] {
            assert_eq!(seen(text), None, "{text}");
        }
    }

    #[test]
    fn bars_count_within_their_epoch() {
        let mut bars = BarParser::default();
        let mut feed = |text: &str| bars.feed(text.as_bytes()).map(|seen| (seen.step, seen.total));
        assert_eq!(feed("Epoch 1/10\n"), Some((1, 10)));
        assert_eq!(feed("17/34 [====>....]\r"), Some((17, 340)));
        assert_eq!(feed("34/34 [=========]\n"), Some((34, 340)));
        assert_eq!(feed("Epoch 2/10\n"), Some((34, 340)));
        assert_eq!(feed("1/34 [>........]\r"), Some((35, 340)));
    }

    #[test]
    fn an_endless_line_takes_bounded_memory() {
        let mut bars = BarParser::default();
        (0..1_000).for_each(|_| assert_eq!(bars.feed(&[b'/'; 65_536]), None));
        assert!(bars.line.len() <= MAX_LINE);
        assert_eq!(bars.feed(b"\n3/4 [00:01<"), Some(BarReading { step: 3, total: 4 }));
    }

    proptest! {
        #[test]
        fn binary_output_is_ignored(pieces in prop::collection::vec(any::<Vec<u8>>(), 0..20)) {
            let mut bars = BarParser::default();
            for piece in pieces {
                if let Some(seen) = bars.feed(&piece) {
                    prop_assert!(seen.step <= seen.total);
                }
            }
        }

        #[test]
        fn it_does_not_matter_how_the_output_is_cut(cuts in prop::collection::vec(0_usize..90, 0..9)) {
            let text = " 44%|██ | 440/1000 [00:01<\r\x1b[32m 45%|███\x1b[0m| 450/1000 \
                [00:01<00:02, 8.1it/s]\n";
            let text = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let mut bars = BarParser::default();
            let newest = cuts.windows(2).filter_map(|cut| bars.feed(&text[cut[0]..cut[1]])).last();
            prop_assert_eq!(newest, Some(BarReading { step: 450, total: 1000 }));
        }
    }
}
