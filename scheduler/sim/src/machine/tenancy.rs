//! For how long a process was slowed by others, and for how long by too much.

use cohabit_types::{Span, Time};

/// One process, from its start on.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(crate) struct Tenancy {
    /// Its slowdown, since when, and whether that is too much; none while it does not run.
    present: Option<(Time, Harm)>,
    past: Tenure,
}

/// Whether a slowdown is above the bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Harm {
    Borne,
    TooMuch,
}

/// Time that processes ran which may have neighbours.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tenure {
    /// All of it.
    pub(crate) ran: Span,
    /// That in which they were slowed by more than the bound.
    pub(crate) over_bound: Span,
}

impl Tenancy {
    /// From now on it is slowed like this.
    pub(super) fn changes(&mut self, now: Time, slowdown: f64, bound: f64) {
        self.past = self.until(now);
        self.present = Some((now, if slowdown > bound { Harm::TooMuch } else { Harm::Borne }));
    }

    /// Up to this moment.
    pub(super) fn until(&self, now: Time) -> Tenure {
        let Some((since, harm)) = self.present else { return self.past };
        let ran = now.since(since);
        let over_bound = match harm {
            Harm::Borne => Span::ZERO,
            Harm::TooMuch => ran,
        };
        self.past + Tenure { ran, over_bound }
    }
}

impl std::ops::Add for Tenure {
    type Output = Tenure;
    fn add(self, other: Tenure) -> Tenure {
        Tenure { ran: self.ran + other.ran, over_bound: self.over_bound + other.over_bound }
    }
}

impl std::iter::Sum for Tenure {
    fn sum<I: Iterator<Item = Tenure>>(all: I) -> Tenure {
        all.fold(Tenure::default(), std::ops::Add::add)
    }
}
