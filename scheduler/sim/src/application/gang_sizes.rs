//! How many actors are created together.

use crate::random::Random;

/// Draws the sizes of gangs. In most runs all have one actor.
#[derive(Debug)]
pub(super) struct GangSizes {
    random: Random,
    /// How many of them have more.
    several: f64,
}

impl GangSizes {
    pub(super) fn new(seed: u64) -> GangSizes {
        let mut random = Random::stream(seed, "gangs of an application");
        let several = if random.chance(0.3) { 0.2 + 0.6 * random.fraction() } else { 0.0 };
        GangSizes { random, several }
    }

    pub(super) fn draw(&mut self) -> usize {
        if self.random.chance(self.several) { self.random.between(2, 4) as usize } else { 1 }
    }
}
