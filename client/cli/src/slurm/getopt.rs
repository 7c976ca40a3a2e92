//! Reads options as Slurm's programs do, with `getopt_long`: `--name=value`, `--name value`, `-Nvalue`, `-N
//! value`, several letters in one word, and long names that are cut where they stay unique.

/// Whether an option has a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValueUse {
    Never,
    Always,
    /// Only behind `=`.
    Optional,
}

/// An option of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OptionName {
    pub(crate) short: Option<char>,
    pub(crate) long: &'static str,
    pub(crate) value: ValueUse,
}

/// What a word, or a part of one, says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ParsedWord {
    /// The option with this position in the table, as it was written.
    Known { position: usize, name: String, value: Option<String> },
    /// An option that is not in the table, as it was written.
    Unknown(String),
    /// The option as written lacks its value, or has one too many.
    Wrong(String),
    /// The first word that is no option, by its position.
    Operand(usize),
}

/// The options before the first word that is none, and that word.
pub(crate) fn parse_words(words: &[String], table: &[OptionName]) -> Vec<ParsedWord> {
    let mut reader = WordReader { words, next: 0, table, parsed: Vec::new() };
    while let Some(word) = words.get(reader.next) {
        reader.next += 1;
        match word.strip_prefix("--") {
            Some("") => break,
            Some(long) => reader.read_long(long),
            None if word.len() > 1 && word.starts_with('-') => reader.read_letters(&word[1..]),
            None => {
                reader.next -= 1;
                break;
            }
        }
    }
    if reader.next < words.len() {
        reader.parsed.push(ParsedWord::Operand(reader.next));
    }
    reader.parsed
}

struct WordReader<'a> {
    words: &'a [String],
    next: usize,
    table: &'a [OptionName],
    parsed: Vec<ParsedWord>,
}

impl WordReader<'_> {
    fn read_long(&mut self, text: &str) {
        let (name, joined) =
            text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value.to_owned())));
        let written = format!("--{name}");
        let word = match self.find_long(name) {
            None => ParsedWord::Unknown(written),
            Some(position) => match (self.table[position].value, joined) {
                (ValueUse::Never, Some(_)) => ParsedWord::Wrong(format!("{written} has no value")),
                (ValueUse::Never, None) => ParsedWord::Known { position, name: written, value: None },
                (ValueUse::Optional, value) => ParsedWord::Known { position, name: written, value },
                (ValueUse::Always, Some(value)) => {
                    ParsedWord::Known { position, name: written, value: Some(value) }
                }
                (ValueUse::Always, None) => self.with_next_value(position, written),
            },
        };
        self.parsed.push(word);
    }

    /// The option with this name, or the only one that begins with it.
    fn find_long(&self, name: &str) -> Option<usize> {
        let exact = self.table.iter().position(|option| option.long == name);
        exact.or_else(|| {
            let mut begun = (0..self.table.len()).filter(|at| self.table[*at].long.starts_with(name));
            begun.next().filter(|_| begun.next().is_none() && !name.is_empty())
        })
    }

    fn read_letters(&mut self, letters: &str) {
        for (at, letter) in letters.char_indices() {
            let written = format!("-{letter}");
            let Some(position) = self.table.iter().position(|option| option.short == Some(letter)) else {
                return self.parsed.push(ParsedWord::Unknown(written));
            };
            if self.table[position].value != ValueUse::Always {
                self.parsed.push(ParsedWord::Known { position, name: written, value: None });
                continue;
            }
            let word = match &letters[at + letter.len_utf8()..] {
                "" => self.with_next_value(position, written),
                rest => ParsedWord::Known { position, name: written, value: Some(rest.to_owned()) },
            };
            return self.parsed.push(word);
        }
    }

    fn with_next_value(&mut self, position: usize, name: String) -> ParsedWord {
        match self.words.get(self.next) {
            Some(value) => {
                self.next += 1;
                ParsedWord::Known { position, name, value: Some(value.clone()) }
            }
            None => ParsedWord::Wrong(format!("{name} needs a value")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: [OptionName; 4] = [
        OptionName { short: Some('n'), long: "ntasks", value: ValueUse::Always },
        OptionName { short: None, long: "ntasks-per-node", value: ValueUse::Always },
        OptionName { short: Some('H'), long: "hold", value: ValueUse::Never },
        OptionName { short: None, long: "exclusive", value: ValueUse::Optional },
    ];

    fn parsed(words: &str) -> Vec<String> {
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        let text = |word: ParsedWord| match word {
            ParsedWord::Known { position, value, .. } => {
                format!("{}={}", TABLE[position].long, value.unwrap_or_default())
            }
            ParsedWord::Unknown(name) => format!("?{name}"),
            ParsedWord::Wrong(why) => format!("!{why}"),
            ParsedWord::Operand(at) => format!("@{at}"),
        };
        parse_words(&words, &TABLE).into_iter().map(text).collect()
    }

    #[test]
    fn options_are_read_as_getopt_does() {
        for (words, expected) in [
            ("--ntasks=4 --ntasks 5 -n6 -n 7", "ntasks=4 ntasks=5 ntasks=6 ntasks=7"),
            (
                "--ntasks-p=2 --ho --excl=user --exclusive",
                "ntasks-per-node=2 hold= exclusive=user exclusive=",
            ),
            ("-Hn3 run --hold", "hold= ntasks=3 @1"),
            ("--exclusive user", "exclusive= @1"),
            ("-- --hold", "@1"),
            ("--nt=1 --frob=3 -xH - ", "?--nt ?--frob ?-x @3"),
            ("--hold=1", "!--hold has no value"),
            ("-n", "!-n needs a value"),
        ] {
            assert_eq!(parsed(words).join(" "), expected, "{words}");
        }
    }
}
