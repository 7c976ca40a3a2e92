//! What the programs of Slurm have in common: options, jobs as Slurm writes them, the connection.

use cohabit_client::types::{IndexRange, JobId};
use cohabit_console::{CommandError, CommandErrorKind};

use crate::arguments::ConnectionArguments;
use crate::slurm::{OptionName, ParsedWord, parse_words};
use crate::values::parse_array;

/// The head that the environment and the configuration name: Slurm's options have no place for another.
pub(super) fn connection() -> ConnectionArguments {
    ConnectionArguments::default()
}

pub(super) fn usage(message: impl Into<String>) -> CommandError {
    CommandError::new(CommandErrorKind::Usage, message)
}

/// Options by their long names, with their values.
pub(super) type GivenOptions = Vec<(&'static str, String)>;

/// The options that were given, and the words after them. `instead` says what to use in
/// place of an option that is not known.
pub(super) fn options<'a>(
    words: &'a [String],
    table: &[OptionName],
    instead: &str,
) -> Result<(GivenOptions, &'a [String]), CommandError> {
    let mut given = Vec::new();
    for word in parse_words(words, table) {
        match word {
            ParsedWord::Known { position, value, .. } => {
                given.push((table[position].long, value.unwrap_or_default()));
            }
            ParsedWord::Unknown(name) => {
                return Err(usage(format!("{name} is not supported here: use {instead}")));
            }
            ParsedWord::Wrong(why) => return Err(usage(why)),
            ParsedWord::Operand(at) => return Ok((given, &words[at..])),
        }
    }
    Ok((given, &[]))
}

/// The parts of all values of an option, between commas.
pub(super) fn list_of(given: &[(&'static str, String)], name: &str) -> Vec<String> {
    let values = given.iter().filter(|(long, _)| *long == name);
    let parts = values.flat_map(|(_, value)| value.split(','));
    parts.filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

pub(super) fn has(given: &[(&'static str, String)], name: &str) -> bool {
    given.iter().any(|(long, _)| *long == name)
}

/// The most members that one word may name.
const MOST_MEMBERS: u64 = 10_000;

/// Jobs as Slurm writes them: `12`, `12_5`, `12_[1-3,7]`.
pub(super) fn job_ids(word: &str) -> Result<Vec<JobId>, CommandError> {
    let wrong = || usage(format!("Invalid job id {word}: write 12, 12_5 or 12_[1-3]"));
    let (number, indices) = word.split_once('_').map_or((word, None), |(job, index)| (job, Some(index)));
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let Some(indices) = indices else { return Ok(vec![JobId::new(number)]) };
    let list = indices.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(indices);
    let array = parse_array(list).map_err(|_| wrong())?;
    match array.len() {
        0..=MOST_MEMBERS => Ok(array.indices().map(|index| JobId::member(number, index)).collect()),
        members => Err(usage(format!("{word} names {members} members: name at most {MOST_MEMBERS} at once"))),
    }
}

/// A job as Slurm writes it.
pub(super) fn slurm_id(job: JobId) -> String {
    match job.index {
        Some(index) => format!("{}_{index}", job.number),
        None => job.number.to_string(),
    }
}

/// Indices in order, as Slurm writes them: `1-3,7`.
pub(super) fn index_list(indices: &[u32]) -> String {
    let mut ranges: Vec<IndexRange> = Vec::new();
    for index in indices {
        match ranges.last_mut() {
            Some(range) if range.last.checked_add(1) == Some(*index) => range.last = *index,
            Some(_) | None => ranges.push(IndexRange { first: *index, last: *index, step: 1 }),
        }
    }
    let text = |range: &IndexRange| match range.first == range.last {
        true => range.first.to_string(),
        false => format!("{}-{}", range.first, range.last),
    };
    ranges.iter().map(text).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_named_as_in_slurm() {
        let ids =
            |word: &str| job_ids(word).map(|ids| ids.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(ids("12").unwrap(), ["12"]);
        assert_eq!(ids("12_5").unwrap(), ["12.5"]);
        assert_eq!(ids("12_[1-3,7]").unwrap(), ["12.1", "12.2", "12.3", "12.7"]);
        for wrong in ["x", "12.5", "12_", "12_[", "12_[1-99999]", "-1", ""] {
            assert!(job_ids(wrong).is_err(), "{wrong}");
        }
        assert_eq!(slurm_id(JobId::member(12, 5)), "12_5");
        assert_eq!(index_list(&[1, 2, 3, 7, 9, 10]), "1-3,7,9-10");
    }
}
