//! The members of a sweep. They are counted, and refused, before any of them is made.

use std::collections::BTreeSet;

use cohabit_client::types::counted;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng as _;
use serde_json::{Map, Value};

use super::domain::ParameterDomain;

/// The parameters of one member, by name.
pub(crate) type SweepParameters = Map<String, Value>;

/// The most members: every one of them is read to show a sweep, or to stop members early.
pub(crate) const MOST_MEMBERS: u64 = 10_000;

/// How members are made.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SweepPlan {
    /// All combinations; the last parameter varies fastest.
    Grid(Vec<(String, ParameterDomain)>),
    /// So many members with drawn values.
    Random { parameters: Vec<(String, ParameterDomain)>, samples: u64, seed: u64 },
    /// These.
    List(Vec<SweepParameters>),
}

impl SweepPlan {
    /// The names of the parameters.
    pub(crate) fn names(&self) -> BTreeSet<&str> {
        match self {
            SweepPlan::Grid(parameters) | SweepPlan::Random { parameters, .. } => {
                parameters.iter().map(|(name, _)| name.as_str()).collect()
            }
            SweepPlan::List(members) => members.iter().flat_map(Map::keys).map(String::as_str).collect(),
        }
    }

    /// How many members it has.
    fn count(&self) -> Result<u64, String> {
        let count = match self {
            SweepPlan::Grid(parameters) => {
                let counts = parameters
                    .iter()
                    .map(|(name, domain)| domain.count().map_err(|why| format!("{name}: {why}")));
                counts.collect::<Result<Vec<u64>, String>>()?.into_iter().fold(1, u64::saturating_mul)
            }
            SweepPlan::Random { samples, .. } => *samples,
            SweepPlan::List(members) => members.len() as u64,
        };
        match count {
            0 => Err("the sweep has no members: give at least one".to_owned()),
            1..=MOST_MEMBERS => Ok(count),
            _ => Err(format!(
                "the sweep has {}, and at most {MOST_MEMBERS} are allowed: give fewer values, or draw some with \
                 --random and --samples",
                counted(count, "member", "members")
            )),
        }
    }

    /// The parameters of all members.
    ///
    /// # Errors
    /// What is wrong and what to do.
    pub(crate) fn members(&self) -> Result<Vec<SweepParameters>, String> {
        let count = self.count()?;
        self.check_names()?;
        match self {
            SweepPlan::Grid(parameters) => {
                Ok((0..count).map(|place| combination(parameters, place)).collect())
            }
            SweepPlan::Random { parameters, seed, .. } => {
                let mut random = ChaCha8Rng::seed_from_u64(*seed);
                let mut member = || {
                    let drawn = parameters.iter().map(|(name, it)| (name.clone(), it.draw(&mut random)));
                    drawn.collect()
                };
                Ok((0..count).map(|_| member()).collect())
            }
            SweepPlan::List(members) => Ok(members.clone()),
        }
    }

    /// Refuses a parameter that is given twice, and members with different parameters.
    fn check_names(&self) -> Result<(), String> {
        match self {
            SweepPlan::Grid(parameters) | SweepPlan::Random { parameters, .. } => {
                let mut seen = BTreeSet::new();
                match parameters.iter().find(|(name, _)| !seen.insert(name)) {
                    Some((name, _)) => Err(format!("the parameter '{name}' is given twice: give it once")),
                    None => Ok(()),
                }
            }
            SweepPlan::List(members) => {
                let names = self.names();
                let missing = members.iter().zip(0..).find_map(|(member, place)| {
                    Some((place, names.iter().find(|name| !member.contains_key(**name))?))
                });
                match missing {
                    Some((place, name)) => Err(format!(
                        "member {place} has no parameter '{name}', which others have: give all members the same"
                    )),
                    None => Ok(()),
                }
            }
        }
    }
}

/// The combination at this place, as digits of a number of which the last parameter is the last digit.
fn combination(parameters: &[(String, ParameterDomain)], place: u64) -> SweepParameters {
    let mut rest = place;
    let digits = parameters.iter().rev().map(|(name, domain)| {
        let count = domain.count().unwrap_or(1).max(1);
        let value = domain.at(rest % count);
        rest /= count;
        (name.clone(), value)
    });
    digits.collect()
}

#[cfg(test)]
mod tests {
    use super::super::written::{parse_member, parse_parameter};
    use super::*;

    fn grid(texts: &[&str]) -> SweepPlan {
        SweepPlan::Grid(texts.iter().map(|text| parse_parameter(text).unwrap()).collect())
    }

    fn lines(plan: &SweepPlan) -> Vec<String> {
        plan.members().unwrap().into_iter().map(|it| Value::Object(it).to_string()).collect()
    }

    #[test]
    fn a_grid_has_every_combination_once() {
        let found = lines(&grid(&["lr=0.1,0.01", "seed=1..3"]));
        let expected = [("0.1", 1), ("0.1", 2), ("0.1", 3), ("0.01", 1), ("0.01", 2), ("0.01", 3)];
        assert_eq!(found, expected.map(|(lr, seed)| format!(r#"{{"lr":{lr},"seed":{seed}}}"#)));
    }

    #[test]
    fn random_members_repeat_with_their_seed() {
        let plan = |seed| {
            let parameters = vec![parse_parameter("lr=log:1e-5..1e-1").unwrap()];
            SweepPlan::Random { parameters, samples: 20, seed }
        };
        assert_eq!(lines(&plan(7)).len(), 20);
        assert_eq!(lines(&plan(7)), lines(&plan(7)));
        assert_ne!(lines(&plan(7)), lines(&plan(8)));
    }

    #[test]
    fn too_many_members_are_refused_before_they_are_made() {
        let refused = grid(&["a=1..10000", "b=1..1000"]).members().unwrap_err();
        assert!(refused.contains("10000000 members, and at most 10000"), "{refused}");
        let all = format!("a={}..{}", i64::MIN, i64::MAX);
        assert!(grid(&[&all, &all, "b=1..9"]).members().unwrap_err().contains("at most 10000"));
        let random = SweepPlan::Random { parameters: Vec::new(), samples: u64::MAX, seed: 0 };
        assert!(random.members().is_err());
        let none = SweepPlan::Random { parameters: Vec::new(), samples: 0, seed: 0 };
        assert!(none.members().unwrap_err().contains("at least one"));
    }

    #[test]
    fn members_have_the_same_parameters_each_once() {
        assert!(grid(&["a=1", "a=2"]).members().unwrap_err().contains("'a' is given twice"));
        let list =
            |texts: &[&str]| SweepPlan::List(texts.iter().map(|it| parse_member(it).unwrap()).collect());
        assert_eq!(lines(&list(&["a=1,b=x", "b=y,a=2"])), [r#"{"a":1,"b":"x"}"#, r#"{"a":2,"b":"y"}"#]);
        let refused = list(&["a=1,b=2", "a=1"]).members().unwrap_err();
        assert!(refused.starts_with("member 1 has no parameter 'b'"), "{refused}");
    }
}
