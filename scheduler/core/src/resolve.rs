//! The jobs that people mean by a number, a range, a name or `@last`.

use cohabit_types::{JobId, JobRef, Principal, Refusal, RefusalCode};

use crate::head::Head;
use crate::reason::listed;

/// The most jobs that one range means: with one more, the request names too many anyway.
const MOST_IN_RANGE: usize = 10_001;

impl Head {
    /// The jobs that these references mean to this user, in the order asked.
    ///
    /// # Errors
    /// When one means no known job, or a name means several that live, or several of which none does.
    pub fn resolve(&self, by: &Principal, references: &[JobRef]) -> Result<Vec<JobId>, Refusal> {
        let mut jobs = Vec::new();
        for reference in references {
            jobs.extend(self.resolve_one(by, reference)?);
        }
        Ok(jobs)
    }

    fn resolve_one(&self, by: &Principal, reference: &JobRef) -> Result<Vec<JobId>, Refusal> {
        match reference {
            JobRef::Id(id) => self.known(*id).map(|id| vec![id]),
            JobRef::Range(first, last) => self.in_range(*first, *last),
            JobRef::Last(back) => self.recent(by, *back).map(|id| vec![id]),
            JobRef::Name(name) => self.named(by, name).map(|id| vec![id]),
        }
    }

    /// The job, if it is in memory or archived; the daemon looks for others in the history.
    fn known(&self, id: JobId) -> Result<JobId, Refusal> {
        self.is_known(id).then_some(id).ok_or_else(|| not_found(format!("there is no job {id}")))
    }

    fn in_range(&self, first: u64, last: u64) -> Result<Vec<JobId>, Refusal> {
        // A map has no range that ends before it begins, and panics over it.
        let numbers = (first <= last).then(|| self.numbers_in(first..=last, MOST_IN_RANGE));
        let jobs: Vec<JobId> = numbers.into_iter().flatten().map(JobId::new).collect();
        match jobs.is_empty() {
            true => Err(not_found(format!("there is no job from {first} to {last}"))),
            false => Ok(jobs),
        }
    }

    fn recent(&self, by: &Principal, back: u32) -> Result<JobId, Refusal> {
        let own = self.newest_submissions().filter(|(_, user, _)| *user == by.user);
        let found = own.map(|(number, ..)| JobId::new(number)).nth(back as usize);
        let too_few = || match back {
            0 => format!("{} has submitted no jobs", by.user),
            _ => format!("{} has submitted fewer than {} jobs", by.user, u64::from(back) + 1),
        };
        found.ok_or_else(|| not_found(too_few()))
    }

    fn named(&self, by: &Principal, name: &str) -> Result<JobId, Refusal> {
        let own = self.newest_submissions().filter(|(_, user, of)| *user == by.user && *of == name);
        let mut numbers: Vec<u64> = own.map(|(number, ..)| number).collect();
        numbers.reverse();
        // A name means what lives, as long as anything of that name does.
        let lives = |number: &u64| self.submissions.get(number).is_some_and(|it| !it.has_ended());
        if numbers.iter().any(lives) {
            numbers.retain(lives);
        }
        match numbers[..] {
            [] => Err(not_found(format!("{} has no job named '{name}'", by.user))),
            [number] => Ok(JobId::new(number)),
            _ => {
                let ids: Vec<JobId> = numbers.iter().map(|number| JobId::new(*number)).collect();
                let (count, ids) = (ids.len(), listed(&ids));
                let message = format!("{count} jobs are named '{name}': give one of the ids {ids}");
                Err(Refusal::new(RefusalCode::Ambiguous, message))
            }
        }
    }
}

fn not_found(message: String) -> Refusal {
    Refusal::new(RefusalCode::NotFound, message)
}
