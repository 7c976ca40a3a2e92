//! Random numbers from the seed. Each concern has a stream of its own, so that an additional draw in one
//! changes nothing in the others.

use cohabit_types::Span;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::digest::Digest;

/// A stream of random numbers.
#[derive(Debug, Clone)]
pub struct Random(ChaCha8Rng);

impl Random {
    /// The stream of this concern for this seed.
    #[must_use]
    pub fn stream(seed: u64, concern: &str) -> Random {
        let mut name = Digest::new();
        name.bytes(concern.as_bytes());
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        key[8..16].copy_from_slice(&name.value().to_le_bytes());
        Random(ChaCha8Rng::from_seed(key))
    }

    /// A uniform integer from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        let width = u128::from(high.saturating_sub(low)) + 1;
        low + ((u128::from(self.0.next_u64()) * width) >> 64) as u64
    }

    /// A uniform number in [0, 1).
    pub fn fraction(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// `true` with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.fraction() < probability
    }

    /// A span between these two, log-uniform: each order of magnitude is equally likely.
    pub fn span(&mut self, (shortest, longest): (Span, Span)) -> Span {
        let (low, high) = (shortest.as_micros().max(1) as f64, longest.as_micros().max(1) as f64);
        let drawn = low * (high / low).powf(self.fraction());
        Span::from_micros(drawn as u64).max(shortest).min(longest)
    }

    /// A standard normal number (Box-Muller).
    #[must_use]
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.fraction()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.fraction()).cos()
    }

    /// A uniformly chosen element.
    ///
    /// # Panics
    /// If there is none.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.between(0, of.len() as u64 - 1) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(seed: u64, concern: &str) -> Vec<u64> {
        let mut random = Random::stream(seed, concern);
        (0..4).map(|_| random.between(0, u64::MAX)).collect()
    }

    #[test]
    fn streams_are_determined_by_seed_and_concern() {
        assert_eq!(first(7, "network"), first(7, "network"));
        assert_ne!(first(7, "network"), first(8, "network"));
        assert_ne!(first(7, "network"), first(7, "faults"));
    }

    #[test]
    fn draws_stay_within_their_bounds() {
        let mut random = Random::stream(1, "bounds");
        let (low, high) = (Span::from_millis(1), Span::from_secs(100));
        let drawn: Vec<u64> = (0..1_000).map(|_| random.between(3, 5)).collect();
        assert!([3, 4, 5].iter().all(|n| drawn.contains(n)) && drawn.iter().all(|n| (3..=5).contains(n)));
        assert!((0..1_000).map(|_| random.span((low, high))).all(|span| span >= low && span <= high));
    }
}
