//! Pseudo-random draws from a seed, for the mapping that ignores the graph.
//!
//! The generator is SplitMix64 (Steele, Lea and Flood, OOPSLA 2014). It is not for secrets, and only the
//! random selection uses it.

/// A sequence of draws.
#[derive(Debug, Clone)]
pub(super) struct SplitMix64(u64);

impl SplitMix64 {
    pub(super) const fn new(seed: u64) -> SplitMix64 {
        SplitMix64(seed)
    }

    /// Makes all further draws depend on this number too.
    pub(super) const fn mix(&mut self, number: u64) {
        self.0 ^= number;
        self.0 = self.next();
    }

    const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`, which is at least 1.
    pub(super) fn below(&mut self, limit: u32) -> u32 {
        let scaled = (u128::from(self.next()) * u128::from(limit)) >> 64;
        u32::try_from(scaled).unwrap_or(0)
    }
}
