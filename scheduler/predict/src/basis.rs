//! The basis of an estimate in words for `explain`. It completes the sentence "It was expected to run for a
//! minute, going by ...".

use cohabit_policy::JobFeatures;

use crate::cohort_statistics::MatchLevel;

/// The basis of an estimate by a forest that has seen `jobs` jobs, `of_group` of them of the job's group.
pub(crate) fn forest(jobs: usize, of_group: u64) -> String {
    let of_group = if of_group == 0 { "none".to_owned() } else { with_thousands_separators(of_group) };
    format!(
        "the forest, from {} jobs, {of_group} of them of its group",
        with_thousands_separators(jobs as u64)
    )
}

/// The basis of the median of the last `jobs` jobs that match this one.
pub(crate) fn median(match_level: MatchLevel, jobs: usize, job: &JobFeatures) -> String {
    let last = match jobs {
        1 => "the last job".to_owned(),
        _ => format!("the median of the last {jobs} jobs"),
    };
    let (user, group) = (&job.user, &job.group);
    match match_level {
        MatchLevel::Kind => format!("{last} of '{group}' by {user} that train the same"),
        MatchLevel::GroupDevices => format!("{last} of '{group}' by {user}"),
        MatchLevel::Group => format!("{last} of '{group}' by {user}, of other sizes"),
        MatchLevel::User => format!("{last} by {user}"),
        MatchLevel::Shape => format!("{last} of its size"),
        MatchLevel::All => last,
    }
}

/// The number with a comma after every three digits.
fn with_thousands_separators(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        _ => format!("{},{:03}", with_thousands_separators(number / 1_000), number % 1_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_basis_contains_its_numbers() {
        assert_eq!(forest(12_345, 17), "the forest, from 12,345 jobs, 17 of them of its group");
        assert_eq!(forest(1_000_000, 0), "the forest, from 1,000,000 jobs, none of them of its group");
        let job = JobFeatures { user: "ada".into(), group: "resnet".into(), ..JobFeatures::default() };
        assert_eq!(median(MatchLevel::GroupDevices, 1, &job), "the last job of 'resnet' by ada");
        let kind = "the median of the last 3 jobs of 'resnet' by ada that train the same";
        assert_eq!(median(MatchLevel::Kind, 3, &job), kind);
        assert_eq!(median(MatchLevel::User, 7, &job), "the median of the last 7 jobs by ada");
        assert_eq!(
            (with_thousands_separators(999), with_thousands_separators(1_002)),
            ("999".to_owned(), "1,002".to_owned())
        );
    }
}
