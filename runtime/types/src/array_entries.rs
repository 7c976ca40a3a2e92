//! Arrays from files: a text for each member, such as a line or an element of a JSON array.
//!
//! The head holds the texts of all members once. A worker gets a specification with the text of its own
//! member alone, see [`JobSpec::for_member`].

use std::collections::BTreeMap;

use crate::sweep_template::{entry_parameters, fill_template};
use crate::{Array, Command, Entrypoint, JobSpec};

/// The variable in which a member finds its text.
pub const ENTRY_VARIABLE: &str = "COHABIT_ENTRY";

/// The argument of a command that stands for the text.
const PLACEHOLDER: &str = "{}";

/// The longest text, in bytes: a variable that is larger cannot be given to a program.
pub const LONGEST_ENTRY: usize = 64 << 10;

impl JobSpec {
    /// The text of the array member with this index.
    #[must_use]
    pub fn entry(&self, index: Option<u32>) -> Option<&String> {
        self.entries.get(index? as usize)
    }

    /// The specification as a worker of this member gets it: with its own text, and without those of the
    /// others. None where it is the same for all members.
    #[must_use]
    pub fn for_member(&self, index: Option<u32>) -> Option<JobSpec> {
        let entry = self.entry(index)?;
        // The texts of the others are not even copied.
        let JobSpec { entries: _, entrypoint, environment, .. } = self;
        let environment: BTreeMap<String, String> = environment
            .iter()
            .map(|(name, value)| (name.clone(), value.clone()))
            .chain([(ENTRY_VARIABLE.to_owned(), entry.clone())])
            .collect();
        let plain = JobSpec::command(Vec::new(), self.workdir.clone());
        Some(JobSpec {
            name: self.name.clone(),
            entrypoint: match self.sweep {
                Some(_) => with_parameters(entrypoint, entry),
                None => with_entry(entrypoint, entry),
            },
            environment,
            demand: self.demand,
            launch: self.launch,
            array: self.array.clone(),
            depends_on: self.depends_on.clone(),
            begin: self.begin,
            priority: self.priority,
            time_limit: self.time_limit,
            retry: self.retry,
            stop: self.stop,
            group: self.group.clone(),
            model: self.model.clone(),
            iterations: self.iterations,
            checkpoint: self.checkpoint.clone(),
            held: self.held,
            slurm_environment: self.slurm_environment,
            preemptible: self.preemptible,
            code: self.code.clone(),
            output: self.output.clone(),
            partition: self.partition.clone(),
            qos: self.qos,
            project: self.project.clone(),
            ..plain
        })
    }

    /// Refuses texts that cannot be given to the members.
    pub(crate) fn check_entries(&self) -> Result<(), String> {
        let Some(last) = (self.entries.len() as u64).checked_sub(1) else { return Ok(()) };
        let all = u32::try_from(last).map(|last| Array::from(0..=last).ranges);
        if all.ok() != self.array.as_ref().map(|array| array.ranges.clone()) {
            return Err(format!(
                "an array with {} entries has as many members, from index 0 on: leave the array out",
                last + 1
            ));
        }
        let wrong = |entry: &&String| entry.len() > LONGEST_ENTRY || entry.contains('\0');
        match self.entries.iter().zip(0_u32..).find(|(entry, _)| wrong(entry)) {
            Some((entry, index)) if entry.contains('\0') => {
                Err(format!("the entry of member {index} contains a NUL character: remove it"))
            }
            Some((entry, index)) => Err(format!(
                "the entry of member {index} has {} bytes, and at most {LONGEST_ENTRY} are allowed: put the data \
                 into files and their names into the entries",
                entry.len()
            )),
            None => Ok(()),
        }
    }
}

/// The command with the text in place of each argument `{}`.
fn with_entry(entrypoint: &Entrypoint, entry: &str) -> Entrypoint {
    with_words(entrypoint, |word| if word == PLACEHOLDER { entry.to_owned() } else { word.to_owned() })
}

