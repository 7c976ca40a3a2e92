//! Formats of tables by the columns that their first line names.

/// One of the formats that a kind of file may have.
pub trait TableFormat: Copy + 'static {
    /// Every format, in the order in which they are listed. Of two that a line fits as well, the first
    /// counts.
    const ALL: &'static [Self];
    /// What a file of these formats is, for people: `trace`.
    const CONTENT: &'static str;

    /// The name on command lines.
    fn name(self) -> &'static str;

    /// The columns that a file of this format must have; empty for a format without a heading.
    fn columns(self) -> &'static [&'static str];

    /// Whether this line begins a file of a format without a heading.
    fn has_row(self, _line: &str) -> bool {
        false
    }

    /// The lines of a format without a heading, for people.
    fn rows(self) -> &'static str {
        ""
    }
}

/// The first line belongs to no known format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "line 1: unknown {content} format: found {found}; the formats are {known}: name the columns of one in the first line"
)]
pub struct UnknownTableFormat {
    content: &'static str,
    found: String,
    known: String,
}

/// The first line lacks columns of a format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line 1: missing column{plural} {missing}: files in the format {format} have {needed}; found {found}",
    plural = if .missing.contains(',') { "s" } else { "" })]
pub struct MissingColumns {
    format: &'static str,
    missing: String,
    needed: String,
    found: String,
}

/// No format has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown {content} format '{name}': the formats are {known}")]
pub struct UnknownFormatName {
    content: &'static str,
    name: String,
    known: String,
}

/// How many characters of the columns of a file an error shows.
const MAX_SHOWN_CHARS: usize = 160;

impl MissingColumns {
    /// Checks that a heading has all columns of the format with this name.
    ///
    /// # Errors
    /// The columns that are missing.
    pub fn check<'a>(
        format: &'static str,
        columns: &[&'static str],
        heading: impl Iterator<Item = &'a str> + Clone,
    ) -> Result<(), MissingColumns> {
        let lacks = |column: &&str| heading.clone().all(|found| found != *column);
        let missing: Vec<&str> = columns.iter().copied().filter(lacks).collect();
        if missing.is_empty() {
            return Ok(());
        }
        Err(MissingColumns {
            format,
            missing: missing.join(", "),
            needed: columns.join(", "),
            found: shown(heading),
        })
    }
}

/// The format of a file that begins with this line: the one most of whose columns it names, if that is half
/// of them or more, or one without a heading whose row it is.
///
/// # Errors
/// If that is none: the columns found, and the known formats.
pub fn detect<F: TableFormat>(first_line: &str) -> Result<F, UnknownTableFormat> {
    let heading: Vec<&str> = columns_of(first_line).collect();
    let mut best: Option<(f64, F)> = None;
    for format in F::ALL.iter().copied() {
        let columns = format.columns();
        let named = columns.iter().filter(|column| heading.contains(column)).count();
        let part = match columns.len() {
            0 if format.has_row(first_line) => 1.0,
            0 => 0.0,
            count => named as f64 / count as f64,
        };
        if part >= 0.5 && best.is_none_or(|(most, _)| part > most) {
            best = Some((part, format));
        }
    }
    best.map(|(_, format)| format).ok_or_else(|| UnknownTableFormat {
        content: F::CONTENT,
        found: shown(heading.into_iter()),
        known: F::ALL.iter().copied().map(described).collect::<Vec<_>>().join(", "),
    })
}

/// The format with this name.
///
/// # Errors
/// The known names, if there is none.
pub fn format_by_name<F: TableFormat>(name: &str) -> Result<F, UnknownFormatName> {
    F::ALL.iter().copied().find(|format| format.name() == name).ok_or_else(|| UnknownFormatName {
        content: F::CONTENT,
        name: name.to_owned(),
        known: F::ALL.iter().map(|format| format.name()).collect::<Vec<_>>().join(", "),
    })
}

fn columns_of(line: &str) -> impl Iterator<Item = &str> + Clone {
    line.split(',').map(|column| column.trim().trim_matches('"'))
}

/// `csv (submit_s,duration_s,gpus)`.
fn described(format: impl TableFormat) -> String {
    match format.columns() {
        [] => format!("{} ({})", format.name(), format.rows()),
        columns => format!("{} ({})", format.name(), columns.join(",")),
    }
}

/// The columns of a file, shortened.
fn shown<'a>(columns: impl Iterator<Item = &'a str>) -> String {
    let all = columns.collect::<Vec<_>>().join(", ");
    let short: String = all.chars().take(MAX_SHOWN_CHARS).collect();
    match (short.trim().is_empty(), short.len() < all.len()) {
        (true, _) => "an empty line".to_owned(),
        (false, true) => format!("the columns '{short}…'"),
        (false, false) => format!("the columns '{short}'"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone, Copy, PartialEq)]
    enum Fruit {
        Apples,
        Pears,
        Lines,
    }

    impl TableFormat for Fruit {
        const ALL: &'static [Fruit] = &[Fruit::Apples, Fruit::Pears, Fruit::Lines];
        const CONTENT: &'static str = "fruit";

        fn name(self) -> &'static str {
            match self {
                Fruit::Apples => "apples",
                Fruit::Pears => "pears",
                Fruit::Lines => "lines",
            }
        }

        fn columns(self) -> &'static [&'static str] {
            match self {
                Fruit::Apples => &["red", "size", "seeds"],
                Fruit::Pears => &["green", "size"],
                Fruit::Lines => &[],
            }
        }

        fn has_row(self, line: &str) -> bool {
            line.split('\t').count() == 3
        }

        fn rows(self) -> &'static str {
            "3 fields"
        }
    }

    #[test]
    fn the_format_with_most_of_its_columns_is_found() {
        for (line, format) in [
            ("red,size,seeds,more", Fruit::Apples),
            ("\"green\" , \"size\"", Fruit::Pears),
            ("red,size", Fruit::Apples),
            ("size", Fruit::Pears),
            ("a\tb\tc", Fruit::Lines),
        ] {
            assert_eq!(detect(line), Ok(format), "{line}");
        }
    }

    #[test]
    fn an_unknown_line_is_told_with_what_was_found_and_what_is_known() {
        let refusal = |line: &str| detect::<Fruit>(line).unwrap_err().to_string();
        assert_eq!(
            refusal("red,blue"),
            "line 1: unknown fruit format: found the columns 'red, blue'; the formats are apples (red,size,seeds), \
             pears (green,size), lines (3 fields): name the columns of one in the first line"
        );
        assert!(refusal("").contains("found an empty line; "));
        assert!(refusal(&"x".repeat(1_000)).len() < 500);
    }

    #[test]
    fn missing_columns_are_named() {
        let check = |line: &str| MissingColumns::check("apples", Fruit::Apples.columns(), columns_of(line));
        assert_eq!(check("seeds,size,red,x"), Ok(()));
        assert_eq!(
            check("red,x").unwrap_err().to_string(),
            "line 1: missing columns size, seeds: files in the format apples have red, size, seeds; found the columns 'red, x'"
        );
    }

    #[test]
    fn names_of_formats_are_listed_where_one_is_unknown() {
        assert_eq!(format_by_name("pears"), Ok(Fruit::Pears));
        let refusal = format_by_name::<Fruit>("plums").unwrap_err().to_string();
        assert_eq!(refusal, "unknown fruit format 'plums': the formats are apples, pears, lines");
    }
}
