//! The slowdown limit: how much neighbors may slow a job down, and how predictions are compared with it.
//!
//! Pure arithmetic; which predictor is asked is not decided here.

use cohabit_types::Slowdown;

use crate::interference::{ColocationEstimate, LIKELY_TO_FIT, UNKNOWN_UNCERTAINTY};

/// Whether the members of a set may run together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum SetAdmission {
    /// They may.
    Admitted(Confidence),
    /// They may not: this member would be slowed down too much. The excess is the part beyond its limit,
    /// relative to the limit.
    TooSlow { member: usize, slowdown: f64, excess: f64 },
    /// They may not: their memory probably does not fit.
    NoMemory,
}

/// What an admission is based on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Confidence {
    /// Something is known of the set.
    Known,
    /// Nothing is known: worth a try if nothing better is available.
    Unknown,
}

/// A slowdown for the comparison with the limit: larger by `caution` standard deviations. A measured
/// slowdown is taken as it is, and so is one about which nothing is known, or it would never be learned.
pub(super) fn inflate_by_uncertainty(estimates: &ColocationEstimate, caution: f64) -> f64 {
    match estimates.measured || estimates.uncertainty >= UNKNOWN_UNCERTAINTY {
        true => estimates.slowdown,
        false => estimates.slowdown * (caution * estimates.uncertainty).exp(),
    }
}

/// Whether the members of a set with these limits may run together.
pub(super) fn admit(
    estimates: &[ColocationEstimate],
    allowed: &[Option<Slowdown>],
    caution: f64,
) -> SetAdmission {
    if estimates.iter().any(|it| it.fits < LIKELY_TO_FIT) {
        return SetAdmission::NoMemory;
    }
    let excess = |(estimates, allowed): (&ColocationEstimate, &Option<Slowdown>)| {
        allowed.map_or(0.0, |allowed| inflate_by_uncertainty(estimates, caution) / allowed.as_f64())
    };
    let excesses: Vec<f64> = estimates.iter().zip(allowed).map(excess).collect();
    let worst = (0..estimates.len()).min_by(|a, b| excesses[*b].total_cmp(&excesses[*a]));
    match worst {
        Some(member) if excesses[member] > 1.0 => SetAdmission::TooSlow {
            member,
            slowdown: inflate_by_uncertainty(&estimates[member], caution),
            excess: excesses[member] - 1.0,
        },
        Some(_) | None => {
            let unknown = estimates.iter().any(|it| !it.measured && it.uncertainty >= UNKNOWN_UNCERTAINTY);
            SetAdmission::Admitted(if unknown { Confidence::Unknown } else { Confidence::Known })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interference::SetMember;

    fn estimates(slowdown: f64, uncertainty: f64) -> ColocationEstimate {
        ColocationEstimate::slowed(&SetMember::default(), slowdown, uncertainty)
    }

    const BOUND: Option<Slowdown> = Some(Slowdown(1_300));

    #[test]
    fn a_slowdown_is_increased_by_its_uncertainty_unless_nothing_is_known() {
        assert_eq!(inflate_by_uncertainty(&estimates(1.2, 0.0), 1.0), 1.2);
        assert!((inflate_by_uncertainty(&estimates(1.2, 0.1), 1.0) - 1.2 * 0.1_f64.exp()).abs() < 1e-12);
        assert_eq!(inflate_by_uncertainty(&estimates(1.2, 0.1), 0.0), 1.2);
        assert_eq!(inflate_by_uncertainty(&estimates(1.2, UNKNOWN_UNCERTAINTY), 1.0), 1.2);
        assert_eq!(
            inflate_by_uncertainty(&ColocationEstimate { measured: true, ..estimates(1.2, 0.3) }, 1.0),
            1.2
        );
    }

    #[test]
    fn every_member_is_compared_with_its_own_limit() {
        let set = [estimates(1.25, 0.0), estimates(1.4, 0.0)];
        assert_eq!(
            admit(&set, &[BOUND, Some(Slowdown(1_400))], 0.5),
            SetAdmission::Admitted(Confidence::Known)
        );
        let SetAdmission::TooSlow { member, slowdown, excess } = admit(&set, &[BOUND; 2], 0.5) else {
            panic!()
        };
        assert_eq!((member, slowdown), (1, 1.4));
        assert!((excess - (1.4 / 1.3 - 1.0)).abs() < 1e-12);
        let unknown = [estimates(1.25, 0.0), estimates(1.25, UNKNOWN_UNCERTAINTY)];
        assert_eq!(admit(&unknown, &[BOUND; 2], 0.5), SetAdmission::Admitted(Confidence::Unknown));
    }

    #[test]
    fn a_set_that_probably_does_not_fit_is_refused_however_fast_it_would_be() {
        let set = [ColocationEstimate { fits: 0.4, ..estimates(1.0, 0.0) }, estimates(1.0, 0.0)];
        assert_eq!(admit(&set, &[BOUND; 2], 0.0), SetAdmission::NoMemory);
    }
}