/// The command of a member of a sweep, with the values of its parameters.
fn with_parameters(entrypoint: &Entrypoint, entry: &str) -> Entrypoint {
    let parameters = entry_parameters(entry).unwrap_or_default();
    with_words(entrypoint, |word| fill_template(word, &parameters))
}

fn with_words(entrypoint: &Entrypoint, change: impl Fn(&str) -> String) -> Entrypoint {
    match entrypoint {
        Entrypoint::Command(Command { argv, script }) => {
            let argv = argv.iter().map(|word| change(word)).collect();
            Entrypoint::Command(Command { argv, script: script.clone() })
        }
        part @ (Entrypoint::Application(_) | Entrypoint::Runner(_)) => part.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sweep;

    fn array(entries: &[&str]) -> JobSpec {
        let argv = ["train", "{}", "x{}"].map(str::to_owned).to_vec();
        let last = entries.len() as u32 - 1;
        JobSpec {
            entries: entries.iter().map(|entry| (*entry).to_owned()).collect(),
            array: Some(Array { at_once: Some(2), ..Array::from(0..=last) }),
            partition: Some("gpu".into()),
            ..JobSpec::command(argv, "/tmp".into())
        }
    }

    #[test]
    fn a_member_gets_its_own_entry_and_everything_else_as_submitted() {
        let spec = array(&["a b", "c"]);
        assert_eq!(spec.check(), Ok(()));
        let member = spec.for_member(Some(1)).unwrap();
        assert_eq!(member.environment, BTreeMap::from([(ENTRY_VARIABLE.to_owned(), "c".to_owned())]));
        let Entrypoint::Command(command) = &member.entrypoint else { unreachable!("it is a command") };
        assert_eq!(command.argv, ["train", "c", "x{}"]);
        let JobSpec { entrypoint, environment, entries, .. } = spec.clone();
        assert_eq!(JobSpec { entrypoint, environment, entries, ..member }, spec);
        assert_eq!((spec.for_member(None), spec.for_member(Some(2))), (None, None));
        assert_eq!(JobSpec::command(vec!["x".into()], "/".into()).for_member(Some(0)), None);
    }

    #[test]
    fn a_member_of_a_sweep_gets_the_values_of_its_parameters() {
        let argv = ["train", "--lr={lr}", "{{{seed}}}"].map(str::to_owned).to_vec();
        let spec = JobSpec {
            entries: vec![r#"{"lr":"1e-5","seed":3}"#.into()],
            array: Some(Array::from(0..=0)),
            sweep: Some(Sweep::default()),
            ..JobSpec::command(argv, "/tmp".into())
        };
        assert_eq!(spec.check(), Ok(()));
        let member = spec.for_member(Some(0)).unwrap();
        let Entrypoint::Command(command) = &member.entrypoint else { unreachable!("it is a command") };
        assert_eq!(command.argv, ["train", "--lr=1e-5", "{3}"]);
        assert_eq!(member.environment[ENTRY_VARIABLE], r#"{"lr":"1e-5","seed":3}"#);
        assert_eq!(member.sweep, None, "a worker has nothing to compare");
    }

    #[test]
    fn entries_that_cannot_be_given_out_are_refused() {
        let refused = |change: fn(&mut JobSpec)| {
            let mut spec = array(&["a", "b"]);
            change(&mut spec);
            spec.check().unwrap_err()
        };
        assert!(refused(|spec| spec.array = None).contains("leave the array out"));
        assert!(refused(|spec| spec.array = Some(Array::from(1..=2))).contains("from index 0 on"));
        assert!(refused(|spec| spec.entries[1] = "x\0".into()).contains("member 1 contains a NUL"));
        assert!(refused(|spec| spec.entries[0] = "x".repeat(LONGEST_ENTRY + 1)).contains("65537 bytes"));
    }
}
