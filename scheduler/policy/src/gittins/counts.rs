//! How many jobs of a context passed each bin, and how many ended in it. Old jobs count less.

use super::bins::BINS;

/// The weight of all earlier jobs when one more is counted.
const MEMORY: f64 = 0.95;

/// The weight of the context above, in jobs.
const SHRINKAGE: f64 = 2.0;

/// The counts of one context.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct BinCounts {
    /// Jobs that reached the bin, and left it or ended in it.
    reached: [f64; BINS],
    /// Jobs that ended in it.
    ended: [f64; BINS],
}

impl Default for BinCounts {
    fn default() -> BinCounts {
        BinCounts { reached: [0.0; BINS], ended: [0.0; BINS] }
    }
}

impl BinCounts {
    /// Counts a job that passed the end of a bin.
    pub(super) fn pass(&mut self, bin: usize) {
        self.reached[bin] = MEMORY * self.reached[bin] + 1.0;
        self.ended[bin] *= MEMORY;
    }

    /// Counts a job that ended in a bin.
    pub(super) fn end(&mut self, bin: usize) {
        self.reached[bin] = MEMORY * self.reached[bin] + 1.0;
        self.ended[bin] = MEMORY * self.ended[bin] + 1.0;
    }

    /// The probability that a job of this context which reached a bin ends in it, where `above` is that of
    /// the wider context.
    pub(super) fn refine(&self, bin: usize, above: f64) -> f64 {
        (self.ended[bin] + SHRINKAGE * above) / (self.reached[bin] + SHRINKAGE)
    }

    #[cfg(test)]
    pub(super) fn at(&self, bin: usize) -> (f64, f64) {
        (self.reached[bin], self.ended[bin])
    }
}
