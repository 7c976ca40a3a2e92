//! The bins of work time: the first ends after 30 seconds, and each is half as long again as all before it.
//!
//! Work time is the time for which a job would have run alone at its best place.

/// The number of bins; every job has ended by the end of the last one.
pub(super) const BINS: usize = 32;

/// The end of the first bin, in seconds.
const FIRST_END: f64 = 30.0;

/// The ratio of the ends of two bins.
const RATIO: f64 = 1.5;

/// The start of a bin in seconds; that of `BINS` is the end of the last bin.
pub(super) fn start_of(bin: usize) -> f64 {
    const STARTS: [f64; BINS + 1] = {
        let mut starts = [0.0; BINS + 1];
        let mut bin = 1;
        let mut at = FIRST_END;
        while bin <= BINS {
            starts[bin] = at;
            at *= RATIO;
            bin += 1;
        }
        starts
    };
    STARTS[bin.min(BINS)]
}

/// The bin that contains this work time in seconds; the last one contains everything beyond.
pub(super) fn containing(age: f64) -> usize {
    (1..BINS).take_while(|bin| start_of(*bin) <= age).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_join_and_contain_their_start() {
        assert_eq!((start_of(0), start_of(1), start_of(2)), (0.0, 30.0, 45.0));
        for bin in 0..BINS {
            assert_eq!(containing(start_of(bin)), bin);
            assert_eq!(containing((start_of(bin) + start_of(bin + 1)) / 2.0), bin);
        }
        assert_eq!(containing(1e12), BINS - 1);
    }
}
