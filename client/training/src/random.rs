//! Random numbers that are a pure function of the seed and of what they are for.
//!
//! No generator lives on between steps: whoever resumes at step 500 draws exactly what an uninterrupted run
//! drew there, and a checkpoint need not hold the state of any generator.

use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;

/// What random numbers are for; each purpose has a stream of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RandomStream {
    /// The first values of the parameters.
    FirstWeights,
    /// Which examples are kept for the test.
    Split,
    /// The letters of the sample at the end.
    Sample,
    /// The order of the examples in an epoch.
    Epoch(u64),
    /// The examples of one step.
    Step(u64),
}

/// The generator for `purpose` in the training with `seed`.
pub(crate) fn generator(seed: u64, purpose: RandomStream) -> ChaCha8Rng {
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    generator.set_stream(match purpose {
        RandomStream::FirstWeights => 0,
        RandomStream::Split => 1,
        RandomStream::Sample => 2,
        RandomStream::Epoch(number) | RandomStream::Step(number) => 3 + number,
    });
    generator
}
