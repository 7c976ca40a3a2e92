//! Names in the order that people expect: node2 before node10.

/// The name as texts and the numbers that follow them.
#[must_use]
pub fn natural_key(name: &str) -> Vec<(String, u64)> {
    let mut key = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| letter.is_ascii_digit()).unwrap_or(rest.len());
        let (text, behind) = rest.split_at(digits);
        let end = behind.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(behind.len());
        let (number, behind) = behind.split_at(end);
        // A number that is too long counts as the largest, and the order stays total.
        key.push((text.to_owned(), number.parse().unwrap_or(if number.is_empty() { 0 } else { u64::MAX })));
        rest = behind;
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_count_by_their_value() {
        let mut names = ["node10", "node2", "gpu1-b", "gpu1-a10", "gpu1-a9", "node", "2", "10", ""];
        names.sort_by_key(|name| natural_key(name));
        assert_eq!(names, ["", "2", "10", "gpu1-a9", "gpu1-a10", "gpu1-b", "node", "node2", "node10"]);
    }
}
