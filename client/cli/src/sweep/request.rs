//! What flags and a file together ask for.

use cohabit_client::types::{AshaRule, EarlyStopping, MedianRule, Sweep, SweepGoal};
use serde::Deserialize;

use super::domain::ParameterDomain;
use super::plan::{SweepParameters, SweepPlan};

/// How members are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SweepMethod {
    /// All combinations.
    Grid,
    /// Drawn values.
    Random,
    /// The members that are written down.
    List,
}

impl SweepMethod {
    pub(crate) fn parse(name: &str) -> Result<SweepMethod, String> {
        match name {
            "grid" => Ok(SweepMethod::Grid),
            "random" => Ok(SweepMethod::Random),
            "list" => Ok(SweepMethod::List),
            _ => Err(format!("'{name}' is no method: write grid, random or list")),
        }
    }
}

/// The name of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum RuleName {
    Median,
    Asha,
}

/// A rule with its parameters, as far as they are given.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RuleSettings {
    pub(crate) rule: Option<RuleName>,
    pub(crate) grace: Option<u64>,
    pub(crate) eta: Option<u32>,
    pub(crate) rungs: Option<u32>,
    pub(crate) completed: Option<u32>,
}

/// What is asked for, in flags or in a file.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct SweepSettings {
    pub(crate) method: Option<SweepMethod>,
    /// Of a grid, or to draw.
    pub(crate) parameters: Vec<(String, ParameterDomain)>,
    /// Of a list.
    pub(crate) members: Vec<SweepParameters>,
    pub(crate) samples: Option<u64>,
    pub(crate) seed: Option<u64>,
    pub(crate) metric: Option<String>,
    pub(crate) goal: Option<SweepGoal>,
    pub(crate) rule: RuleSettings,
}

/// A sweep that can be made into members.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SweepRequest {
    pub(crate) plan: SweepPlan,
    pub(crate) sweep: Sweep,
}

/// Puts together what a file and flags say; flags override the file. `drawn_seed` is used where none is
/// given.
pub(crate) fn sweep_request(
    file: Option<SweepSettings>,
    flags: SweepSettings,
    drawn_seed: u64,
) -> Result<SweepRequest, String> {
    let settings = merge(file, flags)?;
    let sweep = Sweep {
        metric: settings.metric.clone(),
        goal: settings.goal.unwrap_or_default(),
        early_stopping: early_stopping(settings.rule)?,
    };
    match (&sweep.metric, &sweep.early_stopping) {
        (Some(name), _) if name.is_empty() => {
            Err("the name of the metric is empty: write --metric loss".to_owned())
        }
        (None, Some(rule)) => Err(format!(
            "the rule {} compares a metric that members report: name it, such as --metric loss",
            rule.as_str()
        )),
        (None, None) if settings.goal.is_some() => {
            Err("the goal is that of a metric: name it, such as --metric loss".to_owned())
        }
        (Some(_), _) | (None, None) => Ok(SweepRequest { plan: plan(settings, drawn_seed)?, sweep }),
    }
}

fn merge(file: Option<SweepSettings>, flags: SweepSettings) -> Result<SweepSettings, String> {
    let Some(file) = file else { return Ok(flags) };
    if flags.method.is_some() {
        return Err(
            "the file says which parameters there are: leave --grid, --random and --list out".to_owned()
        );
    }
    // SweepParameters of one rule mean nothing to another one.
    let rule = match (flags.rule.rule, file.rule.rule) {
        (Some(chosen), Some(written)) if chosen != written => flags.rule,
        _ => RuleSettings {
            rule: flags.rule.rule.or(file.rule.rule),
            grace: flags.rule.grace.or(file.rule.grace),
            eta: flags.rule.eta.or(file.rule.eta),
            rungs: flags.rule.rungs.or(file.rule.rungs),
            completed: flags.rule.completed.or(file.rule.completed),
        },
    };
    Ok(SweepSettings {
        samples: flags.samples.or(file.samples),
        seed: flags.seed.or(file.seed),
        metric: flags.metric.or(file.metric),
        goal: flags.goal.or(file.goal),
        rule,
        ..file
    })
}

fn plan(settings: SweepSettings, drawn_seed: u64) -> Result<SweepPlan, String> {
    let SweepSettings { method, parameters, members, samples, seed, .. } = settings;
    match method {
        None => Err("there are no parameters: give a file, --grid, --random or --list".to_owned()),
        Some(SweepMethod::Grid | SweepMethod::List) if samples.is_some() => {
            Err("the number of samples belongs to random: leave --samples out".to_owned())
        }
        Some(SweepMethod::Grid | SweepMethod::List) if seed.is_some() => {
            Err("the seed belongs to random: leave --seed out".to_owned())
        }
        Some(SweepMethod::Grid) => Ok(SweepPlan::Grid(parameters)),
        Some(SweepMethod::List) => Ok(SweepPlan::List(members)),
        Some(SweepMethod::Random) => match samples {
            Some(samples) => Ok(SweepPlan::Random { parameters, samples, seed: seed.unwrap_or(drawn_seed) }),
            None => Err("random needs to know how many members to draw: give --samples 20".to_owned()),
        },
    }
}

