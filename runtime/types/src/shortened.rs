//! Texts of others, in the length that there is room for.

/// The text, or as much of its beginning as fits into so many bytes, and a sign that there is more.
#[must_use]
pub fn shortened(text: &str, most_bytes: usize) -> String {
    let end = text.floor_char_boundary(most_bytes);
    if end == text.len() { text.to_owned() } else { format!("{}…", &text[..end]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_between_characters() {
        for (text, short) in [("", ""), ("abc", "abc"), ("abcd", "abc…"), ("abü", "ab…"), ("aü", "aü")]
        {
            assert_eq!(shortened(text, 3), short);
        }
    }
}
