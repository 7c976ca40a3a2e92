//! Suggestions for misspelled names.

/// The known name that is most similar to `written`, if one is similar enough.
#[must_use]
pub fn closest_name<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .map(|name| (strsim::jaro_winkler(written, name), name))
        .filter(|(likeness, _)| *likeness > 0.75)
        .max_by(|one, other| one.0.total_cmp(&other.0))
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelling_is_recognized_and_other_words_are_not() {
        let known = ["token-file", "orphan-grace", "lost-after"];
        assert_eq!(closest_name("tokenfile", known), Some("token-file"));
        assert_eq!(closest_name("orphan_grace", known), Some("orphan-grace"));
        assert_eq!(closest_name("zzz", known), None);
    }
}
