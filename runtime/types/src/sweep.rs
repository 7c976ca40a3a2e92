//! Sweeps: arrays whose members train with different parameters, and the rule that stops some of them early.
//!
//! The parameters of a member are its entry, a JSON object. The rule is part of the job, so that any client
//! can go on with it; clients apply it, and the head only keeps it.

use serde::{Deserialize, Serialize};

use crate::sweep_template::check_template;
use crate::{Entrypoint, JobSpec};

/// What makes an array a sweep.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sweep {
    /// The metric by which members are compared, where one is named.
    pub metric: Option<String>,
    /// Which of its values are better.
    pub goal: SweepGoal,
    /// The rule by which members are stopped early; all run to their end without one.
    pub early_stopping: Option<EarlyStopping>,
}

/// Which values of a metric are better.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SweepGoal {
    /// The smaller ones.
    #[default]
    Min,
    /// The larger ones.
    Max,
}

impl SweepGoal {
    /// The word in flags, files and documents.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            SweepGoal::Min => "min",
            SweepGoal::Max => "max",
        }
    }
}

/// A rule that stops members early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EarlyStopping {
    /// The median stopping rule.
    Median(MedianRule),
    /// Asynchronous successive halving.
    Asha(AshaRule),
}

/// The median stopping rule (Golovin et al., Google Vizier, KDD 2017, section 3.2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MedianRule {
    /// No member is stopped before this step.
    pub grace: u64,
    /// No member is stopped before so many others have completed.
    pub completed: u32,
}

/// Asynchronous successive halving (Li et al., MLSys 2020, algorithm 2), as a rule that stops members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AshaRule {
    /// The step of the first rung, r in the paper.
    pub grace: u64,
    /// Each rung keeps one of so many members, and is so many times as far as the one before: η.
    pub reduction: u32,
    /// How many rungs there are.
    pub rungs: u32,
}

impl AshaRule {
    /// The steps of the rungs: r, r·η, r·η², … as far as they are numbers.
    #[must_use]
    pub fn steps(&self) -> Vec<u64> {
        let next = |step: &u64| step.checked_mul(self.reduction.into());
        std::iter::successors(Some(self.grace), next).take(self.rungs as usize).collect()
    }
}

/// The most rungs: with more, the last one is beyond every step.
const MOST_RUNGS: u32 = 64;

impl EarlyStopping {
    /// The word in flags and files.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            EarlyStopping::Median(_) => "median",
            EarlyStopping::Asha(_) => "asha",
        }
    }

    fn check(&self) -> Result<(), String> {
        match self {
            EarlyStopping::Median(MedianRule { completed: 0, .. }) => {
                Err("the median rule compares with members that have completed: give at least 1".into())
            }
            EarlyStopping::Asha(AshaRule { grace: 0, .. }) => {
                Err("the first rung of asha is at its grace, in steps: give at least 1".into())
            }
            EarlyStopping::Asha(AshaRule { reduction: 0 | 1, .. }) => {
                Err("asha keeps one of eta members at each rung: give an eta of at least 2".into())
            }
            EarlyStopping::Asha(AshaRule { rungs, .. }) if !(1..=MOST_RUNGS).contains(rungs) => {
                Err(format!("asha has {rungs} rungs: give 1 to {MOST_RUNGS}"))
            }
            EarlyStopping::Median(_) | EarlyStopping::Asha(_) => Ok(()),
        }
    }
}

impl JobSpec {
    /// Refuses a sweep that cannot be given to its members, or a rule that could not be applied.
    pub(crate) fn check_sweep(&self) -> Result<(), String> {
        let Some(sweep) = &self.sweep else { return Ok(()) };
        if self.entries.is_empty() {
            return Err("a sweep has parameters for each member: give it entries".into());
        }
        match &self.entrypoint {
            Entrypoint::Command(command) => command.argv.iter().try_for_each(|word| check_template(word))?,
            Entrypoint::Application(_) | Entrypoint::Runner(_) => {
                return Err("a sweep runs a command: a part of an application cannot be one".into());
            }
        }
        match (&sweep.early_stopping, &sweep.metric) {
            (Some(rule), Some(_)) => rule.check(),
            (Some(rule), None) => Err(format!(
                "the rule {} compares a metric of the members: name it, such as --metric loss",
                rule.as_str()
            )),
            (None, _) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Array;

    fn sweep(change: impl Fn(&mut Sweep)) -> Result<(), String> {
        let mut sweep = Sweep { metric: Some("loss".into()), ..Sweep::default() };
        change(&mut sweep);
        let spec = JobSpec {
            sweep: Some(sweep),
            entries: vec![r#"{"lr":0.1}"#.into()],
            array: Some(Array::from(0..=0)),
            ..JobSpec::command(vec!["train".into(), "--lr={lr}".into()], "/tmp".into())
        };
        spec.check()
    }

    fn asha(grace: u64, reduction: u32, rungs: u32) -> EarlyStopping {
        EarlyStopping::Asha(AshaRule { grace, reduction, rungs })
    }

    #[test]
    fn rules_that_cannot_be_applied_are_refused_with_what_to_do() {
        assert_eq!(sweep(|_| ()), Ok(()));
        assert_eq!(sweep(|it| it.early_stopping = Some(asha(1, 2, 64))), Ok(()));
        let refused = |rule| sweep(|it| it.early_stopping = Some(rule)).unwrap_err();
        assert!(refused(asha(0, 2, 1)).contains("at least 1"));
        assert!(refused(asha(1, 1, 1)).contains("eta of at least 2"));
        assert!(refused(asha(1, 2, 0)).contains("give 1 to 64"));
        assert!(refused(asha(1, 2, u32::MAX)).contains("give 1 to 64"));
        assert!(refused(EarlyStopping::Median(MedianRule { grace: 0, completed: 0 })).contains("at least 1"));
        let unnamed = sweep(|it| (it.metric, it.early_stopping) = (None, Some(asha(1, 2, 1))));
        assert!(unnamed.unwrap_err().contains("--metric loss"));
    }

    #[test]
    fn a_sweep_is_an_array_of_a_command_with_sound_placeholders() {
        let plain = JobSpec::command(vec!["train".into(), "{lr}".into()], "/tmp".into());
        assert_eq!(plain.check(), Ok(()), "braces mean nothing in other jobs");
        let empty = JobSpec { sweep: Some(Sweep::default()), ..plain.clone() };
        assert!(empty.check().unwrap_err().contains("give it entries"));
        let open = JobSpec {
            entries: vec!["{}".into()],
            array: Some(Array::from(0..=0)),
            sweep: Some(Sweep::default()),
            ..JobSpec::command(vec!["train".into(), "{lr".into()], "/tmp".into())
        };
        assert!(open.check().unwrap_err().contains("{{"));
    }

    #[test]
    fn rungs_grow_by_the_reduction_factor_as_far_as_there_are_numbers() {
        assert_eq!(AshaRule { grace: 1, reduction: 4, rungs: 4 }.steps(), [1, 4, 16, 64]);
        assert_eq!(AshaRule { grace: u64::MAX / 2, reduction: 3, rungs: 9 }.steps(), [u64::MAX / 2]);
    }
}
