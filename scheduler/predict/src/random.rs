//! Random draws: the same seed gives the same numbers on every machine.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;

/// Draws for a generator of random words.
pub(crate) trait RandomExt {
    /// A uniform number in [0, 1).
    fn part(&mut self) -> f64;

    /// A uniform integer below `count`, or 0.
    fn below(&mut self, count: usize) -> usize;

    /// A standard normal number.
    fn normal(&mut self) -> f64;

    /// Shuffles the values.
    fn shuffle<T>(&mut self, values: &mut [T]);
}

impl RandomExt for ChaCha8Rng {
    fn part(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn below(&mut self, count: usize) -> usize {
        (self.next_u64() % count.max(1) as u64) as usize
    }

    /// By the Box-Muller method.
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.part()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.part()).cos()
    }

    fn shuffle<T>(&mut self, values: &mut [T]) {
        for last in (1..values.len()).rev() {
            let place = self.below(last + 1);
            values.swap(last, place);
        }
    }
}
