//! Sealed memory resists everything, objects come back as they were, and nothing is left behind.

mod formats;
mod guards;
mod kit;
mod objects;
mod passing;
mod processes;
mod seals;
mod spill;
