//! Tests of the worker: one file for each concern, a kit of scenario words, and properties over random
//! events.

mod access;
mod environment;
mod faults;
mod gpu_kit;
mod gpu_restarts;
mod kit;
mod links;
mod looks;
mod properties;
mod starting;
mod stopping;
mod stretches;