/// The rule with its usual parameters where none are given; η = 4 is that of the paper's experiments.
fn early_stopping(settings: RuleSettings) -> Result<Option<EarlyStopping>, String> {
    let RuleSettings { rule, grace, eta, rungs, completed } = settings;
    let foreign = |name: &str, rule: &str| Err(format!("{name} belongs to the rule {rule}: leave it out"));
    match rule {
        None if settings != RuleSettings::default() => {
            Err("there are parameters of a rule, but no rule: give --early-stop median or asha".to_owned())
        }
        None => Ok(None),
        Some(RuleName::Median) if eta.is_some() => foreign("eta", "asha"),
        Some(RuleName::Median) if rungs.is_some() => foreign("rungs", "asha"),
        Some(RuleName::Median) => {
            let (grace, completed) = (grace.unwrap_or(0), completed.unwrap_or(3));
            Ok(Some(EarlyStopping::Median(MedianRule { grace, completed })))
        }
        Some(RuleName::Asha) if completed.is_some() => foreign("completed", "median"),
        Some(RuleName::Asha) => {
            let (grace, reduction, rungs) = (grace.unwrap_or(1), eta.unwrap_or(4), rungs.unwrap_or(5));
            Ok(Some(EarlyStopping::Asha(AshaRule { grace, reduction, rungs })))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::written::parse_parameter;
    use super::*;

    fn grid() -> SweepSettings {
        SweepSettings {
            method: Some(SweepMethod::Grid),
            parameters: vec![parse_parameter("lr=0.1").unwrap()],
            ..SweepSettings::default()
        }
    }

    fn with_rule(rule: RuleSettings) -> SweepSettings {
        SweepSettings { metric: Some("loss".into()), rule, ..grid() }
    }

    #[test]
    fn flags_override_the_file() {
        let asha =
            RuleSettings { rule: Some(RuleName::Asha), grace: Some(9), eta: Some(3), ..Default::default() };
        let file = SweepSettings { goal: Some(SweepGoal::Max), ..with_rule(asha) };
        let only = |rule| SweepSettings { rule, ..SweepSettings::default() };
        let request = |flags| sweep_request(Some(file.clone()), flags, 1).unwrap().sweep;
        let sweep = request(only(RuleSettings { eta: Some(2), ..RuleSettings::default() }));
        assert_eq!(sweep.goal, SweepGoal::Max);
        let expected = AshaRule { grace: 9, reduction: 2, rungs: 5 };
        assert_eq!(sweep.early_stopping, Some(EarlyStopping::Asha(expected)));
        let sweep = request(only(RuleSettings { rule: Some(RuleName::Median), ..RuleSettings::default() }));
        let expected = MedianRule { grace: 0, completed: 3 };
        assert_eq!(
            sweep.early_stopping,
            Some(EarlyStopping::Median(expected)),
            "with nothing of the other rule"
        );
    }

    #[test]
    fn what_does_not_belong_together_is_refused() {
        let refused = |settings| sweep_request(None, settings, 1).unwrap_err();
        let rule = |rule| RuleSettings { rule: Some(rule), ..RuleSettings::default() };
        assert!(refused(SweepSettings::default()).contains("there are no parameters"));
        assert!(refused(SweepSettings { samples: Some(3), ..grid() }).contains("leave --samples out"));
        assert!(refused(SweepSettings { seed: Some(3), ..grid() }).contains("leave --seed out"));
        let random = SweepSettings { method: Some(SweepMethod::Random), ..grid() };
        assert!(refused(random).contains("--samples 20"));
        assert!(refused(SweepSettings { rule: rule(RuleName::Asha), ..grid() }).contains("--metric loss"));
        assert!(refused(SweepSettings { goal: Some(SweepGoal::Max), ..grid() }).contains("--metric loss"));
        let foreign = RuleSettings { eta: Some(2), ..rule(RuleName::Median) };
        assert!(refused(with_rule(foreign)).contains("eta belongs to the rule asha"));
        let alone = RuleSettings { grace: Some(2), ..RuleSettings::default() };
        assert!(refused(with_rule(alone)).contains("no rule"));
        let both = sweep_request(Some(grid()), grid(), 1).unwrap_err();
        assert!(both.contains("leave --grid, --random and --list out"));
    }

    #[test]
    fn a_seed_that_is_given_is_used() {
        let random =
            |seed| SweepSettings { method: Some(SweepMethod::Random), samples: Some(2), seed, ..grid() };
        let seed = |settings| match sweep_request(None, settings, 5).unwrap().plan {
            SweepPlan::Random { seed, .. } => seed,
            SweepPlan::Grid(_) | SweepPlan::List(_) => unreachable!("it is random"),
        };
        assert_eq!((seed(random(Some(7))), seed(random(None))), (7, 5));
    }
}
