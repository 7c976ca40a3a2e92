//! What the networks of this crate have in common: parameters by name, affine maps, and a step of training.

mod affine;
pub(crate) mod elementary;
mod gelu;
#[cfg(test)]
mod gradient_check;
mod optimizer;
mod parameters;

pub(crate) use affine::{Affine, xavier};
pub(crate) use gelu::gelu;
#[cfg(test)]
pub(crate) use gradient_check::gradients_agree;
pub(crate) use optimizer::{PRECISION, adam_w, clip, number};
pub(crate) use parameters::Parameters;
