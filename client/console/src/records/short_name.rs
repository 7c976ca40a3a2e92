//! Names of jobs in tables, where a long one would leave no room for the other columns.

use crate::printable_line;

/// The longest name in a list, in characters.
pub const LONGEST_LISTED_NAME: usize = 40;

/// The name in at most so many characters; the last is `…` where there are more.
#[must_use]
pub fn short_name(name: &str, most: usize) -> String {
    let name = printable_line(name);
    match name.char_indices().nth(most) {
        None => name.into_owned(),
        Some(_) => name.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_ends_with_an_ellipsis() {
        for (name, short) in
            [("", ""), ("abcd", "abcd"), ("abcde", "abc…"), ("äöüß!", "äöü…"), ("a\nb", "a\\nb")]
        {
            assert_eq!(short_name(name, 4), short);
        }
        assert_eq!(short_name("a", 0), "…");
    }
}
