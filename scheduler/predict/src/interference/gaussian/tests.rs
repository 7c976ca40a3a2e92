//! What the processes learn of made-up sets.
