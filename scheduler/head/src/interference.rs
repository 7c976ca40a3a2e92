//! What the head knows of interference: what it starts with, what its cluster lives through, and the models
//! that it learns from that.
//!
//! ```text
//! stretches ─> lived ─> school (a thread) ─> knowledge ─> planner
//!                         │  ▲
//!                         ▼  │
//!                       refit (a thread while it lasts) ─> versions (folders)
//! ```
//!
//! A refit becomes a version only if it errs less than the model before it on what neither has seen. Whatever
//! a model says, it decides nothing but who runs beside whom: memory is counted without it.

mod base;
mod basis;
mod guarded;
#[cfg(feature = "learned")]
mod learned;
mod lived;
mod news;
mod past;
mod refit;
mod school;
#[cfg(not(feature = "learned"))]
mod unlearned;
mod versions;

#[cfg(test)]
mod tests;

pub(crate) use base::Base;
pub use basis::{InterferenceSource, UnknownInterferenceSource};
pub(crate) use lived::{demand_and_traits_of, lived};
pub(crate) use past::PastObservations;
pub(crate) use school::{TrainerHandle, TrainerOptions, TrainingUpdate};
