//! Random numbers that are a pure function of the seed and their purpose.
//!
//! No generator is kept between steps. A training that is resumed at step 500 draws exactly the numbers of an
//! uninterrupted one, and a checkpoint does not need the state of a generator.

use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;

/// The purpose of random numbers. Each purpose has a separate stream.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RandomStream {
    /// The initial values of the parameters.
    FirstWeights,
    /// The split into training and test set.
    Split,
    /// The sampled text at the end.
    Sample,
    /// The order of the examples in an epoch.
    Epoch(u64),
    /// The examples of one step.
    Step(u64),
    /// The distortions of the images of one step.
    Distortion(u64),
}

/// Far from the streams of epochs and steps.
const FIRST_DISTORTION: u64 = 1 << 62;

/// The generator for a purpose and a seed.
pub(crate) fn generator(seed: u64, purpose: RandomStream) -> ChaCha8Rng {
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    generator.set_stream(match purpose {
        RandomStream::FirstWeights => 0,
        RandomStream::Split => 1,
        RandomStream::Sample => 2,
        RandomStream::Epoch(number) | RandomStream::Step(number) => 3 + number,
        RandomStream::Distortion(step) => FIRST_DISTORTION + step,
    });
    generator
}
