//! `--depends-on`: a job that has to end first.
//!
//! Only the head can resolve a job reference, so the reference is kept until the job is submitted.

use cohabit_client::types::{DependencyKind, JobRef};

/// A dependency as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DependencyArgument {
    /// The job.
    pub job: JobRef,
    /// How the job has to end.
    pub when: DependencyKind,
}

/// Parses `12`, `afterok:12`, `afterany:last`, `afternotok:12.5`.
pub fn parse_dependency(text: &str) -> Result<DependencyArgument, String> {
    let (when, job) = match text.split_once(':') {
        None => (DependencyKind::AfterOk, text),
        Some(("afterok", job)) => (DependencyKind::AfterOk, job),
        Some(("afterany", job)) => (DependencyKind::AfterAny, job),
        Some(("afternotok", job)) => (DependencyKind::AfterNotOk, job),
        Some((other, _)) => {
            return Err(format!("'{other}' is not a condition: use afterok, afterany or afternotok"));
        }
    };
    Ok(DependencyArgument { job: job.parse().map_err(|error| format!("{error}"))?, when })
}

#[cfg(test)]
mod tests {
    use cohabit_client::types::JobId;

    use super::*;

    #[test]
    fn a_dependency_requires_success_by_default() {
        let read = |text: &str| parse_dependency(text).map(|read| (read.job, read.when));
        assert_eq!(read("12"), Ok((JobRef::Id(JobId::new(12)), DependencyKind::AfterOk)));
        assert_eq!(read("afterany:last"), Ok((JobRef::Last(0), DependencyKind::AfterAny)));
        assert_eq!(
            read("afternotok:12.5"),
            Ok((JobRef::Id(JobId::member(12, 5)), DependencyKind::AfterNotOk))
        );
    }

    #[test]
    fn other_conditions_and_references_are_errors() {
        assert!(parse_dependency("after:12").unwrap_err().contains("afterok, afterany or afternotok"));
        assert!(parse_dependency("afterok:").unwrap_err().contains("is not a job"));
    }
}
