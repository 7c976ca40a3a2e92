//! The distribution of a job's work time, and what it says of the rest once the job has worked for a while.

use super::bins::{self, BINS};
use super::counts::BinCounts;
use super::estimates::TOLERANCE;

/// The probability of ending in a bin where nothing is known.
const PRIOR: f64 = 0.2;

/// A survival below this is none: further bins change nothing.
const NEGLIGIBLE: f64 = 1e-12;

/// For each bin the probability that a job which reached it ends in it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Hazards(pub(super) [f64; BINS]);

/// What is left of a job, in seconds of work time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Rest {
    /// The least expected work for each unit of probability to end, over all spans from now on: the inverse
    /// of the Gittins index (J. C. Gittins, "Bandit processes and dynamic allocation indices", 1979).
    pub(super) gittins: f64,
    /// The geometric mean of the rest: what is typical.
    pub(super) typical: f64,
}

impl Rest {
    /// A rest that is known.
    pub(super) const fn known(seconds: f64) -> Rest {
        Rest { gittins: seconds, typical: seconds }
    }
}

impl Hazards {
    /// The hazards of a job by the counts of its contexts, the widest first.
    pub(super) fn of<'c>(contexts: impl Iterator<Item = &'c BinCounts>) -> Hazards {
        let mut hazards = [PRIOR; BINS];
        for counts in contexts {
            for (bin, hazard) in hazards.iter_mut().enumerate() {
                *hazard = counts.refine(bin, *hazard);
            }
        }
        Hazards(hazards)
    }

    /// The same for a job of which an estimate says this work time in seconds, which comes true with
    /// probability `trust`. If it does, the logarithm of the work time is uniform within the tolerance.
    pub(super) fn believing(&self, seconds: f64, trust: f64) -> Hazards {
        let (least, most) = (seconds / TOLERANCE, seconds * TOLERANCE);
        let ended_by = |time: f64| match time > least {
            true => ((time / least).ln() / (most / least).ln()).min(1.0),
            false => 0.0,
        };
        let (mut if_true, mut if_false) = (trust, 1.0 - trust);
        let mut hazards = *self;
        for (bin, hazard) in hazards.0.iter_mut().enumerate() {
            let ends_true = trust * (ended_by(bins::start_of(bin + 1)) - ended_by(bins::start_of(bin)));
            let ends_false = if_false * *hazard;
            let survival = if_true + if_false;
            if survival > NEGLIGIBLE {
                *hazard = ((ends_true + ends_false) / survival).min(1.0);
            }
            if_true = (if_true - ends_true).max(0.0);
            if_false -= ends_false;
        }
        hazards
    }

    /// The rest of a job that has worked for `age` seconds and is ended after `limit` seconds of work at the
    /// latest.
    pub(super) fn rest(&self, age: f64, limit: f64) -> Rest {
        let first = bins::containing(age);
        let (mut survival, mut mean, mut log_mean, mut passed, mut gittins) =
            (1.0, 0.0, 0.0, 0.0, f64::INFINITY);
        for bin in first..BINS {
            let (start, end) = (bins::start_of(bin), bins::start_of(bin + 1));
            let is_last = bin == BINS - 1 || limit <= end;
            let until = if is_last { limit.min(end.max(age * OVERDUE)) } else { end };
            let length = (until - age.max(start)).max(SHORTEST);
            let hazard = if is_last { 1.0 } else { self.hazard(bin, length) };
            let ends_here = survival * hazard;
            mean += (survival - ends_here / 2.0) * length;
            log_mean += ends_here * (passed + length / 2.0).ln();
            survival -= ends_here;
            passed += length;
            gittins = gittins.min(mean / (1.0 - survival));
            if survival <= NEGLIGIBLE {
                break;
            }
        }
        Rest { gittins, typical: log_mean.exp() }
    }

    /// The probability of ending in the part of a bin that is left.
    fn hazard(&self, bin: usize, left: f64) -> f64 {
        let width = bins::start_of(bin + 1) - bins::start_of(bin);
        if left < width { 1.0 - (1.0 - self.0[bin]).powf(left / width) } else { self.0[bin] }
    }
}

/// A job beyond the last bin takes another quarter of the time that it took.
const OVERDUE: f64 = 1.25;

/// The shortest rest, in seconds: a job at its limit ends within a second.
const SHORTEST: f64 = 1.0;
