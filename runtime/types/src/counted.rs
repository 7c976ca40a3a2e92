//! Numbers with the noun that fits, for sentences.

use std::fmt::Display;

/// `1 job`, `2 jobs`.
pub fn counted(count: impl TryInto<u64> + Display + Copy, one: &str, many: &str) -> String {
    let is_one = count.try_into().is_ok_and(|count| count == 1);
    format!("{count} {}", if is_one { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_noun_fits_the_number() {
        let jobs = [0_u64, 1, 2].map(|count| counted(count, "job", "jobs"));
        assert_eq!(jobs, ["0 jobs", "1 job", "2 jobs"]);
        assert_eq!(counted(usize::MAX, "job", "jobs"), format!("{} jobs", usize::MAX));
    }
}
