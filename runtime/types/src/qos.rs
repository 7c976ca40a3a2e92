//! How urgent the jobs of a user are to others: what a job costs, and when its turn comes.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The quality of service that a job asks for.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Qos {
    /// Starts where no other job wants the place, and is the first to be stopped for one. It costs half.
    Low,
    /// Takes its user's turn.
    #[default]
    Normal,
    /// Its user's turn comes as if they held half as much. It costs twice as much.
    High,
}

impl Qos {
    /// Every one.
    pub const ALL: [Qos; 3] = [Qos::Low, Qos::Normal, Qos::High];

    /// The word in JSON and on the command line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Qos::Low => "low",
            Qos::Normal => "normal",
            Qos::High => "high",
        }
    }

    /// What a job that holds so many thousandths of a GPU is charged for, in the same unit.
    #[must_use]
    pub const fn cost(self, held: u64) -> u64 {
        match self {
            Qos::Low => held / 2,
            Qos::Normal => held,
            Qos::High => held * 2,
        }
    }
}

impl FromStr for Qos {
    type Err = String;

    fn from_str(word: &str) -> Result<Qos, String> {
        let known = Qos::ALL.into_iter().find(|it| it.as_str() == word);
        known.ok_or_else(|| format!("'{word}' is no quality of service: use low, normal or high"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_json() {
        for qos in Qos::ALL {
            assert_eq!(serde_json::to_value(qos).unwrap(), qos.as_str());
            assert_eq!(qos.as_str().parse(), Ok(qos));
        }
        assert!("urgent".parse::<Qos>().unwrap_err().contains("low, normal or high"));
        assert_eq!(Qos::ALL.map(|it| it.cost(1_000)), [500, 1_000, 2_000]);
    }
}
