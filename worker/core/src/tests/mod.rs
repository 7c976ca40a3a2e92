//! Tests of the worker: one file for each concern, a kit of scenario words, and properties over random
//! events.

mod environment;
mod kit;
mod links;
mod properties;
mod starting;
mod stopping;
