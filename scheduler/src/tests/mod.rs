//! What the pipeline promises, as scenarios and as properties of random clusters.

mod kit;
mod pipeline;
mod properties;
