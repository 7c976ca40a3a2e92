//! Numbers that are drawn: the same seed gives the same ones on every machine.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;

/// What a generator of random words is asked for here.
pub(crate) trait RandomExt {
    /// From 0, up to but without 1.
    fn part(&mut self) -> f64;

    /// From the standard normal distribution.
    fn normal(&mut self) -> f64;

    /// Puts values into an order that is drawn.
    fn shuffle<T>(&mut self, values: &mut [T]);
}

impl RandomExt for ChaCha8Rng {
    fn part(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// By the method of Box and Muller.
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.part()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.part()).cos()
    }

    fn shuffle<T>(&mut self, values: &mut [T]) {
        for last in (1..values.len()).rev() {
            let place = (self.next_u64() % (last as u64 + 1)) as usize;
            values.swap(last, place);
        }
    }
}
